"""How a task runs one job of the lake server: submit under its own key, follow to the end, log the progress.

No module in this folder imports Spark: every parse would pay for it, and no task needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from lake_connection import lake

from jobs.errors import DifferenceError, NotFoundError, TwinlakeError, UsageError
from jobs.run import CancelledError, Job
from jobs.server.client import LakeClient, now_and_then

log = logging.getLogger("airflow.task.twinlake")

FINAL = (CancelledError, DifferenceError, NotFoundError, UsageError)
"""What the same request meets again, or somebody's will: the task fails at once, without its retries."""


OTHER_VERSION = (
    "write the DAGs anew with the lake server's own `twinlake dags FOLDER`; where the lake server is the "
    "older one, restart it with `twinlake down` and `twinlake up`"
)


@contextmanager
def telling_airflow() -> Iterator[None]:
    """An error of the platform as the failure that Airflow tries again, or does not."""
    try:
        yield
    except FINAL as error:
        raise AirflowFailException(str(error)) from error
    except TwinlakeError as error:
        raise RuntimeError(str(error)) from error


def lake_server() -> LakeClient:
    """Asks this Airflow's lake server, which is of a version that these DAGs know; UsageError where not."""
    client = lake().client
    client.refuse_other_version(OTHER_VERSION)
    return client


def run_job(kind: str, params: dict[str, Any], part: str = "") -> dict[str, Any]:
    """The job's result. A retried or cleared task finds its job again: the key names the task, not the try.

    `part` tells several jobs of one task apart.
    """
    instance = get_current_context()["ti"]
    key = f"{instance.dag_id}/{instance.run_id}/{instance.task_id}/{instance.map_index}{part and '/' + part}"
    with telling_airflow():
        client = lake_server()
        job = client.submit(kind, params, key=key)
        log.info("%s is job %s (key %s), parameters %s", kind, job.id, key, params)
        result = client.follow(job.id, on_progress=now_and_then(_log)).succeeded()
    log.info("%s succeeded: %s", kind, {key: value for key, value in result.items() if not _is_long(value)})
    return result


def live_tables() -> list[dict[str, Any]]:
    """The tables of the live release, as the lake server tells them: `name`, `stored`, `windows`.

    Not those of jobs/tables: what is written there is not live yet, and may be wrong. Skips the task while
    nothing is live: a fresh installation has no table to work on yet.
    """
    with telling_airflow():
        tables: list[dict[str, Any]] = lake_server().status()["tables"]
    if not tables:
        raise AirflowSkipException("nothing is live yet: `twinlake up` makes the first release")
    return tables


def report_of(plan: str, file: str | None) -> str:
    """A line of Markdown that says where the report of a plan is: a link for browsers, or else the file."""
    with telling_airflow():
        link = lake().report_link(plan)
    return f"[report]({link})" if link else f"report: `{file}`, where the lake server runs"


def _log(job: Job) -> None:
    log.info("%s", job.words())


def _is_long(value: Any) -> bool:
    return isinstance(value, list | dict) and len(str(value)) > 500

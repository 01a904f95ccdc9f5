"""How a task runs one job of the lake server: submit under its own key, follow to the end, log the progress.

No module in this folder imports Spark: every parse would pay for it, and no task needs it.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from jobs.errors import DifferenceError, NotFoundError, TwinlakeError, UsageError
from jobs.run import CancelledError, Job
from jobs.server.client import LakeClient, now_and_then
from jobs.settings import Settings

log = logging.getLogger("airflow.task.twinlake")

FINAL = (CancelledError, DifferenceError, NotFoundError, UsageError)
"""What the same request meets again, or somebody's will: the task fails at once, without its retries."""


def settings() -> Settings:
    """The installation this Airflow belongs to."""
    return Settings.of(os.environ)


def run_job(kind: str, params: dict[str, Any], part: str = "") -> dict[str, Any]:
    """The job's result. A retried or cleared task finds its job again: the key names the task, not the try.

    `part` tells several jobs of one task apart.
    """
    instance = get_current_context()["ti"]
    key = f"{instance.dag_id}/{instance.run_id}/{instance.task_id}/{instance.map_index}{part and '/' + part}"
    try:
        client = LakeClient.of(settings().services())
        job = client.submit(kind, params, key=key)
        log.info("%s is job %s (key %s), parameters %s", kind, job.id, key, params)
        result = client.follow(job.id, on_progress=now_and_then(_log)).succeeded()
    except FINAL as error:
        raise AirflowFailException(str(error)) from error
    except TwinlakeError as error:
        raise RuntimeError(str(error)) from error
    log.info("%s succeeded: %s", kind, {key: value for key, value in result.items() if not _is_long(value)})
    return result


def live_tables() -> list[dict[str, Any]]:
    """The tables of the live release, as the lake server tells them: `name`, `stored`, `windows`.

    Not those of jobs/tables: what is written there is not live yet, and may be wrong. Skips the task while
    nothing is live: a fresh installation has no table to work on yet.
    """
    tables: list[dict[str, Any]] = LakeClient.of(settings().services()).status()["tables"]
    if not tables:
        raise AirflowSkipException("nothing is live yet: `twinlake up` makes the first release")
    return tables


def report_link(plan: str) -> str:
    """Where a browser finds the report of a plan: the SQL server's HTTP door hands it out."""
    return f"{settings().services().sql_url.rstrip('/')}/reports/{plan}"


def _log(job: Job) -> None:
    log.info("%s", job.words())


def _is_long(value: Any) -> bool:
    return isinstance(value, list | dict) and len(str(value)) > 500

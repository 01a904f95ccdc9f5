"""How a task runs one job of the lake server: under a key of its own, and deferred until it has ended.

No module of this room imports Spark: every parse would pay for it, and no task needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from twinlake.airflow.assets import remember
from twinlake.airflow.connection import lake, lake_server
from twinlake.airflow.task import ShownError, ShownFailure, event_of_this_run, show_in_console
from twinlake.airflow.trigger import LakeJobTrigger
from twinlake.base.errors import (
    DeniedError,
    DifferenceError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
    error_of,
)
from twinlake.base.job import AGAIN, Asker, CancelledError, Job
from twinlake.base.waiting import wait_for_answer
from twinlake.server.client import AWAY_S, LakeClient

T = TypeVar("T")
log = logging.getLogger("airflow.task.twinlake")


class StuckError(TwinlakeError):
    """A job in which nothing went on for too long."""


FINAL = (CancelledError, DeniedError, DifferenceError, NotFoundError, StuckError, UsageError)
"""What the same request meets again, or somebody's will: the task fails at once, without its retries."""


NOTHING_LIVE = "nothing is live yet, so there is nothing to do: `twinlake up` makes the first release"
NO_FOLDER = (
    "no folder of backups is set, so there is nothing to do: `folder` in [backup] of the lake server's "
    "twinlake.toml names one; then `twinlake up`"
)
ONCE = ("promote", "rollback")
"""What these have made live is not made live again by clearing their task."""


@contextmanager
def telling_airflow() -> Iterator[None]:
    """An error of the platform as the failure that Airflow tries again, or does not."""
    try:
        yield
    except FINAL as error:
        raise ShownFailure(str(error)) from None
    except TwinlakeError as error:
        raise ShownError(str(error)) from None


def run_job(
    kind: str, params: dict[str, Any], part: str = "", by: str | None = None, why: str | None = None
) -> dict[str, Any]:
    """The job's result and its id as `job`; a `lake_task` waits for it deferred.

    `part` distinguishes the jobs of one task. `by` is who asks for it, whoever has started the run unless
    given, and `why` their reason.
    """
    context = get_current_context()
    key = _key(kind, context["ti"], part)
    show_in_console("/jobs", key=key)
    with telling_airflow():
        job = _ended(lake_server(), kind, params, key, by or triggered_by(context), why)
        result = job.succeeded()
    short = {key: value for key, value in result.items() if not _is_long(value)}
    log.info(
        "%s succeeded, job %s (`twinlake jobs follow %s --json` shows it): %s", kind, job.id, job.id, short
    )
    if "covers" in result:
        log.info("certificate of %s", _certificate(result))
    return {**result, "job": job.id}


def _certificate(made: dict[str, Any]) -> str:
    """What a rebuild or verify has certified, or which certificate there was where nothing was due."""
    found = "are equal" if made["equal"] else "differ"
    position = ", ".join(f"{topic} batch {batch}" for topic, batch in made["position"].items())
    rows, proof = f"{made['rows_compared']:,} rows compared", made.get("proof")
    return (
        f"{made['table']}, version {made['version']}: speed and batch {found}, {rows} at {position}, "
        f"{made['covers']}{f'; {proof}' if proof else ''}"
    )


def _key(kind: str, instance: Any, part: str) -> str:
    """Names the task, not the try: a retry finds the same job. A task that was cleared asks for another."""
    key = f"{instance.dag_id}/{instance.run_id}/{instance.task_id}/{instance.map_index}{part and '/' + part}"
    first_try = instance.max_tries - instance.task.retries + 1  # Airflow adds to max_tries by clearing alone
    return f"{key}/{first_try}" if first_try > 1 and kind not in ONCE else key


def triggered_by(context: Any) -> str:
    """Who has started this run; `airflow` where the schedule has."""
    return context["dag_run"].triggering_user_name or "airflow"


def _ended(client: LakeClient, kind: str, params: dict[str, Any], key: str, by: str, why: str | None) -> Job:
    """The job with this key, ended; leaves the task to its trigger where it has not, or is to be started."""
    event = event_of_this_run.get()
    if event and event["key"] == key:
        if "error" in event:
            raise error_of(event["error"])
        job = Job.from_json(event["job"])
        if event["stuck"] is not None:
            raise _stuck(job, event["stuck"])
        return job
    found = client.find(key)
    if found is not None and found.state == "succeeded":
        return client.submit(kind, params, key=key)  # which refuses what is not the same question
    attempt = 1 if found is None else found.attempt + (found.state in AGAIN)
    raise TaskDeferred(trigger=LakeJobTrigger(kind, params, key, attempt, by, why), method_name="resume")


def _stuck(job: Job, minutes: int) -> TwinlakeError:
    left = "" if job.ended else "; it has not ended, although it was cancelled"
    return StuckError(
        f"job {job.id} ({job.kind}) was cancelled",
        f"nothing in it went on for {minutes} minutes{left}",
        "see `twinlake logs lake`; where it needed longer, raise job_minutes_without_progress in [limits] of "
        "twinlake.toml",
    )


def waited_for(what: str, ask: Callable[[LakeClient], T]) -> T:
    """What the lake server answers; one that restarts is waited for."""
    return wait_for_answer(what, lambda: ask(lake_server()), AWAY_S, every_s=1, unready=(UnreachableError,))


def reject(plan: str, by: str, why: str | None) -> None:
    """Notes with the lake server that somebody has rejected a plan; one that restarts is waited for. What it
    says instead is in the task's log: the run fails anyhow."""
    asked = {"plan": plan, "rejected_by": by, **({"reason": why} if why else {})}
    key = _key("reject", get_current_context()["ti"], "")

    def note(client: LakeClient) -> Job:
        return client.follow(client.submit("reject", asked, key, Asker(by=by, via="airflow", why=why)).id)

    try:
        waited_for("the lake server to note the rejection", note).succeeded()
    except TwinlakeError as error:
        log.warning("the lake server does not know that the plan is rejected: %s", error)


def live_tables() -> list[dict[str, Any]]:
    """The tables of the live release, as the lake server tells them: `name`, `stored`, `windows`.

    Not those of jobs/tables: what is written there is not live yet, and may be wrong. Skips the task while
    nothing is live: a fresh installation has no table to work on yet.
    """
    with telling_airflow():
        status = lake_server().status()
    remember(status)
    tables: list[dict[str, Any]] = status["tables"]
    if not tables:
        raise AirflowSkipException(NOTHING_LIVE)
    return tables


def skip_scheduled_without_folder() -> None:
    """Skips the task where the schedule has started it and the lake server has no folder for backups: whoever
    has set none wants no failure every night. A person who starts it hears the refusal of the job."""
    if get_current_context()["dag_run"].run_type != "scheduled":
        return
    with telling_airflow():
        status = lake_server().status()
    if status["backup"] is None:
        raise AirflowSkipException(NO_FOLDER)


def report_of(plan: str, file: str | None) -> tuple[str, str]:
    """Where the report of a plan is, in Markdown and plain: a link for browsers, or else the file."""
    with telling_airflow():
        link = lake().report_link(plan)
    if link:
        get_current_context()["ti"].task.report_link = link  # the button of a ReportedTask
        return f"[report]({link})", link
    return f"report: `{file}`, where the lake server runs", f"{file}, where the lake server runs"


def _is_long(value: Any) -> bool:
    return isinstance(value, list | dict) and len(str(value)) > 500

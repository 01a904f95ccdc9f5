"""Jobs: what the lake server does and did, how far it is, why it failed; operators cancel what runs, and have
a backup taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.job import Asker, Job
from twinlake.base.times import parse_moment
from twinlake.console import acts
from twinlake.console.acts import Act, Form
from twinlake.console.console import Console
from twinlake.console.sessions import Session
from twinlake.server.client import LakeClient
from twinlake.server.outcomes import outcome

OF_PLAN = "which the page of the plan shows"
OF_JOB = "which no page shows: `twinlake jobs follow {id} --json`"
ROWS = {
    "samples": OF_PLAN, "rows": OF_PLAN, "differences": OF_JOB, "repaired": OF_JOB, "disputed": OF_JOB,
}  # fmt: skip
"""Where in a result rows of tables are, and who shows them."""
PAGES = {"table": "tables", "topic": "topics", "plan": "plans", "release": "releases"}
journal = structlog.get_logger(__name__)


def routes(console: Console) -> list[Route]:
    async def listed() -> dict[str, Any]:
        return {"jobs": await console.looked(console.jobs.seen), "about": about, "seconds": seconds}

    async def jobs(request: Request, session: Session) -> Response:
        if (key := request.query_params.get("key")) is not None:  # a task in Airflow knows no more of its job
            found = await console.asked(lambda: console.client().find(key))
            if found is None:
                raise NotFoundError(
                    "this job has not begun", "nobody has asked for it yet, or it is no longer kept",
                    "load the page again in a moment",
                )  # fmt: skip
            return RedirectResponse(f"/jobs/{found.id}", 303)
        return console.page("jobs", session, active="jobs", **await listed())

    async def part(request: Request, session: Session) -> Response:
        return console.page("jobs_part", session, **await listed())

    async def job(request: Request, session: Session) -> Response:
        found = await console.asked(lambda: console.client().job(request.path_params["id"]))
        return console.page(
            "job", session, active="jobs", job=found, result=shown(found), seconds=seconds,
            outcome=outcome(found), leads=leads(found),
        )  # fmt: skip

    async def cancel(request: Request, session: Session) -> Response:
        id = request.path_params["id"]

        def ask() -> Job:
            client = console.client()
            if (found := client.job(id)).ended:
                raise UsageError(f"job {id} cannot be cancelled", f"it has ended: {found.state}", "")
            return client.cancel(id, Asker(by=session.user.name, via="console"))

        await console.asked(ask)
        console.jobs.forget()
        journal.info("a job is cancelled", job=id, user=session.user.name)
        return RedirectResponse(f"/jobs/{id}", 303)

    return [
        Route("/jobs", console.signed_in(jobs), methods=["GET"]),
        Route("/part/jobs", console.signed_in(part, is_part=True), methods=["GET"]),
        Route("/jobs/{id}", console.signed_in(job), methods=["GET"]),
        Route("/jobs/{id}/cancel", console.signed_in(cancel, acts=True), methods=["POST"]),
        *acts.routes(console, BACKUP),
    ]


def _backing_up(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    backup = client.status().get("backup")
    newest = f"The newest is of {backup['newest']}." if backup and backup["newest"] else "There is none yet."
    return Form(
        title="Take a backup", button="Take a backup", back="/jobs", active="jobs", shown=backup,
        does=(
            "Logs, tables, releases, certificates, plans, the audit log, settings and users are copied into "
            "the folder that [backup] of the settings names, as far as they are not there; the oldest go. "
            "Nothing stops for it.", newest,
        ),
        hindered="" if backup else "no folder of backups is set",
    )  # fmt: skip


BACKUP = Act(path="/backup", kind="backup", form=_backing_up, params=lambda path, given, user, form: {})


def shown(job: Job) -> dict[str, Any] | None:
    """The result without rows of tables: pages read those by the login of who looks."""
    found: dict[str, Any] | None = _without_rows(job.result, job.id)
    return found


def _without_rows(value: Any, id: str) -> Any:
    if isinstance(value, list):
        return [_without_rows(one, id) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{len(one)} rows, {ROWS[name].format(id=id)}"
        if name in ROWS and isinstance(one, list) and one
        else _without_rows(one, id)
        for name, one in value.items()
    }


def leads(job: Job) -> dict[str, str]:
    """Title and path of the pages of what it was about."""
    made = job.result or {}
    named = {**job.params, "release": made.get("release")}
    if job.kind == "plan":
        named["plan"] = made.get("id")
    found = {
        f"{name} {named[name]}": f"/{folder}/{quote(str(named[name]), safe='')}"
        for name, folder in PAGES.items()
        if named.get(name)
    }
    if job.kind == "replay" and job.params.get("topic"):
        found["its quarantine"] = f"/topics/{quote(job.params['topic'], safe='')}/quarantine"
    return found


def about(job: Job) -> str:
    """The parameters that say something, in one line."""
    said = (
        f"{name}={value}"
        for name, value in job.params.items()
        if value not in (None, False, [], {}) and not isinstance(value, dict)
    )
    return ", ".join(said)


def seconds(job: Job) -> float | None:
    """How long it took; None of one that has not ended."""
    if not job.started_at or not job.ended_at:
        return None
    took: timedelta = parse_moment(job.ended_at) - parse_moment(job.started_at)
    return took.total_seconds()

"""Jobs: what the lake server does and did, how far it is, why it failed; operators cancel what runs, and have
a backup taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

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
        return console.page("job", session, active="jobs", job=found, result=shown(found), seconds=seconds)

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
    """The result, without the rows of a comparison or a gate: its plan's page reads them by the login of who
    looks."""
    found: dict[str, Any] | None = _without_rows(job.result)
    return found


def _without_rows(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_rows(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{len(one)} rows, which the page of the plan shows"
        if name in ("samples", "rows") and isinstance(one, list) and one
        else _without_rows(one)
        for name, one in value.items()
    }


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

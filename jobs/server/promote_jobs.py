"""Promotion: the job kinds promote and rollback. One commit to the release log switches all tables.

Nobody goes back in time: while the switch happens, the versions that readers leave hold still, and those that
they come to are at least as far. A job killed after its commit finds its release when it is started again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import httpx
from pydantic import Field

from jobs.errors import DifferenceError, UnreachableError
from jobs.lake import release_log
from jobs.lake.release_log import Release
from jobs.releases import plan
from jobs.releases.gate import Gate
from jobs.run import Run
from jobs.server.job_kinds import Kind, Params
from jobs.server.release_jobs import BuildParams, ask_gate, do_build, green_version, write_report
from jobs.times import format_moment

if TYPE_CHECKING:
    from jobs.server.lake_server import LakeServer

FOLLOW_S = 15.0
HOLD_S = 20.0
"""A version is held still at most so long; a switch that takes longer goes on without holding it."""
_switching = threading.Lock()


class PromoteParams(Params):
    plan: str
    approved_by: str = Field(min_length=1, max_length=200)
    kind: Literal["promote", "initial"] = "promote"


class RollbackParams(Params):
    approved_by: str = Field(min_length=1, max_length=200)
    to: int | None = Field(default=None, ge=1)


def do_promote(server: LakeServer, params: PromoteParams, run: Run) -> dict[str, Any]:
    """Make the plan live, or refuse: production moved, a certificate is missing or unequal, a gate failed."""
    made = plan.load(server.lake, params.plan)
    with _switching:
        live = release_log.live(server.lake)
        if live and live.plan == made.id:
            return _finish(server, live)  # an earlier attempt committed it
        if live is not None and made.empty and live.number == made.release_before:
            return {**_finish(server, live), "changed": False}
        if (live.number if live else None) != made.release_before:
            raise release_log.moved(made.release_before, live)
        filled = any(log.end() for log in server.logs.values())
        if live is None and filled:  # what was built over an empty log has no certificate yet
            do_build(server, BuildParams(plan=made.id), run)
        if live is not None or filled:
            _pass(server, made, ask_gate(server, made, run, recent=True))
        tables = _mapping(server, made)
        draft = Release(
            number=(live.number if live else 0) + 1,
            kind="initial" if live is None else "promote",
            tables=tables,
            created_at="",
            approved_by=params.approved_by,
            plan=made.id,
            git_commit=made.git_commit,
            job=run.id,
        )
        return _switch(server, live, draft, run)


def do_rollback(server: LakeServer, params: RollbackParams, run: Run) -> dict[str, Any]:
    """Make an earlier release's versions live again: the named one, else the one before the live one."""
    with _switching:
        history = release_log.releases(server.lake)
        mine = next((one for one in history if one.job == run.id), None)
        if mine is not None:
            return _finish(server, mine)
        target = release_log.rollback_target(history, params.to)
        for table, name in target.tables.items():
            server.versions.get(table, name)  # a retired version cannot come back, and says so
        draft = Release(
            number=history[-1].number + 1,
            kind="rollback",
            tables=dict(target.tables),
            created_at="",
            approved_by=params.approved_by,
            plan=target.plan,
            git_commit=target.git_commit,
            restores=target.number,
            job=run.id,
        )
        return _switch(server, history[-1], draft, run)


def _pass(server: LakeServer, made: plan.Plan, gate: Gate) -> None:
    write_report(server, made)
    if gate.passed:
        return
    failed = "; ".join(f"{check.table} {check.name}: {check.detail}".strip() for check in gate.failures)
    error = DifferenceError(
        f"the gate refuses plan {made.id}",
        failed,
        "mend what failed, then promote again; nothing has changed for readers",
    )
    error.result = {"gate": gate.to_json()}  # type: ignore[attr-defined]
    raise error


def _mapping(server: LakeServer, made: plan.Plan) -> dict[str, str]:
    tables = {}
    for change in made.changes:
        if change.action == "unchanged" and change.blue:
            tables[change.table] = change.blue
        elif change.action != "removed":
            green = green_version(server, made, change)
            if green is None:
                raise DifferenceError(f"table {change.table} of plan {made.id} is not built", "",
                                      f"run `twinlake build {made.id}`")  # fmt: skip
            tables[change.table] = green.name
    return tables


def _switch(server: LakeServer, before: Release | None, draft: Release, run: Run) -> dict[str, Any]:
    """Bring the new versions to the old ones' position, commit, and wait until readers have it."""
    leaving = {
        table: name
        for table, name in (before.tables if before else {}).items()
        if table in draft.tables and draft.tables[table] != name
    }
    for table, name in leaving.items():
        run.progress(0, 3, "steps", f"bringing {table} to the position that readers know")
        _catch_up(server, table, draft.tables[table], _position(server, table, name), run)
    run.check_cancelled()
    with _held(server, leaving) as positions:
        for table, position in positions.items():
            _catch_up(server, table, draft.tables[table], position, run)
        run.progress(1, 3, "steps", f"committing release {draft.number}")
        reached = {
            table: {server.versions.get(table, name).topic: _position(server, table, name)}
            for table, name in draft.tables.items()
        }
        made = release_log.commit(server.lake, replace(draft, positions=reached, created_at=_now()))
        run.progress(2, 3, "steps", "waiting for the SQL server")
        return _finish(server, made)


def _position(server: LakeServer, table: str, name: str) -> int:
    return server.versions.owner(server.versions.get(table, name)).standing.position


def _catch_up(server: LakeServer, table: str, name: str, position: int, run: Run) -> None:
    if _position(server, table, name) < position:
        server.versions.advance_to(server.versions.get(table, name), position, run)


@contextmanager
def _held(server: LakeServer, versions: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """The versions take no step inside, so that their position is the last one that readers saw."""
    go_on = threading.Event()
    try:
        waiting = {
            table: server.versions.owner(server.versions.get(table, name)).hold(go_on, HOLD_S)
            for table, name in versions.items()
        }
        yield {table: future.result(HOLD_S) for table, future in waiting.items()}
    finally:
        go_on.set()


def _finish(server: LakeServer, made: Release) -> dict[str, Any]:
    """What is live, and whether the SQL server has followed."""
    began = time.monotonic()
    problem = follow_problem(server, made.number)
    return {
        "release": made.number,
        "kind": made.kind,
        "tables": made.tables,
        "positions": made.positions,
        "restores": made.restores,
        "plan": made.plan,
        "approved_by": made.approved_by,
        "created_at": made.created_at,
        "changed": True,
        "followed": problem is None,
        "follow_seconds": round(time.monotonic() - began, 2),
        "follow_problem": problem,
    }


def follow_problem(server: LakeServer, number: int, longest_s: float = FOLLOW_S) -> str | None:
    """None once the SQL server serves the release or a later one, else why it is not known to."""
    try:
        url = server.settings.services().sql_url
    except UnreachableError as error:
        return str(error)
    if not url:
        return "the SQL server is not running; it follows when it starts"
    until, said = time.monotonic() + longest_s, "it has not answered yet"
    while time.monotonic() < until:
        try:
            status = httpx.get(f"{url}/status", timeout=2, trust_env=False).json()
            if (status.get("release") or 0) >= number:
                return None
            said = f"it serves release {status.get('release')}: {status.get('error') or 'still following'}"
        except (httpx.HTTPError, ValueError) as error:
            said = f"it does not answer: {error or type(error).__name__}"
            if isinstance(error, httpx.ConnectError):
                break
        time.sleep(0.05)
    return f"the SQL server has not followed to release {number}: {said}; it follows by itself when it can"


def _now() -> str:
    return format_moment(datetime.now(UTC))


KINDS = {
    "promote": Kind(params=PromoteParams, handler=do_promote),
    "rollback": Kind(params=RollbackParams, handler=do_rollback),
}

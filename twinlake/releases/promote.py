"""Promote and rollback: one commit to the release log switches all tables, and the SQL server follows.

Nobody goes back in time: while the switch happens, the versions that readers leave hold still, and those that
they come to are at least as far. A job killed after its commit finds its release when it is started again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import httpx

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, DifferenceError, NotFoundError, TimedOutError, UnreachableError
from twinlake.base.job import Failed, Run
from twinlake.base.times import format_moment
from twinlake.base.waiting import holding, wait_for
from twinlake.config.settings import Settings
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases import decide, gate
from twinlake.releases.build import plan_versions
from twinlake.releases.gate_checks import Gate
from twinlake.releases.report import write_report

HOLD_S = 20.0
"""A version that nobody speaks for stands still so long; longer than the SQL server is waited for."""
HOLDS = 5
"""So often the new versions are brought up while the old ones are held; the hold may lapse meanwhile."""
SWITCH_WAIT_S = 1800.0
"""A switch waits so long for another one, whose gate may be comparing old tables again."""
_switching = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Switched:
    """What is live, and whether the SQL server has followed; `changed` is false where it was live before."""

    release: Release
    changed: bool
    follow_seconds: float
    follow_problem: str | None

    def to_json(self) -> dict[str, Any]:
        made = self.release
        return {
            "release": made.number,
            **{
                name: value
                for name, value in asdict(made).items()
                if name
                in ("kind", "tables", "positions", "restores", "plan", "approved_by", "created_at", "reason")
            },
            "changed": self.changed,
            "followed": self.follow_problem is None,
            "follow_seconds": self.follow_seconds,
            "follow_problem": self.follow_problem,
        }


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A promotion that the gate did not let pass."""

    gate: Gate

    def to_json(self) -> dict[str, Any]:
        return {"gate": self.gate.to_json()}


def promote(
    lake: OpenLake, plan: Plan, approved_by: str, run: Run, unwitnessed: Mapping[str, str] = gate.NONE
) -> Switched | Failed:
    """Make the plan live, or refuse: production moved, a certificate is missing or unequal, a gate failed.

    `unwitnessed` as in `gate.ask`; the reasons are the approver's.
    """
    before = release_log.live(lake.path)
    if (before.number if before else None) == plan.release_before:
        gate.renew(lake, plan, run)  # not while a rollback would have to wait for it
    with one_switch_at_a_time(run):
        live = release_log.live(lake.path)
        if live and live.plan == plan.id:
            return _finish(lake, live)  # an earlier attempt committed it
        if live is not None and plan.empty and live.number == plan.release_before:
            return replace(_finish(lake, live), changed=False)
        if (live.number if live else None) != plan.release_before:
            raise release_log.moved(plan.release_before, live)
        plan.refuse_outdated()
        asked = gate.ask(lake, plan, run, recent=True, unwitnessed=unwitnessed, by=approved_by)
        write_report(lake, plan)
        if not asked.passed:
            return Failed(error=_refused(plan, asked), result=Refused(gate=asked))
        draft = Release(
            number=(live.number if live else 0) + 1,
            kind="initial" if live is None else "promote",
            tables=_mapping(lake, plan),
            created_at="",
            approved_by=approved_by,
            plan=plan.id,
            git_commit=plan.git_commit,
            job=run.id,
            reason=run.asker.why,
        )
        refuse = partial(decide.refuse_unapproved, lake, plan, approved_by, run.asker)
        return _switch(lake, live, draft, run, refuse)


def rollback(
    lake: OpenLake, to: int | None, approved_by: str, run: Run, reason: str | None = None,
    live: int | None = None,
) -> Switched:  # fmt: skip
    """Make an earlier release's versions live again: the named one, else the one before the live one.

    DifferenceError where `live` is given and another release is live.

    What it takes back is in no later plan until somebody changes or names it (`lake/rolled_back.py`).
    """
    with one_switch_at_a_time(run):
        history = release_log.releases(lake.path)
        mine = next((one for one in history if one.job == run.id), None)
        if mine is not None:
            return _finish(lake, mine)
        if live is not None and history and history[-1].number != live:
            raise DifferenceError(
                "nothing was rolled back: production has moved",
                f"release {live} was to be live, and release {history[-1].number} is",
                "see `twinlake releases`, then roll back what is live now",
            )
        target = release_log.rollback_target(history, to)
        usable = {(version.table, version.name) for version in lake.versions.usable()}
        for table, name in target.tables.items():
            if (table, name) not in usable:
                raise NotFoundError(
                    f"release {target.number} cannot come back",
                    f"its version {name} of {table} was retired, or cannot go on (see `twinlake status`)",
                    "promote its definition again: `twinlake plan`, `build`, `promote`",
                )  # fmt: skip
        draft = Release(
            number=history[-1].number + 1,
            kind="rollback",
            tables=dict(target.tables),
            created_at="",
            approved_by=approved_by,
            plan=target.plan,
            git_commit=target.git_commit,
            restores=target.number,
            job=run.id,
            reason=reason,
        )
        return _switch(lake, history[-1], draft, run)


def one_switch_at_a_time(run: Run) -> AbstractContextManager[None]:
    """Nobody promotes, rolls back or retires meanwhile."""
    return holding(_switching, "another promotion, rollback or retirement to end", SWITCH_WAIT_S, run)


def _refused(plan: Plan, asked: Gate) -> DifferenceError:
    failed = "; ".join(f"{check.table} {check.name}: {check.detail}".strip() for check in asked.failures)
    remedy = "fix what failed, then promote again; nothing has changed for readers"
    return DifferenceError(f"the gate refuses plan {plan.id}", failed, remedy)


def _mapping(lake: OpenLake, plan: Plan) -> dict[str, str]:
    tables, versions = {}, plan_versions(lake, plan)
    for change in plan.changes:
        if change.action == "unchanged" and change.blue:
            tables[change.table] = change.blue
        elif change.action in ("new", "changed"):
            green = versions.get(change.table)
            if green is None:
                raise DifferenceError(f"table {change.table} of plan {plan.id} is not built", "",
                                      f"run `twinlake build {plan.id}`")  # fmt: skip
            tables[change.table] = green.name
    return tables


def _switch(
    lake: OpenLake, before: Release | None, draft: Release, run: Run,
    refuse: Callable[[], None] = lambda: None,
) -> Switched:  # fmt: skip
    """Bring the new versions to the old ones' position, commit, and wait until readers have it.

    The commit is made only while the old versions have not moved since the new ones reached them. `refuse`
    raises where somebody has said no meanwhile.
    """
    versions = {table: lake.versions.get(table, name) for table, name in draft.tables.items()}
    living = {(version.table, version.name): version for version in lake.versions.living()}
    leaving = {
        table: living[table, name]
        for table, name in (before.tables if before else {}).items()
        if table in versions and versions[table].name != name
        if (table, name) in living  # one whose file is torn is nowhere any more
    }
    for table, version in leaving.items():
        run.progress(0, 3, "steps", f"bringing {table} to the position that readers know")
        _catch_up(lake, versions[table], lake.versions.position(version), run)
    for _ in range(HOLDS):
        run.check_cancelled()
        with lake.versions.hold(leaving.values(), HOLD_S, run) as held:
            for table, position in zip(leaving, held.positions, strict=True):
                _catch_up(lake, versions[table], position, run)
            run.progress(1, 3, "steps", f"committing release {draft.number}")
            # first what readers leave: a log that gets a batch between the two looks must not seem to go back
            left = {table: lake.versions.position(version) for table, version in leaving.items()}
            reached = {table: lake.versions.position(version) for table, version in versions.items()}
            behind = [table for table, position in left.items() if _is_behind(reached[table], position)]
            if behind or not held.renew():  # a version of a view kind moves with its log, whoever holds it
                continue
            made = replace(draft, positions=reached, created_at=format_moment(lake.clock()))
            with decide.deciding:
                refuse()
                breakpoints.at(Point.BEFORE_RELEASE)
                release_log.commit(lake.path, made)
            breakpoints.at(Point.AFTER_RELEASE)
            held.renew()
            run.progress(2, 3, "steps", "waiting for the SQL server")
            return _finish(lake, made)
    raise BusyError(
        f"release {draft.number} was not committed",
        f"{HOLDS} times readers of {', '.join(leaving)} were further by then; a hold lasts {HOLD_S:g} s",
        "start again once `twinlake status` shows small lags; nothing has changed for readers",
    )


def _catch_up(lake: OpenLake, version: Version, position: Mapping[str, int], run: Run) -> None:
    """A version that is there already need not move, so that one can go back to it even if it is stalled."""
    if _is_behind(lake.versions.position(version), position):
        lake.versions.advance_to(version, position, run)


def _is_behind(at: Mapping[str, int], position: Mapping[str, int]) -> bool:
    return any(at.get(topic, batch) < batch for topic, batch in position.items())


def _finish(lake: OpenLake, made: Release) -> Switched:
    began = time.monotonic()
    problem = follow_problem(lake.settings, made.number)
    seconds = round(time.monotonic() - began, 2)
    return Switched(release=made, changed=True, follow_seconds=seconds, follow_problem=problem)


FOLLOW_S = 15.0


def follow_problem(settings: Settings, number: int, limit_s: float = FOLLOW_S) -> str | None:
    """None once the SQL server serves the release or a later one, else why it is not known to."""
    try:
        url = settings.services().sql_url
    except UnreachableError as error:
        return str(error)
    if not url:
        return "the SQL server is not running; it follows when it starts"
    said = "it has not answered yet"

    def asked() -> bool | None:
        nonlocal said
        try:
            status = httpx.get(f"{url}/status", timeout=2, trust_env=False).json()
        except (httpx.HTTPError, ValueError) as error:
            said = f"it does not answer: {error or type(error).__name__}"
            return False if isinstance(error, httpx.ConnectError) else None
        said = f"it serves release {status.get('release')}: {status.get('error') or 'still following'}"
        return True if (status.get("release") or 0) >= number else None

    try:
        if wait_for(f"the SQL server to follow to release {number}", asked, limit_s, every_s=0.05):
            return None
    except TimedOutError:
        pass
    return f"the SQL server has not followed to release {number}: {said}; it follows by itself when it can"

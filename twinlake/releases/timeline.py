"""Timeline: which releases and plans there are, as the lake server's API gives them to whoever approves.

A release says what it changed against the one before it; a plan, how far it has come. Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from twinlake.base.errors import DamagedError, NotFoundError, UsageError
from twinlake.definitions.fingerprint import FORMULA
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Decided, Plan, Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.build import plan_versions
from twinlake.releases.comparison import Comparison
from twinlake.releases.gate_checks import Gate
from twinlake.releases.plan import describe

PlanState = Literal[
    "live",
    "released",
    "outdated",
    "nothing to change",
    "rejected",
    "not built",
    "not asked",
    "refused",
    "passed",
]
"""`released` was live and is not now; `outdated` was made against another release than the live one; what is
`not asked` is built, and its gate was not asked yet."""


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A table whose version a release changed; `before` is None of a new one, `after` of one that went."""

    table: str
    before: str | None
    after: str | None
    why: tuple[str, ...] = ()
    """What its plan says, as far as that is kept; of a rollback nothing but the release's own reason."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One release; of the live one `back_to` is the release that a rollback makes live again, if there is
    any."""

    release: Release
    live: bool
    changes: tuple[Switch, ...]
    back_to: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            **self.release.to_json(), "live": self.live, "back_to": self.back_to,
            "changes": [asdict(one) for one in self.changes],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """`live` and `release` are numbers: of the release that is live now, and of the plan's own newest."""

    plan: Plan
    state: PlanState
    live: int | None
    release: int | None
    greens: Mapping[str, str] = field(default_factory=dict)
    gate: Gate | None = None
    decided: Decided = field(default_factory=Decided)
    diffs: tuple[Comparison, ...] = ()

    def summary(self) -> dict[str, Any]:
        """Of a plan in a list."""
        plan = self.plan
        return {
            "id": plan.id, "state": self.state, "created_at": plan.created_at, "git_commit": plan.git_commit,
            "release_before": plan.release_before, "release": self.release, "live": self.live,
            **asdict(self.decided),
            "changes": [
                {"table": one.table, "action": one.action}
                for one in plan.changes if one.action not in ("unchanged", "left out")
            ],
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Without the definitions, and without what of rows differs, which the plan's comparison shows."""
        return {
            **self.summary(), "changes": [asdict(one) for one in self.plan.changes],
            "lines": describe(self.plan), "greens": dict(self.greens),
            "gate": self.gate.without_rows() if self.gate else None,
            "diffs": [_diff(one) for one in self.diffs],
        }  # fmt: skip


def timeline(lake: OpenLake, limit: int, number: int | None = None) -> list[Entry]:
    """The newest releases, the newest first; with `number` that one alone, or NotFoundError."""
    history = release_log.releases(lake.path)
    befores = dict(zip((one.number for one in history), [None, *history], strict=False))
    wanted = history[: -limit - 1 : -1]
    if number is not None:
        wanted = [one for one in history if one.number == number]
    if number is not None and not wanted:
        newest = f"the newest is {history[-1].number}" if history else "there is none yet"
        raise NotFoundError(f"there is no release {number}", newest, "see `twinlake releases`")
    return [
        Entry(
            release=one, live=one is history[-1],
            changes=(*_switches(lake.plans, befores[one.number], one),),
            back_to=_back_to(history) if one is history[-1] else None,
        )
        for one in wanted
    ]  # fmt: skip


def _back_to(history: list[Release]) -> int | None:
    try:
        return release_log.rollback_target(history).number
    except UsageError:
        return None


def changes_of(lake: OpenLake, table: str, limit: int) -> list[Entry]:
    """The newest releases that changed this table's version, the newest first, with that change alone."""
    history = release_log.releases(lake.path)
    pairs = [*zip([None, *history], history, strict=False)]
    changed = [
        (before, one) for before, one in reversed(pairs)
        if (before.tables.get(table) if before else None) != one.tables.get(table)
    ]  # fmt: skip
    return [
        Entry(
            release=one, live=one is history[-1],
            changes=(*_switches(lake.plans, before, one, table),),
        )
        for before, one in changed[:limit]
    ]  # fmt: skip


def newest_plans(lake: OpenLake, limit: int) -> list[PlanFacts]:
    """The plans that were made last, the newest first, without what was found out about each but its gate."""
    history = release_log.releases(lake.path)
    return [_facts(lake, plan, history) for plan in lake.plans.newest_ones(limit)]


def plan_facts(lake: OpenLake, id: str) -> PlanFacts:
    """Everything about one plan; NotFoundError for one that this lake never made."""
    plan = lake.plans.load(id)
    found = (lake.plans.diff(id, change.table, Comparison) for change in plan.switched)
    return _facts(lake, plan, release_log.releases(lake.path), (*(one for one in found if one is not None),))


def _facts(
    lake: OpenLake, plan: Plan, history: list[Release], diffs: tuple[Comparison, ...] = ()
) -> PlanFacts:
    live, gate = history[-1] if history else None, lake.plans.gate(plan.id, Gate)
    decided = lake.plans.decided(plan.id)
    switched = {change.table for change in plan.switched}
    greens = {name: one.name for name, one in plan_versions(lake, plan).items() if name in switched}
    own = [one.number for one in history if one.plan == plan.id]
    return PlanFacts(
        plan=plan, state=_state(plan, live, bool(own), switched <= greens.keys(), gate, decided),
        live=live.number if live else None, release=own[-1] if own else None, greens=greens, gate=gate,
        decided=decided, diffs=diffs,
    )  # fmt: skip


def _state(
    plan: Plan, live: Release | None, was_released: bool, is_built: bool, gate: Gate | None, decided: Decided
) -> PlanState:
    if live and live.plan == plan.id:
        return "live"
    if was_released:
        return "released"
    if plan.release_before != (live.number if live else None) or plan.formula != FORMULA:
        return "outdated"
    if plan.empty:
        return "nothing to change"
    if decided.rejected is not None:
        return "rejected"
    if not is_built:
        return "not built"
    return "not asked" if gate is None else "passed" if gate.passed else "refused"


def _switches(
    plans: Plans, before: Release | None, now: Release, only: str | None = None
) -> Iterator[Switch]:
    was = before.tables if before else {}
    known = sorted({*was, *now.tables}) if only is None else [only]
    names = [table for table in known if was.get(table) != now.tables.get(table)]
    why = _reasons(plans, now, names)
    for table in names:
        yield Switch(table=table, before=was.get(table), after=now.tables.get(table), why=why.get(table, ()))


def _reasons(plans: Plans, release: Release, tables: Iterable[str]) -> dict[str, tuple[str, ...]]:
    if release.plan is None or release.restores is not None:
        return {}
    try:
        plan = plans.load(release.plan)
    except (NotFoundError, DamagedError):  # the release stands without it
        return {}
    return {change.table: change.why for change in plan.changes if change.table in {*tables}}


def _diff(found: Comparison) -> dict[str, Any]:
    return {
        "table": found.table, "equal": found.equal, "blue": found.blue.version, "green": found.green.version,
        "position": dict(found.position), "same": found.common - found.changed, "changed": found.changed,
        "only_blue": found.only_blue, "only_green": found.only_green,
    }  # fmt: skip

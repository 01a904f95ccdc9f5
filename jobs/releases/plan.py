"""Plan: what a release would change, what it costs, and whether history reaches back. Pure; nothing is done.

Decide (`decide`), describe (`Plan.to_json`, `describe`), do (`jobs.server.release_jobs`): all read this data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from jobs.errors import NotFoundError, UsageError
from jobs.lake.release_log import Release
from jobs.lake.version import Version

Action = Literal["new", "changed", "unchanged", "removed"]

RECORDS_PER_SECOND = 150_000
"""What a rebuild reads on two cores when this lake has not measured one of its own yet."""
BUILD_OVERHEAD_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One definition as the client has it now, and the fingerprint of its meaning."""

    table: str
    definition: dict[str, Any]
    fingerprint: str
    topic: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class History:
    """What the log of one topic could rebuild from."""

    topic: str
    records: int
    bytes: int
    first_at: str | None = None
    complete: bool = True
    why: str = "the log holds every record since its first batch"


@dataclass(frozen=True, kw_only=True)
class Change:
    """`green` is a living version that already means the same (nothing to build), or None: build one."""

    table: str
    action: Action
    fingerprint: str | None
    blue: str | None = None
    green: str | None = None
    why: tuple[str, ...] = ()
    records: int = 0
    bytes: int = 0
    minutes_estimate: float = 0.0
    reaches_back: bool = True
    history: str = ""

    @property
    def builds(self) -> bool:
        return self.action in ("new", "changed") and self.green is None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The same release and the same meanings give the same id, so planning again finds the same plan."""

    id: str
    release_before: int | None
    changes: tuple[Change, ...]
    definitions: dict[str, dict[str, Any]]
    created_at: str
    git_commit: str | None = None

    @property
    def empty(self) -> bool:
        return all(change.action == "unchanged" for change in self.changes)

    @property
    def switched(self) -> tuple[Change, ...]:
        """The tables whose version changes hands: what is built, compared and gated."""
        return tuple(change for change in self.changes if change.action in ("new", "changed"))

    def to_json(self) -> dict[str, Any]:
        return {**json.loads(json.dumps(asdict(self))), "empty": self.empty}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Plan:
        known = {key: value for key, value in stored.items() if key != "empty"}
        changes = tuple(Change(**{**change, "why": tuple(change["why"])}) for change in known.pop("changes"))
        return cls(changes=changes, **known)

    def save(self, lake: Path) -> Path:
        """Beside and renamed: a reader or a crash never sees half a plan."""
        file = plan_file(lake, self.id)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".json.new")
        with beside.open("w") as out:
            json.dump(self.to_json(), out, indent=2, sort_keys=True)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
        return file


def plan_file(lake: Path, plan: str) -> Path:
    """Where a plan is kept; its reports lie beside it."""
    if not re.fullmatch(r"[0-9a-f]{12}", plan):
        raise UsageError(f"{plan!r} is not the id of a plan", "ids are 12 hexadecimal digits",
                         "take the id that `twinlake plan` printed")  # fmt: skip
    return lake / "plans" / f"{plan}.json"


def load(lake: Path, plan: str) -> Plan:
    try:
        return Plan.from_json(json.loads(plan_file(lake, plan).read_text()))
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no plan {plan}", "this lake never made one of that id",
                            "make one with `twinlake plan`") from error  # fmt: skip


def decide(
    *,
    live: Release | None,
    proposals: Iterable[Proposal],
    versions: Iterable[Version],
    histories: Mapping[str, History],
    created_at: str,
    git_commit: str | None = None,
    records_per_second: float = RECORDS_PER_SECOND,
) -> Plan:
    """The plan that makes the proposals live. A living version with the same fingerprint is reused."""
    versions = list(versions)
    proposed = {proposal.table: proposal for proposal in proposals}
    live_tables = live.tables if live else {}
    changes = [
        _change(proposal, live_tables.get(table), versions, histories[proposal.topic], records_per_second)
        for table, proposal in proposed.items()
    ]
    for table, blue in live_tables.items():
        if table not in proposed:
            why = ("the definition is gone from jobs/tables",)
            changes.append(Change(table=table, action="removed", fingerprint=None, blue=blue, why=why))
    before = live.number if live else None
    return Plan(
        id=_plan_id(before, changes),
        release_before=before,
        changes=tuple(changes),
        definitions={table: proposal.definition for table, proposal in proposed.items()},
        created_at=created_at,
        git_commit=git_commit,
    )


def _change(
    proposal: Proposal, blue: str | None, versions: list[Version], history: History, rate: float
) -> Change:
    mine = {version.name: version for version in versions if version.table == proposal.table}
    before = mine.get(blue) if blue else None
    if before and before.fingerprint == proposal.fingerprint:
        return Change(table=proposal.table, action="unchanged", fingerprint=proposal.fingerprint, blue=blue,
                      green=blue, history=history.why)  # fmt: skip
    same = [
        version for version in mine.values()
        if version.fingerprint == proposal.fingerprint and version.state == "living"
    ]  # fmt: skip
    green = max(same, key=lambda version: version.build).name if same else None
    why = differences(before.definition, proposal.definition) if before else ("the table is new",)
    builds = green is None and proposal.kind != "events"
    seconds = BUILD_OVERHEAD_SECONDS + history.records / max(rate, 1.0)
    return Change(
        table=proposal.table,
        action="changed" if blue else "new",
        fingerprint=proposal.fingerprint,
        blue=blue,
        green=green,
        why=why or ("the definition reads the same; its contract, schema or the engine has changed",),
        records=history.records if builds else 0,
        bytes=history.bytes if builds else 0,
        minutes_estimate=round(seconds / 60, 2) if builds else 0.0,
        reaches_back=history.complete,
        history=history.why,
    )


def _plan_id(before: int | None, changes: Iterable[Change]) -> str:
    meaning = [before, sorted([change.table, change.action, change.fingerprint] for change in changes)]
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()[:12]


def differences(old: Any, new: Any, at: str = "") -> tuple[str, ...]:
    """Where two stored definitions differ, one line each: `where[0]: nothing -> status <> 'cancelled'`."""
    if old == new:
        return ()
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return tuple(
            line
            for key in keys
            for line in differences(old.get(key), new.get(key), f"{at}.{key}" if at else key)
        )
    if _is_map(old) and _is_map(new):
        return differences(dict(old), dict(new), at)
    if isinstance(old, list) and isinstance(new, list):
        lines: list[str] = []
        for index in range(max(len(old), len(new))):
            left, right = (side[index] if index < len(side) else None for side in (old, new))
            lines += differences(left, right, f"{at}[{index}]")
        return tuple(lines)
    return (f"{at}: {_text(old)} -> {_text(new)}",)


def _is_map(value: Any) -> bool:
    """Definitions store ordered maps as lists of (name, value)."""
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value
    )


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def describe(plan: Plan) -> list[str]:
    """The plan in plain lines, the same ones wherever a person reads it."""
    if plan.empty:
        return [
            f"plan {plan.id}: nothing to change, every table means what release {plan.release_before} means"
        ]
    before = "an empty lake" if plan.release_before is None else f"release {plan.release_before}"
    lines = [f"plan {plan.id}: from {before}"]
    for change in plan.changes:
        lines.append(f"{change.table}: {change.action}")
        lines += [f"    {reason}" for reason in change.why]
        if change.builds:
            lines.append(
                f"    to build: {change.records:,} records, {change.bytes / 1e6:,.1f} MB of log,"
                f" about {change.minutes_estimate:g} min"
            )
        elif change.action in ("new", "changed"):
            lines.append(f"    nothing to build: version {change.green} is alive and means the same")
        if not change.reaches_back:
            lines.append(f"    history does not reach back far enough: {change.history}")
    return lines

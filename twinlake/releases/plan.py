"""Plan: what a release would change, what it costs, and whether history reaches back. Pure: nothing is done.

Decide (`decide`), describe (`describe`), do (`build`, `compare`, `gate`, `promote`): all read the same data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twinlake.base.version import DIRTY
from twinlake.lake.catalog.plans import Change, Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version

RECORDS_PER_SECOND = 150_000
"""What a rebuild reads on two cores when this lake has not measured one of its own yet."""
BUILD_OVERHEAD_SECONDS = 10.0
NONE_LOST: Mapping[tuple[str, str], str] = {}
NONE_STAY: Mapping[str, tuple[str, ...]] = {}
NO_CHANGELOGS: Mapping[str, str] = {}
MOST_OF_A_MAP = 10
"""So many lines say what differs in a map; the rules of a time zone are hundreds."""
_WHY_BESIDE = "the definition reads the same; its contract, schema or the engine has changed"
_WHY_BELOW = "the definition reads the same; a table that it reads, or the engine, has changed"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One definition as the client has it now, and the fingerprint of its meaning."""

    table: str
    definition: dict[str, Any]
    fingerprint: str
    topics: tuple[str, ...]
    """All upstream."""
    stores_rows: bool
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class History:
    """What the log of one topic could rebuild from."""

    topic: str
    records: int
    bytes: int
    complete: bool = True
    why: str = "the log holds every record since its first batch"
    kept: frozenset[str] = frozenset()
    """Fingerprints of logic whose states were kept of records that retention has deleted: such a build begins
    with them."""


def decide(
    *,
    live: Release | None,
    proposals: Iterable[Proposal],
    versions: Iterable[Version],
    histories: Mapping[str, History],
    created_at: str,
    git_commit: str | None = None,
    records_per_second: float = RECORDS_PER_SECOND,
    lost: Mapping[tuple[str, str], str] = NONE_LOST,
    stays: Mapping[str, tuple[str, ...]] = NONE_STAY,
    remove: Collection[str] = (),
    changelogs: Mapping[str, str] = NO_CHANGELOGS,
    published: Collection[str] = (),
) -> Plan:
    """The plan that makes the proposals live. A living version with the same fingerprint is reused.

    `lost` says by table and name why a version that is none of `versions` can never go on; `stays` why the
    proposal of a table is not its definition as it is written, or why there is none; `remove` names live
    tables that go; `changelogs` the topic of each table that has one, `published` those
    that other engines read in a folder.

    A proposal stands after those that it reads, and so do their changes.
    """
    versions = list(versions)
    proposed = {proposal.table: proposal for proposal in proposals}
    live_tables = live.tables if live else {}
    changes: list[Change] = []
    for table, proposal in proposed.items():
        used = {change.table: change.green for change in changes if change.table in proposal.reads}
        blue = live_tables.get(table)
        gone = lost.get((table, blue or ""))
        change = _change(proposal, blue, versions, histories, records_per_second, used, gone)
        changes.append(replace(change, why=(*change.why, *stays[table])) if table in stays else change)
    for table in sorted(stays.keys() - proposed.keys() - live_tables.keys()):
        changes.append(Change(table=table, action="left out", fingerprint=None, why=stays[table]))
    for table, blue in live_tables.items():
        if table in remove:
            why = ("it is to be removed", *_without(table, changelogs.get(table), table in published))
            changes.append(Change(table=table, action="removed", fingerprint=None, blue=blue, why=why))
        elif table not in proposed:  # this Twinlake does not understand the definition that it is live with
            why = stays.get(table, ("no definition of it was found",))
            changes.append(
                Change(table=table, action="unchanged", fingerprint=None, blue=blue, green=blue, why=why)
            )
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
    proposal: Proposal,
    blue: str | None,
    versions: list[Version],
    histories: Mapping[str, History],
    rate: float,
    used: Mapping[str, str | None],
    gone: str | None,
) -> Change:
    """`used` has the version of each table that it reads, None where that is to be built; `gone` says why
    blue can never go on."""
    mine = {version.name: version for version in versions if version.table == proposal.table}
    before = mine.get(blue) if blue else None
    if before and before.fingerprint == proposal.fingerprint and before.reads == used:
        return Change(table=proposal.table, action="unchanged", fingerprint=proposal.fingerprint, blue=blue,
                      green=blue, reads=proposal.reads)  # fmt: skip
    same = newest_alike(versions, proposal.table, proposal.fingerprint, used)
    green = same.name if same else None
    why = differences(before.definition, proposal.definition) if before else ("the table is new",)
    if blue and not before:
        why = (f"version {blue} cannot go on: {gone}" if gone else f"version {blue} is not alive any more",)
    builds = green is None and proposal.stores_rows
    logs = [histories[topic] for topic in proposal.topics]
    records = sum(history.records for history in logs)
    seconds = BUILD_OVERHEAD_SECONDS + records / max(rate, 1.0)
    return Change(
        table=proposal.table,
        action="changed" if blue else "new",
        fingerprint=proposal.fingerprint,
        blue=blue,
        green=green,
        why=why or (_WHY_BELOW if proposal.reads else _WHY_BESIDE,),
        records=records if builds else 0,
        bytes=sum(history.bytes for history in logs) if builds else 0,
        minutes_estimate=round(seconds / 60, 2) if builds else 0.0,
        reaches_back=all(one.complete or proposal.fingerprint in one.kept for one in logs),
        history="; ".join(history.why for history in logs),
        reads=proposal.reads,
    )


def _without(table: str, changelog: str | None, is_published: bool) -> Iterator[str]:
    """What a table's readers meet once it is gone."""
    yield f"queries of serve.{table} fail from then on; to keep the name, make it a view of another table"
    if changelog:
        yield (
            f"its changelog to topic {changelog} stands still from then on:"
            f" end it with `twinlake changelog {table} --stop`"
        )
    if is_published:
        yield (
            "what is published of it for other engines stays as it is from then on:"
            f" end it with `twinlake publish {table} --stop`"
        )


def newest_alike(
    versions: Iterable[Version], table: str, fingerprint: str | None, reads: Mapping[str, str | None]
) -> Version | None:
    """The living version of the table that means this and reads these versions, the one built last; None
    where there is none."""
    wanted = (table, fingerprint, "living", reads)
    same = [
        version
        for version in versions
        if (version.table, version.fingerprint, version.state, version.reads) == wanted
    ]
    return max(same, key=lambda version: version.build, default=None)


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
        lines = differences(dict(old), dict(new), at)
        more = len(lines) - MOST_OF_A_MAP
        return (*lines[:MOST_OF_A_MAP], f"{at}: {more} more") if more > 1 else lines
    if isinstance(old, list) and isinstance(new, list):
        found: list[str] = []
        for index in range(max(len(old), len(new))):
            left, right = (side[index] if index < len(side) else None for side in (old, new))
            found += differences(left, right, f"{at}[{index}]")
        return tuple(found)
    return (f"{at}: {_text(old)} -> {_text(new)}",)


def _is_map(value: Any) -> bool:
    """Definitions store ordered maps as lists of (name, value)."""
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value
    )


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    if _is_map(value) and len(value) > MOST_OF_A_MAP:
        return f"{len(value)} values"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def describe(plan: Plan) -> list[str]:
    """The plan in plain lines, the same ones wherever a person reads it."""
    stays = [line for change in plan.changes if change.stays for line in _staying(change)]
    if plan.empty:
        means = "" if stays else f", every table means what release {plan.release_before} means"
        return [f"plan {plan.id}: nothing to change{means}", *stays]
    before = "an empty lake" if plan.release_before is None else f"release {plan.release_before}"
    lines = [f"plan {plan.id}: from {before}"]
    if plan.git_commit:
        commit, dirty, _ = plan.git_commit.partition(DIRTY)
        lines.append(
            f"defined at commit {commit[:12]}{', with changes that are not committed' if dirty else ''}"
        )
    for change in plan.changes:
        if change.stays:
            continue
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
    return lines + stays


def _staying(change: Change) -> Iterator[str]:
    """A table that could change and does not, and how it would."""
    first, *more = change.why
    yield f"{change.table}: {change.action} ({first})"
    yield from (f"    {line}" for line in more)

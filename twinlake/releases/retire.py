"""Retire: what no kept release uses is fed no more; `maintain` deletes its files after a safe time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from twinlake.base.errors import BusyError
from twinlake.base.job import Run
from twinlake.base.times import format_moment, parse_moment
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.build import versions_among
from twinlake.releases.promote import one_switch_at_a_time

UNRELEASED = timedelta(days=7)
"""A version that was built and not released may still be promoted for so long; the newest build always."""


@dataclass(frozen=True, kw_only=True)
class Retired:
    """The kept releases, the versions (`table version`) that are fed no more, and those that still are.

    `busy` are left for the next time: somebody rebuilds them.
    """

    releases: tuple[int, ...]
    retired: tuple[str, ...]
    busy: tuple[str, ...]
    living: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) for name, value in asdict(self).items()}


def retire(lake: OpenLake, keep: int, run: Run) -> Retired:
    """Retire what none of the `keep` newest releases uses; one cannot roll back beyond them any more.

    No promotion and no rollback runs meanwhile, and no rebuild of a version that is retired. What a plan
    against the live release would make live, an older version perhaps, is not retired.
    """
    retired, busy = [], []
    with one_switch_at_a_time(run):
        history, now = release_log.releases(lake.path), lake.clock()
        kept, living, usable = history[-keep:], lake.versions.living(), lake.versions.usable()
        chosen = retirable(living, usable, history, lake.plans.all(), keep, now)
        for number, version in enumerate(chosen):
            run.check_cancelled()
            run.progress(number, len(chosen), "versions", f"retiring {version}")
            try:
                lake.versions.retire(version, format_moment(now))
                retired.append(str(version))
            except BusyError:  # whoever wants to switch is not kept waiting for it
                busy.append(str(version))
    return Retired(
        releases=tuple(release.number for release in kept), retired=tuple(retired), busy=tuple(busy),
        living=tuple(str(version) for version in lake.versions.living()),
    )  # fmt: skip


def retirable(
    living: Sequence[Version], usable: Sequence[Version], history: Sequence[Release], plans: Iterable[Plan],
    keep: int, now: datetime,
) -> list[Version]:  # fmt: skip
    """What `retire` would retire of these living versions, some of which can go on, in that order."""
    live = history[-1].number if history else None
    planned = [
        version
        for plan in plans
        if plan.release_before == live
        for version in versions_among(plan, living, usable).values()
    ]
    free = [one for one in unused(living, history, history[-keep:], now) if one not in planned]
    return readers_first(free, living)


def unused(
    living: Iterable[Version], history: Iterable[Release], kept: Iterable[Release], now: datetime
) -> list[Version]:
    """The living versions that no kept release uses, those excepted that were built a short time ago."""
    living = list(living)
    used = {use for release in kept for use in release.tables.items()}
    ever = {use for release in history for use in release.tables.items()}
    newest = {version.table: version for version in sorted(living, key=lambda version: version.build)}

    def may_be_promoted(version: Version) -> bool:
        if (version.table, version.name) in ever:
            return False
        return newest[version.table] == version or now - parse_moment(version.created_at) < UNRELEASED

    return [
        version for version in living
        if (version.table, version.name) not in used and not may_be_promoted(version)
    ]  # fmt: skip


def readers_first(chosen: Iterable[Version], living: Iterable[Version]) -> list[Version]:
    """Those of the chosen versions that no other living version reads, each after those that read it."""
    left, found = {(one.table, one.name): one for one in chosen}, list[Version]()
    others = {(one.table, one.name): one for one in living}
    while True:
        read = {use for one in others.values() for use in one.reads.items()}
        free = [key for key in left if key not in read]
        if not free:
            return found
        for key in free:
            found.append(left.pop(key))
            others.pop(key, None)

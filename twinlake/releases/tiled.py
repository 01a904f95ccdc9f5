"""Tiled: takes tables whose live version stores its rows as no new one does to today's form, in a release.

Their new versions are built beside those of before, which are served until the new ones show the same. Of the
lake's format step the number alone is made before: this needs the open logs, as new fingerprints do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from twinlake.base.errors import DifferenceError, TwinlakeError
from twinlake.base.job import Failed, Run
from twinlake.kinds.all import from_json
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.build import build, green_version
from twinlake.releases.compare import compare
from twinlake.releases.promote import Switched, promote
from twinlake.releases.propose import propose

journal = structlog.get_logger(__name__)

SHOWN_BEFORE = "the version before it shows the same"
"""Why a table may go live that no other engine can evaluate."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """`tables` have versions of today's form since the release; `left` stay as they are, each with why."""

    tables: tuple[str, ...]
    left: dict[str, str]
    release: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"tables": list(self.tables), "left": self.left, "release": self.release}


def outdated(lake: OpenLake) -> dict[str, dict[str, Any]]:
    """By live table whose rows are stored as no new version stores them, its definition for a new one."""
    found = {}
    for table, version in _live(lake).items():
        try:
            kind = from_json(version.definition)
        except TwinlakeError:  # it is not understood any more, and is no choice of any plan
            continue
        if (now := kind.stored_anew) != kind:
            found[table] = now.to_json()
    return found


def take_on(lake: OpenLake, run: Run) -> Taken | Failed:
    """Build what is outdated, compare, make it live. Killed anywhere, a second call finds what was done.

    DifferenceError where a new version shows something else; nothing has changed for readers then.
    """
    found, left = outdated(lake), dict[str, str]()
    plan = _planned(lake, found, run)
    for change in plan.switched if plan else ():
        if not change.reaches_back:
            left[change.table] = f"it cannot be built again: {change.history}"
    if left:
        plan = _planned(lake, {name: one for name, one in found.items() if name not in left}, run)
    if plan is None or not plan.switched:
        return Taken(tables=(), left=left)
    built = build(lake, plan, run)
    if isinstance(built, Failed):
        return built
    excused = dict[str, str]()
    for change in plan.switched:
        green = _refuse_different(lake, plan, change.table, change.blue, run)
        excused |= dict.fromkeys((change.table, *green.topics), SHOWN_BEFORE)
    switched = promote(lake, plan, release_log.NOBODY, run, excused)
    if not isinstance(switched, Switched):
        return switched
    tables = tuple(change.table for change in plan.switched)
    journal.info("tables are stored as new ones are", tables=tables, release=switched.release.number)
    return Taken(tables=tables, left=left, release=switched.release.number)


def _planned(lake: OpenLake, found: Mapping[str, dict[str, Any]], run: Run) -> Plan | None:
    if not found:
        return None
    definitions = {table: version.definition for table, version in _live(lake).items()}
    return propose(lake, {**definitions, **found}, None, run, sorted(found))


def _refuse_different(lake: OpenLake, plan: Plan, table: str, blue: str | None, run: Run) -> Version:
    """The new version of the table, which shows what the one before does."""
    green = green_version(lake, plan, table)
    assert blue is not None and green is not None  # a live table, whose new version has just been built
    found = compare(lake, lake.versions.get(table, blue), green, run)
    if not found.equal:
        raise DifferenceError(
            f"{green} does not show what {blue} does",
            f"{found.changed} rows differ, {found.only_blue} are lacking, {found.only_green} are more",
            f"see `twinlake diff {table}`, and `twinlake verify {table}`; {blue} is served as before",
        )  # fmt: skip
    return green


def _live(lake: OpenLake) -> dict[str, Version]:
    live = release_log.live(lake.path)
    wanted = set(live.tables.items()) if live else set()
    return {one.table: one for one in lake.versions.living() if (one.table, one.name) in wanted}

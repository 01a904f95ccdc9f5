"""Due: which windows the scheduled batch work has to rebuild or verify now.

Those for which the log has gained records since the last certificate, known from the log's records and never
from what speed wrote; all of history once a day, for a table without windows only then, and as long as a
difference stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from jobs.kinds.kind import grid_of
from jobs.kinds.windows import ALL, Windows
from jobs.lake.certificates import Base, Certificate
from jobs.lake.feed import Feed, Opened
from jobs.times import parse_moment

WHOLE_EVERY = timedelta(hours=24)

Work = Literal["rebuild", "verify"]
Gained = Callable[[Mapping[str, int]], Windows]
"""The windows that the records between a position and now lie in."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What one rebuild or verify is about; with `base` its certificate goes on from another one."""

    windows: Windows = ALL
    base: Base | None = None

    def to_json(self) -> dict[str, Any]:
        return {"windows": self.windows.to_json(), "base": self.base and vars(self.base)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Scope:
        """The inverse of `to_json`."""
        return cls(windows=Windows.from_json(told["windows"]), base=told["base"] and Base(**told["base"]))


WHOLE = Scope()


@dataclass(frozen=True, kw_only=True)
class Known:
    """The certificates of a version that decide: the newest one, and the newest rebuild's that was equal."""

    newest: Certificate | None
    rebuilt: Certificate | None


def due(work: Work, opened: Opened, known: Known, now: datetime, gained_since: Gained) -> Scope | None:
    """What has to be done now; None where nothing is due, which is known without a look at the log.

    A verify covers what the last rebuild replaced besides, so that what was written is compared as well.
    """
    if known.newest is None or not known.newest.equal:
        return WHOLE
    if grid_of(opened.definition) is None:
        last = known.rebuilt if work == "rebuild" else known.newest
        return None if last and last.kind == work and is_of_today(last.as_base, now) else WHOLE
    if known.rebuilt is None or not is_of_today(known.rebuilt.as_base, now):
        return WHOLE
    windows = gained_since(known.rebuilt.position)
    if work == "rebuild":
        return Scope(windows=windows, base=known.rebuilt.as_base)
    return Scope(windows=windows | Windows.from_json(known.rebuilt.windows), base=known.rebuilt.base)


def is_of_today(base: Base, now: datetime) -> bool:
    """Whether all of history was compared within a day; a clock that went back says nothing about an age."""
    return timedelta(0) <= now - parse_moment(base.whole_at) < WHOLE_EVERY


def gained(feed: Feed, since: Mapping[str, int], to: Mapping[str, int]) -> Windows:
    """The windows with records of the log's batches after `since` up to `to`; of a table that has windows."""
    from pyspark.sql import functions as F

    grid = feed.definition.grid
    assert grid is not None
    rows = feed.log.rows(since[feed.topic], to[feed.topic])
    starts = feed.definition.partial(rows).select(F.unix_micros(grid.column).alias("start")).distinct()
    return Windows.of(starts.toArrow().column("start").to_pylist(), grid.size)

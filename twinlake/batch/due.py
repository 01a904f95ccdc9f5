"""Due: which windows the scheduled batch work has to rebuild or verify now.

Those for which the log has gained records since the last certificate, known from the log's records and never
from what speed wrote; all of history once a day, for a table without windows only then, and as long as a
difference stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from twinlake.base.times import parse_moment
from twinlake.kinds.kind import grid_of, is_stored
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.certificates import Base, Certificate
from twinlake.lake.catalog.maintained_version import MaintainedVersion, Opened
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta

WHOLE_EVERY = timedelta(hours=24)
RETENTION = "retention"
"""The kind of a commit that deletes states of windows that are shown no more (`batch/ended.py`)."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What one rebuild or verify is about; with `base` its certificate goes on from another one."""

    windows: Windows = ALL
    base: Base | None = None

    def to_json(self) -> dict[str, Any]:
        return {"windows": self.windows.to_json(), "base": self.base and vars(self.base)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scope:
        """The inverse of `to_json`."""
        return cls(windows=Windows.from_json(data["windows"]), base=data["base"] and Base(**data["base"]))


WHOLE = Scope()


def due(
    opened: Opened,
    newest: Certificate | None,
    last: Certificate | None,
    now: datetime,
    changed: Callable[[Certificate], Windows],
) -> Scope | None:
    """What has to be done now; None where nothing is due.

    `newest` is the version's newest certificate, `last` the one to go on from: equal, over all of history, of
    the same sort of work. `changed` tells the windows that have changed since it.
    """
    if newest is None or not newest.equal or last is None or not is_within_a_day(last.as_base, now):
        return WHOLE
    windows = changed(last)
    if windows.is_all:
        return WHOLE
    if grid_of(opened.definition) is None and not (last.kind == "verify" and is_stored(opened.definition)):
        return None
    return Scope(windows=windows, base=last.as_base)  # of a table without windows what all rows have counted


def is_within_a_day(base: Base, now: datetime) -> bool:
    """Whether all of history was compared within a day; a clock that went back says nothing about an age."""
    return timedelta(0) <= now - parse_moment(base.whole_at) < WHOLE_EVERY


def gained(opened: Opened, since: Mapping[str, int], to: Mapping[str, int]) -> Windows:
    """The windows with records of the log's batches after `since` up to `to`; none for a kind without."""
    from pyspark.sql import functions as F

    grid = grid_of(opened.definition)
    if grid is None or not isinstance(opened, MaintainedVersion) or since == to:
        return Windows(())
    rows = opened.log.rows(since[opened.topic], to[opened.topic])
    starts = opened.definition.partial(rows).select(F.unix_micros(grid.column).alias("start")).distinct()
    return Windows.spanning(grid.spans(starts.toArrow().column("start").to_pylist()))


def rewritten(opened: Opened, since: int | None, to: Pin) -> Windows:
    """The windows that rebuilds have replaced after a Delta version, up to the pin.

    All of them where commits are gone that would tell, and where its own retention has deleted states: what
    all rows had counted says nothing any more. None for a view kind, which has no rows.
    """
    windows = Windows(())
    if not isinstance(opened, MaintainedVersion) or since is None or to.delta_version is None:
        return windows
    for version in range(since + 1, to.delta_version + 1):
        made = delta.commit(opened.path, version)
        if made is None or made.metadata.get("kind") == RETENTION:
            return ALL
        if made.metadata.get("kind") == "rebuild":
            windows |= Windows.from_json(made.metadata["windows"])
    return windows

"""Relations and moments of the lake as SQL text, for whoever puts them into a view."""

from __future__ import annotations

from twinlake.base import quote
from twinlake.base.location import Location
from twinlake.base.times import format_moment, from_micros
from twinlake.kinds.kind import UNKNOWN_TIME
from twinlake.lake.delta import delta


def relation_sql(path: Location, delta_version: int | None = None) -> str:
    """A Delta table by its path, pinned at a Delta version where one is given, for a statement that is made
    now; DamagedError where its log is torn."""
    delta.refuse_torn(path, delta_version)
    pinned = "" if delta_version is None else f" VERSION AS OF {delta_version}"
    return f"delta.{quote.name(str(path))}{pinned}"


def moment_sql(micros: int | None) -> str:
    """Microseconds since 1970 as a timestamp literal, NULL as long as there are none."""
    return UNKNOWN_TIME if micros is None else f"TIMESTAMP '{format_moment(from_micros(micros))}'"

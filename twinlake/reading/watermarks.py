"""Watermarks of tables, as the newest commits say them."""

from __future__ import annotations

from collections.abc import Iterable

from twinlake.base.location import Location
from twinlake.kinds.clock import OF_THE_LOG
from twinlake.lake.delta import delta
from twinlake.reading.views import WATERMARK


def of_newest(path: Location) -> dict[str, int | None]:
    """By clock, that of the table's newest commit, in microseconds; None as long as it has none."""
    metadata = delta.newest_metadata(path, lambda metadata: "watermark" in metadata) or {}
    return {**metadata.get("clocks", {}), WATERMARK: metadata.get("watermark")}


def least(of_tables: Iterable[dict[str, int | None]]) -> dict[str, int | None]:
    """By clock, up to where all of them have come; None where one has none."""
    known = list(of_tables)
    found: dict[str, int | None] = {}
    for clock in (WATERMARK, *OF_THE_LOG):
        moments = [one.get(clock) for one in known]
        found[clock] = None if None in moments else min(one for one in moments if one is not None)
    return found

"""Watermarks of tables: what the newest commits say, and the views by which readers' views read them.

`meta.<table>_<version>_<topic>` tells a version's watermark to `serve` and to the releases that it is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinlake.base import quote
from twinlake.base.location import Location
from twinlake.kinds.clock import OF_THE_LOG
from twinlake.lake.delta import delta
from twinlake.lake.log import topic_views
from twinlake.lake.log.log_clock import moment_sql
from twinlake.reading.views import View

META = "meta"
WATERMARK = "watermark"


def watermark_name(table: str, version: str, topic: str) -> str:
    """Names in the catalog have letters, digits and _ only."""
    return f"{table}_{version.replace('-', '_')}_{topic_views.stem(topic)}"


def watermark_sql(table: str, version: str, topic: str, clock: str = WATERMARK) -> str:
    """The scalar expression that a served view uses for its version's watermark of a topic, or for how far
    one of the log's own clocks has come."""
    place = f"{quote.name(META)}.{quote.name(watermark_name(table, version, topic))}"
    return f"(SELECT {clock} FROM {place})"


def watermark_view(table: str, version: str, topic: str, values: Mapping[str, int | None]) -> View:
    """The watermark and the log's clocks in microseconds, of `values` by name; NULL for one that is not."""
    columns = (f"{moment_sql(values.get(name))} AS {name}" for name in (WATERMARK, *OF_THE_LOG))
    return View(schema=META, name=watermark_name(table, version, topic), sql=f"SELECT {', '.join(columns)}")


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

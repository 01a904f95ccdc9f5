"""Compare: blue and green of one table at one position, each read at the Delta version it was pinned at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from jobs.batch.diff import Diff, Side, compare
from jobs.kinds import compile
from jobs.lake.version import Pin
from jobs.reading import views
from jobs.speed.advance import Feed, is_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMELESS = ("final",)
"""Columns that speak about time rather than history: no part of a comparison."""


@contextmanager
def pinned_view(feed: Feed, pin: Pin) -> Iterator[DataFrame]:
    """What readers of the version see, as it was when it was pinned."""
    late_after = feed.log.topic.contract.late_after
    watermark = views.watermark_value_sql(pin.watermark)
    if is_stored(feed.definition):
        relation = views.relation_sql(feed.path, pin.delta_version)
        yield feed.spark.sql(compile.view_sql(feed.definition, relation, watermark, late_after=late_after))
        return
    name = f"pinned_{uuid4().hex}"
    feed.log.rows(0, pin.position[feed.log.topic.name]).createOrReplaceTempView(name)
    try:
        yield feed.spark.sql(compile.view_sql(feed.definition, name, watermark, late_after=late_after))
    finally:
        feed.spark.catalog.dropTempView(name)


def compare_versions(blue: tuple[Feed, Pin], green: tuple[Feed, Pin]) -> Diff:
    """The difference of two pinned versions of one table; the pins must be at the same position."""
    (blue_feed, blue_pin), (green_feed, green_pin) = blue, green
    if blue_pin.position != green_pin.position:
        raise ValueError(f"pinned at different positions: {blue_pin.position} and {green_pin.position}")
    sides = (
        Side(version=blue_pin.version.name, delta_version=blue_pin.delta_version),
        Side(version=green_pin.version.name, delta_version=green_pin.delta_version),
    )
    table, keys = green_feed.definition.name, green_feed.definition.key_columns
    with pinned_view(blue_feed, blue_pin) as old, pinned_view(green_feed, green_pin) as new:
        if tuple(blue_feed.definition.key_columns) != tuple(keys):
            return _other_keys(table, old, new, keys, sides, green_pin)
        return compare(
            table=table,
            blue=old,
            green=new,
            keys=keys,
            sides=sides,
            position=green_pin.position,
            ignore=TIMELESS,
        )


def _other_keys(
    table: str, blue: DataFrame, green: DataFrame, keys: tuple[str, ...], sides: tuple[Side, Side], pin: Pin
) -> Diff:
    """Rows with other keys never meet: all there is to say is how many each side has."""
    return Diff(
        table=table,
        blue=sides[0],
        green=sides[1],
        position=pin.position,
        keys=tuple(keys),
        common=0,
        changed=0,
        only_blue=blue.count(),
        only_green=green.count(),
        columns_only_blue=tuple(name for name in blue.columns if name not in green.columns),
        columns_only_green=tuple(name for name in green.columns if name not in blue.columns),
    )

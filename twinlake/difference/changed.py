"""Changed: which rows of a table differ between two pins, the cheapest way that is exact.

Changelogs, readers who follow a table and webhooks all get these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.difference.diff import changes
from twinlake.difference.pinned import exact_side, only, side
from twinlake.difference.touched import is_readable, touched
from twinlake.kinds.kind import is_stored
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened, view_clock_at
from twinlake.lake.catalog.version import Pin
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORDS, TOUCHED, ALL_KEYS = "new records", "touched keys", "all keys"
WHOLE_EVERY_S = 30.0
"""A table whose every key is compared is compared so often at most, and a tenth of the time."""


@dataclass(frozen=True, kw_only=True)
class Changed:
    """`rows` has the columns `l` and `r`, see `diff.changes`; `way` says in words how they were found."""

    way: str
    rows: DataFrame


def changed_rows(before: Opened | None, old: Pin | None, opened: Opened, pin: Pin) -> Changed | None:
    """From what the old pin showed to what this one shows; None where the old one cannot be read any more.

    Of two pins of one version doubles are compared exactly, and only the keys that steps have touched, where
    those are known.
    """
    if old is None or before is None or not is_readable(before, old):
        return None
    keys = opened.definition.view_keys
    if old.version != pin.version:
        return Changed(way=ALL_KEYS, rows=changes(side(before, old), side(opened, pin), keys))
    if isinstance(opened, LogView) and is_of_records(opened):
        return Changed(way=RECORDS, rows=_all_new(new_records(opened, old, pin)))
    left, right = exact_side(opened, old), exact_side(opened, pin)
    by = touched(opened, old, pin) if isinstance(opened, MaintainedVersion) else None
    if by is None:
        return Changed(way=ALL_KEYS, rows=changes(left, right, keys))
    return Changed(way=TOUCHED, rows=changes(only(left, by), only(right, by), keys))


def rest_s(opened: Opened, way: str, took_s: float) -> float:
    """For how long nobody looks again, after a difference that was found that way in so many seconds."""
    if way in (TOUCHED, RECORDS):
        return took_s
    return 0.0 if is_stored(opened.definition) else max(WHOLE_EVERY_S, 9 * took_s)


def all_rows(opened: Opened, pin: Pin) -> DataFrame:
    """All that the pin shows, in the form of `Changed.rows`: as if nothing had been there before."""
    return _all_new(exact_side(opened, pin).rows)


def is_of_records(opened: Opened) -> bool:
    """Whether its rows are records of a log, which come and never change."""
    definition = opened.definition
    return (
        isinstance(opened, LogView)
        and not opened.reads
        and set(definition.view_keys) <= set(record_id.NAMES)
        and definition.timeless == definition.output
    )


def new_records(opened: LogView, old: Pin, new: Pin) -> DataFrame:
    """The rows that the batches between two pins have added to such a view."""
    relations = {
        topic: f"({opened.logs[topic].rows_sql(new.position[topic])} AND batch > {old.position[topic]})"
        for topic in opened.definition.inputs
    }
    return opened.spark.sql(opened.definition.view(relations, view_clock_at(opened.logs, new)))


def gone_and_there(found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Of rows with `l` and `r`: the columns `gone`, a key, and `row`, of which each row has one."""
    from pyspark.sql import functions as F

    key = F.struct(*(F.col("l").getField(name).alias(name) for name in keys))
    gone = F.when(F.col("r").isNull(), key)
    return found.select(gone.alias("gone"), F.col("r").alias("row"))


def without_scales(found: DataFrame, *shown: Sequence[str]) -> DataFrame:
    """Both sides with the columns that are shown, in their order."""
    from pyspark.sql import functions as F

    names = list(dict.fromkeys(one for names in shown for one in names))

    def row(at: str) -> Column:
        there = found.select(f"{at}.*").columns
        kept = F.struct(*(F.col(at).getField(name).alias(name) for name in names if name in there))
        return F.when(F.col(at).isNotNull(), kept).alias(at)

    return found.select(row("l"), row("r"))


def _all_new(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    whole = rows.select(F.struct("*").alias("r"))
    return whole.select(F.lit(None).cast(whole.schema["r"].dataType).alias("l"), "r")

"""Over time: what a difference counts and sums up, by buckets of a column of time, in one pass.

How long buckets are follows from the times that there are, which are known only when all rows have been seen:
so Spark counts by the minute first, and adds the minutes up to about `MOST` buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST = 200
MINUTE, HOUR, DAY = 60, 3_600, 86_400
SIZES = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 28 * DAY)
"""Of buckets, in seconds; a time for which they are too short is cut into equal ones."""
DIGITS = 38
"""A decimal of more does not fit, as Spark sees it."""
Total = tuple["Column", "Column"]
"""The sum over rows, and the value that is summed up."""


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """`at` is when it begins, in seconds since 1970; None for the rows whose time is not known."""

    at: int | None
    left: int
    right: int
    differing: int
    totals: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """By column the sums of both sides; None where there was nothing to sum up, or too much."""


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """By `column`, each so many `seconds` long, in the order of time; `first` and `last` are the earliest and
    the latest time of a row that differs, in seconds since 1970."""

    column: str
    seconds: int
    rows: tuple[Bucket, ...]
    first: int | None
    last: int | None


def bucketed(
    rows: DataFrame, time: Column, differs: Column, counts: Sequence[Column], totals: Mapping[str, Total]
) -> list[dict[str, Any]]:
    """One row per bucket, that of no known time last: `at`, `size`, `first` and `last` time of `differs`, the
    counts by their aliases, the totals by their names, each with `<name>_n`, of how many values it is.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    seconds = F.unix_seconds(time.cast("timestamp"))
    different = F.when(differs, seconds)
    minutes = rows.groupBy((seconds - F.pmod(seconds, F.lit(MINUTE))).alias("minute")).agg(
        F.min(different).alias("first"),
        F.max(different).alias("last"),
        *counts,
        *(total.alias(name) for name, (total, _) in totals.items()),
        *(F.count(value).alias(f"{name}_n") for name, (_, value) in totals.items()),
    )
    everywhere = Window.partitionBy(F.lit(1))
    span = F.max("minute").over(everywhere) - F.min("minute").over(everywhere)
    known = (F.when(span < F.lit(MOST * size), F.lit(size)) for size in SIZES)
    size = F.coalesce(*known, F.ceil(span / F.lit(MOST)).cast("bigint"))
    sized = minutes.withColumn("size", size)
    at = (F.col("minute") - F.pmod(F.col("minute"), F.col("size"))).alias("at")
    taken = {"minute", "first", "last", "size", *totals, *(f"{name}_n" for name in totals)}
    found = sized.groupBy("size", at).agg(
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        *(F.sum(name).alias(name) for name in minutes.columns if name not in taken),
        *(
            F.when(F.count_if((F.col(f"{name}_n") > 0) & F.col(name).isNull()) == 0, F.try_sum(name)).alias(
                name
            )
            for name in totals
        ),
        *(F.sum(f"{name}_n").alias(f"{name}_n") for name in totals),
    )
    return [row.asDict() for row in found.orderBy(F.col("at").asc_nulls_last()).collect()]


def added(
    buckets: Iterable[Mapping[str, Any]], totals: Iterable[str], counted: Iterable[str]
) -> dict[str, Any]:
    """The counts and totals of all buckets: what `bucketed` gives, in one row."""
    rows = [*buckets]
    sums = {name: _sum([(row[name], row[f"{name}_n"]) for row in rows]) for name in totals}
    return {name: sum(row[name] or 0 for row in rows) for name in counted} | sums


def _sum(totals: Sequence[tuple[Any, int]]) -> Any:
    """None where there is nothing, where one is not known, or where it does not fit."""
    known = [one for one, _ in totals if one is not None]
    if not known or any(one is None and values for one, values in totals):
        return None
    if not isinstance(known[0], Decimal):
        return sum(known)
    with localcontext(prec=2 * DIGITS):
        found = sum(known, Decimal(0))
        return found if len(found.as_tuple().digits) <= DIGITS else None

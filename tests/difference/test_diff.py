"""The keyed difference of two relations."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from twinlake.difference.diff import ColumnDiff, Diff, Side, diff
from twinlake.difference.over_time import DAY, HOUR, MINUTE, MOST

SCHEMA = "k string, w int, amount decimal(38,2), share double, size double, note string"
SCALES = {"share": "size"}
AMOUNT = ("decimal(38,2)", "decimal(38,2)")
AT = ("*", "timestamp_seconds(w * 60) AS at")


def found(
    left: DataFrame, right: DataFrame, shown: int = 20, totals: Sequence[str] = (), **more: Any
) -> Diff:
    scales = SCALES if "size" in left.columns else {}
    sides = (Side(rows=left, scales=scales), Side(rows=right, scales=scales))
    return diff(*sides, ("k", "w"), shown=shown, totals=totals, **more)


def test_rows_meet_by_key_null_equals_null_and_doubles_have_the_tolerance_of_their_scale(
    spark: SparkSession,
) -> None:
    left = spark.createDataFrame(
        [
            ("a", 1, Decimal(1), 0.3, 1.0, None),
            ("a", None, Decimal(2), 1.0, 1.0, "x"),
            ("b", 1, Decimal(3), 2.0, 2.0, "y"),
            ("c", 1, Decimal(4), None, 0.0, "z"),
        ],
        SCHEMA,
    )
    right = spark.createDataFrame(
        [
            ("a", 1, Decimal(1), 0.1 + 0.2, 1.0, None),
            ("a", None, Decimal(2), 1.0, 1.0, None),
            ("b", 1, Decimal(5), 2.1, 2.0, "y"),
            ("d", 1, Decimal(6), None, 0.0, "z"),
        ],
        SCHEMA,
    )

    made = found(left, right, totals=("amount", "share", "note"))

    assert (made.common, made.changed, made.only_left, made.only_right) == (3, 2, 1, 1)
    assert (made.compared, made.differing) == (5, 4)
    assert made.columns == (
        ColumnDiff(name="amount", types=AMOUNT, changed=1, totals=(Decimal("10.00"), Decimal("14.00"))),
        ColumnDiff(name="share", types=("double", "double"), changed=1, totals=(3.3, 3.4000000000000004)),
        ColumnDiff(name="note", types=("string", "string"), changed=1),
    )
    assert [(row.sort, _key(row.left, row.right), row.columns) for row in made.rows] == [
        ("changed", ("a", None), ("note",)),
        ("changed", ("b", 1), ("amount", "share")),
        ("only_left", ("c", 1), ()),
        ("only_right", ("d", 1), ()),
    ]
    assert (found(left, left).differing, found(left, left).rows) == (0, ())


def test_a_scale_that_is_compared_itself_is_a_column_like_any_other(spark: SparkSession) -> None:
    """States keep their scales as columns of their own; a view's are there for the comparison only."""
    left = spark.sql("SELECT 'a' k, 1 w, 1D total, 4D size")
    right = spark.sql("SELECT 'a' k, 1 w, 1D total, 5D size")
    scales = {"total": "size", "size": "size"}

    made = diff(Side(rows=left, scales=scales), Side(rows=right, scales=scales), ("k", "w"), shown=1)

    assert [(column.name, column.changed) for column in made.columns] == [("total", 0), ("size", 1)]


def test_the_first_rows_of_each_sort_are_kept(spark: SparkSession) -> None:
    left = spark.range(50).selectExpr("cast(id as string) k", "0 w", "id amount")
    right = spark.range(50).selectExpr("cast(id as string) k", "0 w", "id + 1 amount")

    made = found(left, right, shown=3)

    assert made.changed == 50
    assert [_key(row.left, row.right)[0] for row in made.rows] == ["0", "1", "10"]


def test_a_column_of_one_side_is_left_out(spark: SparkSession) -> None:
    made = found(spark.sql("SELECT 'a' k, 1 w, 1 old"), spark.sql("SELECT 'a' k, 1 w, 1 new"))

    assert (made.columns, made.differing, made.common) == ((), 0, 1)


def test_numbers_of_two_types_compare_by_value_and_a_total_that_does_not_fit_is_null(
    spark: SparkSession,
) -> None:
    huge = "CAST('9' || repeat('9', 37) AS decimal(38,0))"
    left = spark.sql(f"SELECT 'a' k, id w, 7 n, {huge} huge FROM range(2)")
    right = spark.sql(f"SELECT 'a' k, id w, 7BD n, {huge} huge FROM range(2)")

    made = found(left, right, totals=("n", "huge"))
    by_time = found(left.selectExpr(*AT), right.selectExpr(*AT), totals=("n", "huge"), over="at")

    assert made.differing == 0
    for each in (made, by_time):
        assert [column.totals for column in each.columns][:2] == [(Decimal(14), Decimal(14)), (None, None)]


def over(spark: SparkSession, rows: str, step: int) -> DataFrame:
    """So many rows, one each `step` seconds from 1970 on."""
    return spark.sql(f"SELECT 'a' k, id w, 1 n, timestamp_seconds(id * {step}) at FROM {rows}")


def test_what_differs_is_counted_by_time_in_buckets_that_follow_from_the_times(spark: SparkSession) -> None:
    left = over(spark, "range(10)", 30)
    right = over(spark, "range(2, 12)", 30).withColumn("n", F.when(F.col("w") == 5, 8).otherwise(F.col("n")))

    made = found(left, right, totals=("n",), over="at", largest_first=True)

    assert (made.common, made.changed, made.only_left, made.only_right) == (8, 1, 2, 2)
    assert made.columns[0].totals == (10, 17)
    buckets = made.over_time
    assert buckets and (buckets.column, buckets.seconds) == ("at", MINUTE)
    assert (buckets.first, buckets.last) == (0, 330)
    assert [(one.at, one.left, one.right, one.differing, one.totals["n"]) for one in buckets.rows] == [
        (0, 2, 0, 2, (2, None)), (60, 2, 2, 0, (2, 2)), (120, 2, 2, 1, (2, 9)), (180, 2, 2, 0, (2, 2)),
        (240, 2, 2, 0, (2, 2)), (300, 0, 2, 2, (None, 2)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "seconds"), [(60, 5 * MINUTE), (HOUR, 6 * HOUR), (DAY, 7 * DAY), (60 * DAY, 27_000_000 - 81_000)]
)
def test_however_long_the_time_is_there_are_about_200_buckets(
    spark: SparkSession, step: int, seconds: int
) -> None:
    rows = over(spark, "range(1000)", step)

    buckets = found(rows, rows, over="at").over_time

    assert buckets and len(buckets.rows) <= MOST + 1
    assert buckets.seconds == (seconds if step < 60 * DAY else -(-999 * step // MOST))
    assert sum(one.left for one in buckets.rows) == 1000


def test_rows_of_no_known_time_are_counted_apart(spark: SparkSession) -> None:
    left = spark.sql("SELECT 'a' k, 1 w, CAST(NULL AS TIMESTAMP) at, 1 n")
    right = spark.sql("SELECT 'a' k, 1 w, TIMESTAMP '-4000-01-01 00:00:00Z' at, 2 n")

    buckets = found(left, right, over="at").over_time

    assert buckets and (buckets.first, buckets.last) == (None, None)
    assert [(one.at, one.differing) for one in buckets.rows] == [(None, 1)]
    nothing = left.where("false")
    empty = found(nothing, nothing, over="at")
    assert empty.differing == 0 and empty.over_time and empty.over_time.rows == ()


def test_the_rows_that_differ_most_come_first_whatever_their_units(spark: SparkSession) -> None:
    """Row 3 has most of what `grams` differ by, row 7 all of what `share` does."""
    left = spark.sql("SELECT 'a' k, id w, 1000000 grams, 0.5D share FROM range(10)")
    right = spark.sql(
        "SELECT 'a' k, id w, 1000000 + CASE id WHEN 3 THEN 9000 WHEN 4 THEN 1000 WHEN 5 THEN 100 ELSE 0 END"
        " grams,"
        " CASE id WHEN 7 THEN 0.6D WHEN 8 THEN CAST('NaN' AS DOUBLE) ELSE 0.5D END share FROM range(10)"
    )

    made = found(left, right.where("w <> 8"), totals=("grams",), largest_first=True)
    nan = found(left, right, largest_first=True)

    assert [row.known["w"] for row in made.rows] == [7, 3, 4, 5, 8]
    assert [row.known["w"] for row in nan.rows] == [7, 8, 3, 4, 5], "what is no number differs infinitely"


def test_a_row_whose_time_has_moved_is_counted_at_both(spark: SparkSession) -> None:
    """A release gives the row of minute 0 the time of minute 5; it differs once, at the newer one."""
    left = over(spark, "range(0, 6)", 60)
    moved = F.when(F.col("w") == 0, F.timestamp_seconds(F.lit(300))).otherwise(F.col("at"))

    made = found(left, left.withColumn("at", moved), totals=("n",), over="at", largest_first=True)

    assert (made.common, made.changed, made.only_left, made.only_right) == (6, 1, 0, 0)
    assert made.columns[0].totals == (6, 6) and made.over_time
    assert (made.over_time.first, made.over_time.last) == (0, 300)
    rows = made.over_time.rows
    assert [(one.left, one.right) for one in rows] == [(1, 0), (1, 1), (1, 1), (1, 1), (1, 1), (1, 2)]
    assert [one.differing for one in rows] == [0, 0, 0, 0, 0, 1]
    assert (rows[0].totals["n"], rows[-1].totals["n"]) == ((1, None), (1, 2))


def _key(left: Row | None, right: Row | None) -> tuple[str, int]:
    known = left if left is not None else right
    assert known is not None
    return known["k"], known["w"]

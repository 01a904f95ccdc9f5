"""The keyed difference of two relations."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import DataFrame, Row, SparkSession

from twinlake.batch.diff import ColumnDiff, Diff, Side, diff

SCHEMA = "k string, w int, amount decimal(38,2), share double, size double, note string"
SCALES = {"share": "size"}
AMOUNT = ("decimal(38,2)", "decimal(38,2)")


def found(left: DataFrame, right: DataFrame, shown: int = 20, totals: bool = False) -> Diff:
    scales = SCALES if "size" in left.columns else {}
    sides = (Side(rows=left, scales=scales), Side(rows=right, scales=scales))
    return diff(*sides, ("k", "w"), shown=shown, totals=totals)


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

    made = found(left, right, totals=True)

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

    made = found(left, right, totals=True)

    assert made.differing == 0
    assert [column.totals for column in made.columns] == [(Decimal(14), Decimal(14)), (None, None)]


def _key(left: Row | None, right: Row | None) -> tuple[str, int]:
    known = left if left is not None else right
    assert known is not None
    return known["k"], known["w"]

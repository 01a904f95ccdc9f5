"""The keyed difference of two relations."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

from jobs.batch.diff import ColumnDiff, Diff, Side, compare

SCHEMA = "k string, w int, amount decimal(38,2), share double, note string"
SIDES = (Side(version="b-1", delta_version=1), Side(version="g-2", delta_version=2))


def diff(blue: DataFrame, green: DataFrame, **more: int) -> Diff:
    return compare(
        table="t", blue=blue, green=green, keys=("k", "w"), sides=SIDES, position={"orders": 3}, **more
    )  # fmt: skip


def test_rows_meet_by_key_null_equals_null_and_doubles_have_their_tolerance(spark: SparkSession) -> None:
    blue = spark.createDataFrame(
        [
            ("a", 1, Decimal(1), 0.3, None),
            ("a", None, Decimal(2), 1.0, "x"),
            ("b", 1, Decimal(3), 2.0, "y"),
            ("c", 1, Decimal(4), None, "z"),
        ],
        SCHEMA,
    )
    green = spark.createDataFrame(
        [
            ("a", 1, Decimal(1), 0.1 + 0.2, None),
            ("a", None, Decimal(2), 1.0, None),
            ("b", 1, Decimal(5), 2.1, "y"),
            ("d", 1, Decimal(6), None, "z"),
        ],
        SCHEMA,
    )
    found = diff(blue, green)

    assert (found.common, found.changed, found.only_blue, found.only_green) == (3, 2, 1, 1)
    assert found.columns == (
        ColumnDiff(name="amount", type="decimal(38,2)", changed=1, blue_total="10.00", green_total="14.00"),
        ColumnDiff(
            name="share", type="double", changed=1, blue_total="3.3", green_total="3.4000000000000004"
        ),
        ColumnDiff(name="note", type="string", changed=1),
    )
    assert [(one.kind, one.key, one.columns) for one in found.samples] == [
        ("changed", {"k": "a", "w": None}, ("note",)),
        ("changed", {"k": "b", "w": 1}, ("amount", "share")),
        ("only_blue", {"k": "c", "w": 1}, ()),
        ("only_green", {"k": "d", "w": 1}, ()),
    ]
    assert not found.equal
    assert diff(blue, blue).equal


def test_samples_are_the_first_of_each_kind(spark: SparkSession) -> None:
    blue = spark.range(50).selectExpr("cast(id as string) k", "0 w", "id amount")
    green = spark.range(50).selectExpr("cast(id as string) k", "0 w", "id + 1 amount")
    found = diff(blue, green, samples=3)

    assert found.changed == 50
    assert [one.key["k"] for one in found.samples] == ["0", "1", "10"]


def test_a_column_on_one_side_is_named(spark: SparkSession) -> None:
    blue = spark.sql("SELECT 'a' k, 1 w, 1 old")
    green = spark.sql("SELECT 'a' k, 1 w, 1 new")
    found = diff(blue, green)

    assert (found.columns_only_blue, found.columns_only_green) == (("old",), ("new",))
    assert (found.changed, found.equal) == (0, False)

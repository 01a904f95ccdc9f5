"""What equal means: exact types exactly, doubles that add up within 1e-9 of what went into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from twinlake.kinds.equality import is_number, same, scale_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _same(spark: SparkSession, left: str, right: str, *scales: str) -> object:
    """What the rule says of two SQL values that stand in a relation of their own."""
    from pyspark.sql import functions as F

    values = [f"{sql} AS v{index}" for index, sql in enumerate((left, right, *scales))]
    rows = spark.sql(f"SELECT {', '.join(values)}")
    types = dict(rows.dtypes)
    columns = [F.col(name) for name in rows.columns]
    found = rows.select(same(columns[0], columns[1], (types["v0"], types["v1"]), columns[2:])).first()
    assert found is not None
    return found[0]


def _cases(spark: SparkSession, cases: list[tuple[str, str]]) -> list[object]:
    return [_same(spark, left, right) for left, right in cases]


NULLS = ["CAST(NULL AS INT)", "CAST(NULL AS STRING)", "CAST(NULL AS DOUBLE)", "CAST(NULL AS BINARY)"]


@pytest.mark.parametrize("null", NULLS)
def test_null_equals_null(spark: SparkSession, null: str) -> None:
    assert _same(spark, null, null) is True


@pytest.mark.parametrize(("null", "value"), list(zip(NULLS, ["0", "''", "0.0D", "X''"], strict=True)))
def test_null_equals_no_value_not_even_an_empty_one(spark: SparkSession, null: str, value: str) -> None:
    assert [_same(spark, null, value), _same(spark, value, null)] == [False, False]


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("1", "2"),
        ("9007199254740992L", "9007199254740993L"),
        ("CAST('0.10' AS DECIMAL(38,2))", "CAST('0.11' AS DECIMAL(38,2))"),
        (
            f"CAST('{'9' * 36}.00' AS DECIMAL(38,2))",
            f"CAST('{'9' * 36}.01' AS DECIMAL(38,2))",
        ),
        ("'a'", "'A'"),
        ("'a'", "'a '"),
        ("true", "false"),
        ("DATE '2026-01-01'", "DATE '2026-01-02'"),
        ("TIMESTAMP '2026-01-01 00:00:00Z'", "TIMESTAMP '2026-01-01 00:00:00.000001Z'"),
        ("X'00FF'", "X'00FE'"),
        ("array(1, NULL)", "array(1, 2)"),
        ("named_struct('a', 1)", "named_struct('a', 2)"),
    ],
)
def test_exact_types_compare_exactly(spark: SparkSession, value: str, other: str) -> None:
    assert [_same(spark, value, value), _same(spark, value, other)] == [True, False]


@pytest.mark.parametrize(
    ("value", "alike", "other"),
    [
        ("1", "1L", "2L"),
        ("CAST(1 AS TINYINT)", "1", "2"),
        ("1", "1.0D", "1.5D"),
        ("CAST(1 AS SMALLINT)", "CAST(1 AS FLOAT)", "CAST(1.5 AS FLOAT)"),
        (
            "CAST('1.50' AS DECIMAL(4,2))",
            "CAST('1.5000' AS DECIMAL(10,4))",
            "CAST('1.5001' AS DECIMAL(10,4))",
        ),
        ("CAST('1.50' AS DECIMAL(4,2))", "1.5D", "1.25D"),
        ("CAST('2.00' AS DECIMAL(4,2))", "2L", "3L"),
        ("CAST(NULL AS INT)", "CAST(NULL AS DOUBLE)", "0.0D"),
    ],
)
def test_numbers_of_different_types_compare_by_value(
    spark: SparkSession, value: str, alike: str, other: str
) -> None:
    assert _cases(spark, [(value, alike), (alike, value), (value, other), (other, value)]) == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "alike", "other"),
    [
        ("1", "'1'", "'01'"),
        ("1.0D", "'1.0'", "'1'"),
        ("true", "'true'", "'TRUE'"),
        ("DATE '2026-01-01'", "'2026-01-01'", "'2026-1-1'"),
        ("array(1, 2)", "array(1L, 2L)", "array(1L, 3L)"),
        ("DATE '2026-01-01'", "CAST('2026-01-01' AS STRING)", "TIMESTAMP '2026-01-01 00:00:00Z'"),
        ("CAST(NULL AS INT)", "CAST(NULL AS STRING)", "'NULL'"),
    ],
)
def test_other_values_of_different_types_compare_by_their_text(
    spark: SparkSession, value: str, alike: str, other: str
) -> None:
    assert _cases(spark, [(value, alike), (alike, value), (value, other), (other, value)]) == [
        True, True, False, False,
    ]  # fmt: skip


def test_a_scale_means_nothing_for_texts(spark: SparkSession) -> None:
    assert _same(spark, "'a'", "1", "1e300D", "1e300D") is False


@pytest.mark.parametrize("value", ["double('NaN')", "double('Infinity')", "double('-Infinity')", "0.1D"])
def test_every_double_equals_itself(spark: SparkSession, value: str) -> None:
    assert [_same(spark, value, value), _same(spark, value, value, "0.0D", "0.0D")] == [True, True]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("0.1D + 0.2D", "0.3D"),
        ("1e15D", "1e15D + 0.125D"),
        ("double('NaN')", "0.0D"),
        ("double('Infinity')", "double('-Infinity')"),
    ],
)
def test_doubles_without_a_scale_compare_exactly(spark: SparkSession, left: str, right: str) -> None:
    assert [_same(spark, left, right), _same(spark, right, left)] == [False, False]


SUMS = ("1.0D", "1000.0D")
WITHIN, BEYOND = "0.999e-6D", "1.001e-6D"
"""Either side of 1e-9 of the greater scale."""


@pytest.mark.parametrize("scales", [SUMS, SUMS[::-1], (SUMS[1], SUMS[1])])
@pytest.mark.parametrize("sign", ["", "-"])
def test_doubles_compare_within_1e_9_of_the_greater_scale(
    spark: SparkSession, scales: tuple[str, str], sign: str
) -> None:
    assert _same(spark, "0.0D", sign + WITHIN, *scales) is True
    assert _same(spark, sign + WITHIN, "0.0D", *scales) is True
    assert _same(spark, "0.0D", sign + BEYOND, *scales) is False
    assert _same(spark, sign + BEYOND, "0.0D", *scales) is False


def test_the_smaller_scale_alone_would_not_do(spark: SparkSession) -> None:
    assert _same(spark, "0.0D", WITHIN, SUMS[0], SUMS[0]) is False


def test_one_scale_is_enough(spark: SparkSession) -> None:
    assert _same(spark, "0.0D", WITHIN, SUMS[1]) is True
    assert _same(spark, "0.0D", BEYOND, SUMS[1]) is False


def test_a_number_of_another_type_is_compared_with_the_scale_of_the_double(spark: SparkSession) -> None:
    assert _same(spark, "CAST(3 AS DECIMAL(38,2))", "3.0D + 1e-6D", "1001.0D") is True
    assert _same(spark, "CAST(3 AS DECIMAL(38,2))", "3.0D + 1e-6D", "3.0D") is False


def test_a_tolerance_comes_from_what_went_in_and_not_from_the_result(spark: SparkSession) -> None:
    """3.3 between 1e15 and -1e15: one order keeps it, one loses it, and any order is right."""
    kept, lost = "1e15D + -1e15D + 3.3D", "1e15D + 3.3D + -1e15D"
    went_in = "1e15D + 1e15D + 3.3D"

    assert _same(spark, kept, lost, went_in, went_in) is True
    assert _same(spark, kept, lost) is False
    assert _same(spark, kept, lost, "abs(1e15D + -1e15D + 3.3D)", "3.3D") is False
    assert _same(spark, kept, "1e15D + -1e15D + 3e6D", went_in, went_in) is False


def test_the_tolerance_of_nothing_is_nothing(spark: SparkSession) -> None:
    assert _same(spark, "0.0D", "1e-300D", "0.0D", "0.0D") is False
    assert _same(spark, "0.0D", "-0.0D", "0.0D", "0.0D") is True


NO_SCALE = "CAST(NULL AS DOUBLE)"


def test_null_keeps_its_meaning_beside_a_scale(spark: SparkSession) -> None:
    assert _same(spark, NO_SCALE, NO_SCALE, "1e9D", "1e9D") is True
    assert _same(spark, NO_SCALE, "0.0D", "1e9D", "1e9D") is False
    assert _same(spark, "0.0D", NO_SCALE, "1e9D", "1e9D") is False


def test_an_unknown_scale_leaves_the_other_or_exactness(spark: SparkSession) -> None:
    assert _same(spark, "0.0D", WITHIN, NO_SCALE, SUMS[1]) is True
    assert _same(spark, "0.0D", BEYOND, NO_SCALE, SUMS[1]) is False
    assert _same(spark, "0.0D", WITHIN, NO_SCALE, NO_SCALE) is False
    assert _same(spark, "1.5D", "1.5D", NO_SCALE, NO_SCALE) is True


@pytest.mark.parametrize("strange", ["double('NaN')", "double('Infinity')", "double('-Infinity')"])
def test_a_finite_sum_is_not_the_same_as_one_that_is_not(spark: SparkSession, strange: str) -> None:
    """Spark orders NaN above all numbers and equal to itself: a plain <= would be true here."""
    assert _same(spark, "5.0D", strange, "5.0D", f"abs({strange})") is False
    assert _same(spark, strange, "5.0D", f"abs({strange})", "5.0D") is False
    assert _same(spark, "5.0D", "7.0D", "5.0D", f"abs({strange})") is False
    assert _same(spark, strange, strange, f"abs({strange})", f"abs({strange})") is True


@pytest.mark.parametrize(
    ("type_", "number"),
    [
        ("decimal(38,2)", True), ("bigint", True), ("int", True), ("smallint", True), ("tinyint", True),
        ("double", True), ("float", True), ("string", False), ("boolean", False), ("date", False),
        ("timestamp", False), ("binary", False), ("array<int>", False), ("interval day to second", False),
    ],
)  # fmt: skip
def test_numbers_are_those_types_whose_values_can_be_compared_across_types(type_: str, number: bool) -> None:
    assert is_number(type_) is number


def test_no_column_of_a_definition_can_be_in_the_way_of_a_scale() -> None:
    """Output columns never have two _ in a row."""
    assert scale_of("sales") == "sales__scale"

"""Expressions that can raise are found before any record is there, and the record when one did."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from twinlake.kinds.expression import Expression
from twinlake.kinds.raising import can_raise, first_raising

TYPES = {
    "amount": "decimal(12,2)", "large": "bigint", "small": "int", "text": "string", "at": "timestamp",
    "day": "date", "real": "double", "items": "array<int>", "pairs": "map<string,int>",
    "_epoch": "int", "_partition": "int", "_offset": "bigint",
}  # fmt: skip


@pytest.fixture(scope="module")
def nothing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], ", ".join(f"{name} {type_}" for name, type_ in TYPES.items()))


def found(sql: str, rows: DataFrame) -> list[tuple[str, str]]:
    return can_raise(Expression(what="column it", sql=sql), rows)


@pytest.mark.parametrize(
    ("sql", "when", "instead"),
    [
        ("1/amount", "the divisor is 0", "try_divide"),
        ("real / real", "the divisor is 0", "nullif"),
        ("large % small", "the divisor is 0", "try_mod"),
        ("pmod(large, small)", "the divisor is 0", "nullif"),
        ("large div small", "the divisor is 0", "nullif"),
        ("amount / nullif(amount, 1)", "the divisor is 0", "nullif"),
        ("large / 0", "the divisor is 0", "try_divide"),
        ("CAST(text AS int)", "a string is not of type int", "try_cast"),
        ("text > 5", "a string is not of type bigint", "try_cast"),
        ("CAST(amount AS int)", "a decimal(12,2) is not of type int", "try_cast"),
        ("CAST(large AS int)", "a bigint is not of type int", "try_cast"),
        ("CAST(amount AS decimal(10,2))", "a decimal(12,2) is not of type decimal(10,2)", "try_cast"),
        ("CAST(real AS decimal(10,2))", "a double is not of type decimal(10,2)", "try_cast"),
        ("CAST(text AS timestamp)", "a string is not of type timestamp", "try_cast"),
        ("to_date(text)", "a string is not of type date", "try_cast"),
        ("to_date(text, 'yyyy')", "a text is not a time of that form", "try_to_"),
        ("to_timestamp(text, 'yyyy')", "a text is not a time of that form", "try_to_"),
        ("items[0]", "the index is beyond the array", "get("),
        ("element_at(items, 2)", "the index is beyond the array", "try_element_at"),
        ("large + 1", "the result is too large for bigint", "try_add"),
        ("small * 2", "the result is too large for int", "try_multiply"),
        ("make_date(small, 1, 1)", "there is no such date", "try_to_date"),
        ("raise_error(text)", "it is reached", "contract"),
        ("to_number(text, '999')", "a text is not a number of that form", "try_to_number"),
        ("sequence(1, small, 2)", "the end is before the start", "CASE"),
        ("map(text, 1)", "a key is NULL or given twice", "struct"),
        ("CASE WHEN small > 0 THEN items[small] END", "the index is beyond the array", "get("),
    ],
)
def test_an_expression_that_can_raise_is_told_with_when_and_what_to_write(
    nothing: DataFrame, sql: str, when: str, instead: str
) -> None:
    ((told, write),) = found(sql, nothing)

    assert told == when and instead in write


@pytest.mark.parametrize(
    "sql",
    [
        "try_divide(1, amount)", "1 / nullif(amount, 0)", "large / 100", "amount / 0.5", "large % 7",
        "real + 1",
        "try_cast(text AS int)", "CAST(large AS string)", "CAST(amount AS double)", "CAST(at AS date)",
        "CAST(small AS bigint)", "CAST(small AS decimal(12,2))", "CAST(amount AS decimal(14,2))",
        "CAST(amount AS bigint)", "DATE '2026-01-31'", "CAST('5' AS int)", "CAST(at AS bigint)",
        "try_element_at(items, 2)", "get(items, 0)", "pairs['a']", "element_at(pairs, 'a')",
        "try_to_timestamp(text)", "try_to_date(text, 'yyyy')", "try_add(large, 1)", "amount + 1",
        "try_to_number(text, '999')", "coalesce(large, 0)", "concat('a', small)", "date_trunc('day', at)",
        "at + INTERVAL 1 DAY", "text IN ('a', 'b')", "amount > 5", "try_url_decode(text)",
        "sequence(1, small)",
    ],
)  # fmt: skip
def test_an_expression_that_never_raises_is_not_warned_of(nothing: DataFrame, sql: str) -> None:
    assert found(sql, nothing) == []


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("100 / (id - 7)", "DIVIDE_BY_ZERO"),
        ("1 / (id - 7) + 1 / (id - 7)", "DIVIDE_BY_ZERO"),
        ("CAST(if(id >= 7, 'x', '1') AS int)", "CAST_INVALID_INPUT"),
        ("array(1, 2)[if(id < 7, 0, cast(id AS int))]", "INVALID_ARRAY_INDEX"),
        ("if(id < 7, 0L, 9223372036854775807L) + 1", "ARITHMETIC_OVERFLOW"),
        ("if(id < 7, NULL, raise_error('no'))", "USER_RAISED_EXCEPTION"),
    ],
)
def test_the_first_record_that_an_expression_raises_for_is_found_with_what_spark_says(
    spark: SparkSession, sql: str, why: str
) -> None:
    rows = spark.range(20).selectExpr(
        "id", "1 _epoch", "CAST(id % 2 AS int) _partition", "100 + id _offset", "now() _timestamp"
    )

    found = first_raising(Expression(what="column it", sql=sql), rows.repartition(3))

    # in order of record ids: 8 and all even ones after it are of partition 0
    even = "id - 7" not in sql
    assert found is not None and found[0] == ((1, 0, 108) if even else (1, 1, 107))
    assert why in found[1]


def test_an_expression_that_raises_for_no_record_has_none(spark: SparkSession) -> None:
    rows = spark.range(20).selectExpr("id", "1 _epoch", "0 _partition", "id _offset")

    assert first_raising(Expression(what="column it", sql="nullif(1 / (id + 1), 1)"), rows) is None

"""What one statement may take: the length and depth of its text, and one value of what it computes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.reading.conftest import ALL, SqlServer
from tests.reading.test_doors import message

SOON_S = 60.0
"""A second of the processor's, on a machine that does much else; without a bound it is minutes."""


def nested(times: int, before: str, middle: str, after: str) -> str:
    return before * times + middle + after * times


DEEP = {
    "brackets": "SELECT " + nested(45_000, "(", "1", ")"),
    "brackets that do not end": "SELECT " + "(" * 45_000,
    "CASE": "SELECT " + nested(4_000, "CASE WHEN true THEN ", "1", " END"),
    "CASE that does not end": "SELECT " + "CASE WHEN true THEN " * 90 + "1,,",
    "NOT": "SELECT " + "NOT " * 10_000 + "true",
    "minus": "SELECT " + "- " * 10_000 + "1",
    "plus": "SELECT 1" + "+1" * 10_000,
    "concatenation": "SELECT 'a'" + "||'a'" * 10_000,
    "functions": "SELECT " + nested(1_000, "abs(", "1", ")"),
    "lambdas": "SELECT " + nested(500, "transform(array(1), x -> ", "1", ")"),
    "arrays": "SELECT " + nested(2_000, "array(", "1", ")"),
    "subscripts": "SELECT a" + "[0]" * 10_000,
    "types": "SELECT CAST(NULL AS " + nested(2_000, "struct<a:", "int", ">") + ")",
    "subqueries": nested(1_000, "SELECT * FROM (", "SELECT 1", ")"),
    "UNION": "SELECT 1" + " UNION ALL SELECT 1" * 5_000,
    "joins": "SELECT * FROM range(1)" + ", range(1)" * 5_000,
    "pipes": "FROM range(1)" + " |> WHERE true" * 5_000,
    "comments": "SELECT 1 " + nested(20_000, "/*", "", "*/"),
    "comments that do not end": "SELECT 1 " + "/*" * 20_000,
    "quotes that do not end": "SELECT '" + "\\'" * 40_000,
    "AND that fails": "SELECT 1 WHERE " + "1=1 AND " * 10_000 + "true )",
    "immediately": "EXECUTE IMMEDIATE '" + "SELECT " + "(" * 45_000 + "'",
}
PARSERS_OWN = ("TOO_COMPLEX", "PARSE_SYNTAX_ERROR", "UNCLOSED_BRACKETED_COMMENT")
IN_LIST = ", ".join(str(number) for number in range(10_000))
WIDE = ", ".join(f"order_id + {number} AS c{number}" for number in range(1_000))
WITHIN = {
    "10,000 values": f"SELECT count(*) AS n FROM serve.orders WHERE order_id IN ({IN_LIST})",
    "20 subqueries": nested(20, "SELECT * FROM (", "SELECT count(*) AS n FROM serve.orders", ")"),
    "20 that are values": nested(20, "SELECT (", "SELECT count(*) AS n FROM serve.orders", ") AS n"),
    "1,000 alternatives": "SELECT count(*) AS n FROM serve.orders WHERE order_id >= 0 AND (order_id = 0"
    + "".join(f" OR order_id = {number}" for number in range(1, 1_000)) + " OR order_id > 999)",
    "300 operators": f"SELECT count(*){'+1' * 300} - 300 AS n FROM serve.orders",
}  # fmt: skip
WINDOWS = (
    "SELECT "
    + ", ".join(f"sum(amount) OVER (PARTITION BY region ORDER BY order_id + {n}) AS w{n}" for n in range(51))
    + " FROM serve.orders"
)
GROUPED = ", ".join(f"order_id + {n}" for n in range(9))
PLANNED_LONG = {
    "51 windows": WINDOWS,
    "512 grouping sets": f"SELECT count(*) FROM serve.orders GROUP BY CUBE({GROUPED})",
}
"""Each window is planned below all others, each set of a grouping has a program of its own."""
LARGE = [
    "array_repeat('x', 1500000000)", "repeat('x', 1500000000)", "repeat('x', 1500 * 1000 * 1000)",
    "repeat('x', CAST('1500000000' AS INT))", "lpad('x', 1500000000)", "rpad('x', 1500000000, 'y')",
    "space(1500000000)", "sequence(1, 1500000000)", "sequence(0L, -1500000000, -1)",
    "sequence(timestamp'2000-01-01', timestamp'2026-01-01', interval 1 second)",
    "repeat(repeat('x', 1000000), 1000000)", "array_repeat(array_repeat(1, 1000000), 1000000)",
    "replace(repeat('x', 1000000), 'x', repeat('y', 1000000))", "format_string('%1500000000d', 1)",
    "format_number(1, 1500000000)", "round(1.5D, 2000000000)", "bround(1.5D, 2000000000)",
    "randstr(1500000000, 0)", "stack(1500000000, 1)", "approx_count_distinct(1, 0.0000001)",
    "count_min_sketch(1, 0.0000000001D, 0.9D, 1)",
]  # fmt: skip
LARGE_BY_ROWS = [
    "SELECT length(repeat('x', CAST(order_id AS INT) + 1500000000)) FROM serve.orders",
    "SELECT size(array_repeat('x', n)) FROM (SELECT 1500000000 AS n)",
    "SELECT size(sequence(1, n)) FROM VALUES (1500000000), (2) AS t(n)",
    "SELECT length(lpad('x', n)) FROM VALUES (1500000000), (2) AS t(n)",
]
"""Of a size that a row says."""


@pytest.mark.parametrize("form", DEEP)
def test_what_is_nested_or_long_beyond_bounds_is_refused_soon(sql: SqlServer, form: str) -> None:
    began = time.monotonic()
    answer = sql.ask(DEEP[form]) if len(DEEP[form]) <= 100_000 else None
    if answer is None:
        pytest.fail("HTTP takes no such text; shorten it")

    assert answer.status_code == 400, answer.text
    assert any(why in answer.text for why in ("is refused, because", *PARSERS_OWN)), answer.text[:500]
    assert time.monotonic() - began < SOON_S


def test_jdbc_is_bounded_too_and_its_long_texts(jdbc: Callable[..., Any]) -> None:
    with closing(jdbc()) as connection:
        for text in (DEEP["brackets"], DEEP["CASE"], "SELECT '" + "x" * 1_100_000 + "'"):
            began = time.monotonic()
            with pytest.raises(Exception) as refused:
                connection.createStatement().execute(text)
            assert "is refused, because" in message(refused.value)
            assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"SELECT {LARGE[0]}", "use rows, of range(...)"),
        (LARGE_BY_ROWS[0], "use rows, of range(...)"),
        *((text, "use several shorter ones") for text in PLANNED_LONG.values()),
    ],
    ids=["a value", "a value by rows", *PLANNED_LONG],
)
def test_what_is_too_large_or_planned_for_minutes_is_refused_over_both_ways_with_a_remedy(
    sql: SqlServer, jdbc: Callable[..., Any], text: str, remedy: str
) -> None:
    with closing(jdbc()) as connection, pytest.raises(Exception) as refused:
        connection.createStatement().executeQuery(text)

    assert message(refused.value).startswith("the query was refused\nwhy: "), message(refused.value)
    assert f"\ndo:  {remedy}" in message(refused.value)
    assert sql.ask(text).json()["remedy"].startswith(remedy)
    assert sql.rows("SELECT count(*) AS n FROM serve.orders") == [{"n": ALL}]


def test_what_people_and_their_tools_write_runs(sql: SqlServer) -> None:
    assert {name: sql.rows(text) for name, text in WITHIN.items()} == {name: [{"n": ALL}] for name in WITHIN}
    assert len(sql.rows(f"SELECT {WIDE} FROM serve.orders LIMIT 1")[0]) == 1_000


@pytest.mark.parametrize("form", PLANNED_LONG)
def test_what_would_be_planned_for_minutes_is_refused(sql: SqlServer, form: str) -> None:
    answer = sql.ask(PLANNED_LONG[form])

    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError"), answer.text
    assert "is refused, because a statement is bounded" in answer.text


def test_an_answer_of_more_fields_than_memory_holds_for_each_task_is_refused(sql: SqlServer) -> None:
    for text in (
        f"SELECT {', '.join(['o.*'] * 10)} FROM (SELECT {WIDE} FROM serve.orders) o",
        f"SELECT array(struct(o.*, o.*, o.*)) AS a FROM (SELECT {WIDE} FROM serve.orders) o",
    ):
        answer = sql.ask(text)

        assert (answer.status_code, answer.json()["error"]) == (400, "UsageError"), answer.text[:500]
        assert "and at most 2,000" in answer.json()["why"], answer.text


def test_a_stack_that_overflows_in_a_task_ends_its_statement_alone(sql: SqlServer) -> None:
    long = "concat(repeat('ab', 500000), id)"

    answer = sql.ask(f"SELECT count(*) FROM range(0, 8, 1, 8) WHERE {long} RLIKE '(a|b)*c'")

    assert answer.status_code == 400, answer.text
    assert "nested or repeated too deeply" in answer.json()["why"], answer.text
    assert sql.rows("SELECT count(*) AS n FROM serve.orders") == [{"n": ALL}]


def test_more_columns_than_can_be_planned_are_refused(sql: SqlServer) -> None:
    wide = f"SELECT DISTINCT {', '.join(['o.*'] * 11)} FROM (SELECT {WIDE} FROM serve.orders) o"
    text = f"SELECT count(*) FROM ({wide})"

    answer = sql.ask(text)

    assert answer.status_code == 400, answer.text[:500]
    assert "a statement of more than 10000 columns is refused" in answer.text


@pytest.mark.parametrize("value", LARGE)
def test_a_value_that_would_take_all_memory_is_refused(sql: SqlServer, value: str) -> None:
    for text in (f"SELECT {value}", f"SELECT * FROM VALUES (length(CAST({value} AS STRING)))"):
        answer = sql.ask(text)

        assert answer.status_code == 400, answer.text
        assert "is refused, because" in answer.text, answer.text


@pytest.mark.parametrize("text", LARGE_BY_ROWS)
def test_a_value_whose_size_a_row_says_is_refused_when_it_is_known(sql: SqlServer, text: str) -> None:
    answer = sql.ask(text)

    assert answer.status_code == 400, answer.text
    assert "one value has at most 1000000" in answer.text


def test_values_of_usual_sizes_are_what_they_were(sql: SqlServer) -> None:
    found = sql.rows(
        "SELECT repeat('ab', 2) a, repeat('a', n) b, repeat('a', NULL) c, lpad('a', 3, 'x') d, space(2) e, "
        "rpad(X'00', 2, X'01') f, array_repeat(1, n) g, sequence(1, n) h, sequence(3, 1) i, "
        "round(1.25, 1) j, sequence(date'2026-01-31', date'2026-03-31', interval 1 month) k, "
        "format_string('%3d', n) l, format_number(1234.5, 1) m, replace('abc', 'b', 'x') p, "
        "transform(array(1, 2), x -> repeat('b', x)) o "
        "FROM VALUES (2) AS t(n)"
    )

    assert found == [
        {
            "a": "abab", "b": "aa", "c": None, "d": "xxa", "e": "  ", "f": "0001", "g": [1, 1], "h": [1, 2],
            "i": [3, 2, 1], "j": "1.3", "k": ["2026-01-31", "2026-02-28", "2026-03-31"], "l": "  2",
            "m": "1,234.5", "o": ["b", "bb"], "p": "axc",
        }
    ]  # fmt: skip

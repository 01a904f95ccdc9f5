"""What goes wrong over JDBC is said as over HTTP: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.reading.conftest import SqlServer
from tests.reading.test_doors import message
from twinlake.topics.change import RELEASE_WIDER

WRONG = {
    "DROP VIEW serve.orders": ("the query was refused", "is refused, because", "use SELECT, SHOW, DESCRIBE"),
    "SELECT array_repeat('x', 1500000000)": ("the query was refused", "is refused, because", "use rows"),
    "SELECT * FROM serve.nothing": ("the query failed", "TABLE_OR_VIEW_NOT_FOUND", "SHOW VIEWS IN serve"),
    "SELECT * FROM serve.latest_ordr": (
        "the query failed", "cannot be found", "did you mean serve.latest_order? see what there is",
    ),
    "SELECT 1\nFROM sales_per_reigon": (
        "the query failed", "; line 2 pos 5", "did you mean serve.sales_per_region?",
    ),
    "SELECT * FROM serv.latest_order": ("the query was refused", "did you mean serve?", "use SELECT"),
    "SELECT custmer FROM latest_order": ("the query failed", "`customer`", "correct the statement"),
    "SELECT\n custmer FROM latest_order": ("the query failed", "; line 2 pos 1", "correct the statement"),
    "SELEC 1": ("the query failed", "PARSE_SYNTAX_ERROR", "correct the statement"),
    "SELECT order_id / 0 FROM serve.orders": ("the query failed", "DIVIDE_BY_ZERO", "correct the statement"),
    "SELECT cast('[DAMAGED_FILE] /lake/a.parquet: gone' AS INT)": (
        "the query failed", "CAST_INVALID_INPUT", "correct the statement",
    ),
    "SELECT repeat('ab', 500000) RLIKE '(a|b)*c'": ("the query failed", "too deeply", "a simpler pattern"),
    "SELECT count(*) FROM range(0, 8, 1, 8) WHERE concat(repeat('ab', 500000), id) RLIKE '(a|b)*c'": (
        "the query failed", "nested or repeated too deeply, by a pattern", "take shorter values",
    ),
    f"SELECT raise_error('5000000000 does not fit into int: {RELEASE_WIDER}')": (
        "the query failed", "does not fit into int", f"leave out its column, or {RELEASE_WIDER}",
    ),
}  # fmt: skip
"""One that fails when it is parsed, analysed, or run; what, why and remedy."""


@pytest.mark.parametrize("statement", WRONG)
def test_an_error_over_jdbc_says_what_happened_why_and_what_to_do(
    jdbc: Callable[..., Any], statement: str
) -> None:
    with closing(jdbc()) as connection, pytest.raises(Exception) as raised:
        connection.createStatement().executeQuery(statement)

    what, why, remedy = message(raised.value).split("\n", 1)[0], *message(raised.value).rsplit("\ndo:  ", 1)
    assert [known in part for known, part in zip(WRONG[statement], (what, why, remedy), strict=True)] == [
        True, True, True,
    ], message(raised.value)  # fmt: skip
    assert "\nwhy: " in why and "== SQL ==" not in remedy
    assert "at org.apache.spark" not in message(raised.value)


def test_over_http_a_value_that_a_version_s_type_does_not_hold_says_what_helps(sql: SqlServer) -> None:
    error = sql.ask(f"SELECT raise_error('5000000000 does not fit into int: {RELEASE_WIDER}')").json()

    assert error["why"].endswith("5000000000 does not fit into int")
    assert error["remedy"] == f"leave out its column, or {RELEASE_WIDER}"

"""What goes wrong over JDBC is said as over HTTP: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.reading.test_doors import message

WRONG = {
    "DROP VIEW serve.orders": ("the query was refused", "is refused, because", "use SELECT, SHOW, DESCRIBE"),
    "SELECT array_repeat('x', 1500000000)": ("the query was refused", "is refused, because", "use SELECT"),
    "SELECT * FROM serve.nothing": ("the query failed", "TABLE_OR_VIEW_NOT_FOUND", "SHOW VIEWS IN serve"),
    "SELEC 1": ("the query failed", "PARSE_SYNTAX_ERROR", "correct the statement"),
    "SELECT order_id / 0 FROM serve.orders": ("the query failed", "DIVIDE_BY_ZERO", "correct the statement"),
    "SELECT cast('[DAMAGED_FILE] /lake/a.parquet: gone' AS INT)": (
        "the query failed", "CAST_INVALID_INPUT", "correct the statement",
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

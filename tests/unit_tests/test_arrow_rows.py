"""Rows that are written at once are, value by value, those that a statement of SQL writes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from twinlake.unit_tests import arrow_rows
from twinlake.unit_tests.logs import by_sql
from twinlake.witness.rows import Evaluator
from twinlake.witness.types import Type

LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False], "tinyint": [-128, 127], "smallint": [-(2**15)], "int": [2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1], "float": [1.5, math.inf], "double": [-0.0, math.nan, -math.inf, 1e-310],
    "decimal(38,2)": [Decimal("-999999999999999999999999999999999999.99"), Decimal("0.10")],
    "decimal(5,0)": [Decimal("12345")], "string": ["", "it's \U0001f600 \\ \n"],
    "binary": [b"", b"\x00\xff'"],
    "date": [date(1, 1, 1), date(9999, 12, 31)], "timestamp": [datetime(1, 1, 1, tzinfo=UTC), LAST],
    "timestamp_ntz": [LAST], "array<int>": [[], [1, None]], "map<string,double>": [{}, {"a": None, "b": 2.0}],
    "struct<a:int,b:struct<c:string>>": [{"a": 1, "b": {"c": "x"}}, {"b": None}, {"b": {}}],
    "array<struct<m:map<int,array<string>>>>": [[{"m": {1: ["x", None]}}, None, {}]],
}  # fmt: skip


@pytest.fixture
def engine() -> Iterator[Evaluator]:
    found = Evaluator()
    yield found
    found.close()


def read(file: Path) -> tuple[list[Any], list[Any]]:
    """The types of a file's columns as the second engine sees them, and its rows as text."""
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{file}')")
        types = [(name, str(type_)) for name, type_, *_ in found.description or ()]
        return types, [tuple(map(repr, row)) for row in found.fetchall()]


@pytest.mark.parametrize("type_", VALUES)
def test_a_value_of_each_type_is_the_same_by_both_ways(engine: Evaluator, type_: str) -> None:
    types = {"value": Type.parse(type_), "lacking": Type.parse(type_)}
    rows = [{"value": one} for one in (*VALUES[type_], None)]
    by_arrow, copied = (Path(engine.folder) / f"{name}.parquet" for name in ("arrow", "sql"))

    arrow_rows.write(types, rows, by_arrow)
    by_sql(engine.copy)(types, rows, copied)

    assert read(by_arrow) == read(copied)

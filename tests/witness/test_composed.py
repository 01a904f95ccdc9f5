"""Expressions put into one another differ in no row: a column of one is replaced by another of its type."""

from __future__ import annotations

import random
import re

import duckdb
import pytest

from tests.witness import hostile_values
from tests.witness.engines import ByDuckDB, BySpark, Verdict, compare
from tests.witness.test_matrix import EVALUATED, TYPES
from twinlake.witness.expressions import translate
from twinlake.witness.refused import Refused

FINE = ("equal", "guard", "shows nothing", "raises in Spark alone")
"""Where Spark raises there is nothing to compare; DuckDB may ask i < 1 for i - 1 < 0, and not raise."""
DRAWN, ALL = 40, 400


def composed(drawn: random.Random, count: int) -> list[str]:
    """Expressions that the witness takes, of others of the matrix, one or two levels deep."""
    by_type: dict[str, list[str]] = {}
    for _, text in EVALUATED:
        by_type.setdefault(translate(text, TYPES).type.spark, []).append(text)
    names = {name: type_.spark for name, type_ in TYPES.items()}
    found: list[str] = []
    while len(found) < count:
        text = drawn.choice(EVALUATED)[1]
        for _ in range(drawn.randint(1, 2)):
            used = [name for name in names if re.search(rf"(?<![\w'])({name})(?![\w'])", text)]
            if not used:
                break
            name = drawn.choice(used)
            inner = drawn.choice(by_type.get(names[name], [name]))
            text = re.sub(rf"(?<![\w'])({name})(?![\w'])", lambda _: f"({inner})", text)  # noqa: B023
        try:
            translate(text, TYPES)
        except Refused:
            continue
        if len(text) < 400 and text not in found:
            found.append(text)
    return found


def wrong(texts: list[str], by_spark: BySpark, by_duckdb: ByDuckDB) -> dict[str, Verdict]:
    """By expression, what is not as it should be. One that Spark refuses is none of the witness's."""
    rows = hostile_values.table().to_pylist()
    spark = by_spark.columns(texts)
    found: dict[str, Verdict] = {}
    for text in texts:
        column = spark[text]
        if isinstance(column, str):
            continue
        used = [name for name in hostile_values.TYPES if re.search(rf"\b{name}\b", text)]
        named = [{name: row[name] for name in used} for row in rows]
        try:
            verdict = compare(column, by_duckdb.column(text), named)
        except duckdb.Error:
            continue  # its optimizer has moved what raises out of `try`: no verdict, and so no wrong one
        if verdict.name not in FINE:
            found[text] = verdict
    return found


def test_drawn_compositions_do_not_differ(by_spark: BySpark, by_duckdb: ByDuckDB, seed: int) -> None:
    assert wrong(composed(random.Random(seed), DRAWN), by_spark, by_duckdb) == {}


@pytest.mark.faults
def test_compositions_do_not_differ(by_spark: BySpark, by_duckdb: ByDuckDB, seed: int) -> None:
    assert wrong(composed(random.Random(seed + 1), ALL), by_spark, by_duckdb) == {}

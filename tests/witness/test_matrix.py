"""Each expression of `matrix/` has its verdict: equal in both engines on every row, guarded on some, refused.

A line is the verdict and the expression, over the columns of `hostile_values.py`. `make test` draws some.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.witness import hostile_values
from tests.witness.engines import ByDuckDB, BySpark, Verdict, compare
from twinlake.witness.expressions import FUNCTIONS, translate
from twinlake.witness.refused import Refused
from twinlake.witness.types import Type

FILES = sorted((Path(__file__).parent / "matrix").glob("*.txt"))
LINES = {
    file.stem: [
        (verdict, expression)
        for verdict, _, expression in (line.partition(" ") for line in file.read_text().splitlines())
        if verdict != "#"
    ]
    for file in FILES
}
"""Family -> (verdict, expression)."""
EVALUATED = [line for lines in LINES.values() for line in lines if line[0] != "refused"]
REFUSED = [expression for lines in LINES.values() for verdict, expression in lines if verdict == "refused"]
TYPES = {name: Type.parse(text) for name, text in hostile_values.TYPES.items()}
DRAWN = 60


def test_the_matrix_has_300_expressions_and_three_verdicts() -> None:
    verdicts = {verdict for lines in LINES.values() for verdict, _ in lines}

    assert verdicts == {"equal", "guard", "refused"}
    assert len({*EVALUATED}) == len(EVALUATED) >= 300


def test_every_listed_function_is_evaluated() -> None:
    called = {name.lower() for _, text in EVALUATED for name in re.findall(r"(\w+)\(", text)}

    assert FUNCTIONS.keys() - called == set()


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_not_listed_is_refused(expression: str) -> None:
    with pytest.raises(Refused):
        translate(expression, TYPES)


def test_drawn_expressions_have_their_verdicts(by_spark: BySpark, by_duckdb: ByDuckDB, seed: int) -> None:
    assert _wrong(random.Random(seed).sample(EVALUATED, DRAWN), by_spark, by_duckdb) == {}


@pytest.mark.faults
@pytest.mark.parametrize("family", LINES)
def test_every_expression_has_its_verdict(family: str, by_spark: BySpark, by_duckdb: ByDuckDB) -> None:
    lines = [line for line in LINES[family] if line[0] != "refused"]

    assert _wrong(lines, by_spark, by_duckdb) == {}


def _wrong(lines: list[tuple[str, str]], by_spark: BySpark, by_duckdb: ByDuckDB) -> dict[str, Verdict]:
    """By expression, the verdict that is another than the line's."""
    rows = hostile_values.table().to_pylist()
    spark = by_spark.columns([expression for _, expression in lines])
    found: dict[str, Verdict] = {}
    for verdict, expression in lines:
        column = spark[expression]
        used = [name for name in hostile_values.TYPES if re.search(rf"\b{name}\b", expression)]
        named = [{name: row[name] for name in used} for row in rows]
        if isinstance(column, str):
            found[expression] = Verdict(name="refused by Spark", example=column)
        else:
            found[expression] = compare(column, by_duckdb.column(expression), named)
        if found[expression].name == verdict:
            del found[expression]
    return found

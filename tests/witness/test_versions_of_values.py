"""Whether a row of a History changes a value of any type: the witness finds the versions that Spark shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.longer import some
from tests.witness import hostile
from tests.witness.asking import answered, asked, differing, log_of, shown
from twinlake.kinds.history import History
from twinlake.witness.answer import EQUAL
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = History(
    name="versions", inputs=("made",), columns={name: name for name in hostile.TYPES}, keys=("g",),
    order=("t", "x", "s"), values=("x",), delete_when="yes",
)  # fmt: skip
NUMBERS = ("x", "f", "wide", "b")
"""NaN and both zeros among them."""


@pytest.fixture(scope="module")
def rows(spark: SparkSession, seed: int) -> DataFrame:
    return hostile.rows(spark, seed).cache()


@pytest.fixture(scope="module")
def log(rows: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> TopicLog:
    return log_of(rows, tmp_path_factory.mktemp("log"), watermark=0)


def versions(keys: tuple[str, ...], order: tuple[str, ...], value: str) -> History:
    table = TABLE.to_json() | {"keys": list(keys), "order": list(order), "values": [value]}
    return History.from_json(table)


@pytest.mark.parametrize("value", some([*NUMBERS, "s", "y", "day", "pair", "list", "items"], 3))
@pytest.mark.parametrize("order", [TABLE.order, ()], ids=["by time", "by the log"])
def test_values_of_any_type_are_compared_alike(
    rows: DataFrame, log: TopicLog, tmp_path: Path, value: str, order: tuple[str, ...]
) -> None:
    table = versions(("g",), order, value)

    found = answered(asked(table, shown(table, rows, log), {"made": log}, tmp_path))

    assert found.verdict == EQUAL and found.rows > 50, differing(found)


@pytest.mark.parametrize("key", some(["x", "f", "pair", "list", "y"], 2))
def test_keys_of_any_type_have_versions_of_their_own(
    rows: DataFrame, log: TopicLog, tmp_path: Path, key: str
) -> None:
    table = versions((key,), ("t",), "i")

    found = answered(asked(table, shown(table, rows, log), {"made": log}, tmp_path))

    assert found.verdict == EQUAL and found.rows > 5, differing(found)

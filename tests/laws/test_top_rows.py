"""TopRows: the first rows of each key whatever the cut and the merge, with and without an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.laws import oracle
from tests.laws.cuts import Shown, wrong_kept_plans, wrong_states, wrong_views
from tests.laws.histories import History, Record, generated, packed
from tests.laws.tables import THREE
from twinlake.kinds.top_rows import TopRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLLOWS = replace(THREE, name="follows", order=())
ONE = replace(THREE, name="one", rows=1)


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


def expected(table: TopRows) -> Callable[[Iterable[Record]], Shown]:
    return lambda records: oracle.top_rows(records, rows=table.rows, by_time=bool(table.order))


@pytest.mark.parametrize("table", [THREE, FOLLOWS, ONE], ids=lambda table: table.name)
def test_every_cut_and_merge_shows_the_first_rows_in_their_places(
    spark: SparkSession, many: list[History], rows: DataFrame, table: TopRows
) -> None:
    assert wrong_views(spark, table, rows, many, expected(table)) == []
    assert wrong_states(table, rows, many) == []


def test_the_histories_have_more_rows_of_a_key_than_are_shown_and_rows_of_one_time(
    spark: SparkSession, many: list[History], rows: DataFrame
) -> None:
    """The law can fail."""
    assert wrong_views(spark, replace(THREE, rows=2), rows, many, expected(THREE))
    assert wrong_views(spark, FOLLOWS, rows, many, expected(THREE))


def test_ties_by_arrival_are_caught(
    spark: SparkSession, many: list[History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopRows, "_orders", property(lambda table: ("_order_0",)))

    assert wrong_views(spark, THREE, rows, many, expected(THREE))


def test_a_merge_that_keeps_one_row_too_few_is_caught(
    spark: SparkSession, many: list[History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = TopRows.merge
    monkeypatch.setattr(TopRows, "merge", lambda table, states: merge(replace(table, rows=2), states))

    assert wrong_views(spark, THREE, rows, many, expected(THREE))


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:40])]

    assert wrong_kept_plans(spark, THREE, batches) == []

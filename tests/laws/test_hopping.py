"""Hopping windows show the same for every cut, order and merge, and in every range of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.laws.activity import (
    BEFORE,
    EPOCH,
    EVERY,
    SIZE,
    SLIDING,
    UNEVEN,
    UNEVEN_EVERY,
    activity,
    uneven_windows,
    windows,
)
from tests.laws.cuts import wrong_kept_plans, wrong_ranges, wrong_states, wrong_views
from tests.laws.histories import START, History, packed
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.windows import START as CELL
from twinlake.kinds.windows import TILE, Hopping, Tumbling, Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = timedelta(seconds=1)
HOPS = Hopping(on="at", size="150 seconds", every="30 seconds")
TABLES = pytest.mark.parametrize("table", [SLIDING, UNEVEN, BEFORE], ids=["tiles", "uneven tiles", "before"])
RANGES = (
    Windows.between(START - 2 * EVERY, START + EVERY),
    Windows.between(EPOCH - 61 * SECOND, EPOCH + SECOND) | Windows.between(START + 59 * SECOND),
    Windows.between(end=EPOCH),
    Windows(()),
)


@pytest.fixture(scope="module")
def many(seed: int) -> list[History]:
    return activity(seed, 300)


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


@TABLES
def test_a_record_is_counted_once_in_each_of_its_windows_for_every_cut_and_merge(
    spark: SparkSession, many: list[History], rows: DataFrame, table: Aggregate
) -> None:
    expected = uneven_windows if table is UNEVEN else windows

    assert wrong_views(spark, table, rows, many, expected) == []


@TABLES
def test_merged_states_of_hopping_windows_are_equal_bit_for_bit_for_every_cut(
    many: list[History], rows: DataFrame, table: Aggregate
) -> None:
    assert wrong_states(table, rows, many) == []


@TABLES
def test_states_of_some_cells_are_those_of_all_in_this_range(rows: DataFrame, table: Aggregate) -> None:
    """The records of a tile lie as long as a tile after the range, of a window as long as that."""
    assert wrong_ranges(table, rows, RANGES, CELL if table is BEFORE else TILE) == []


def test_a_record_is_stored_once(rows: DataFrame) -> None:
    counted = {
        name: table.partial(rows).selectExpr("sum(_rows)").collect()[0][0]
        for name, table in {"tiles": SLIDING, "uneven": UNEVEN, "before": BEFORE}.items()
    }

    assert counted["tiles"] == counted["uneven"] == rows.where("at IS NOT NULL").count()
    assert counted["before"] == counted["tiles"] * SIZE // EVERY


def test_of_uneven_windows_a_tile_is_what_size_and_every_have_in_common() -> None:
    assert UNEVEN.window and UNEVEN.window.grid.size == timedelta(seconds=30) and UNEVEN.window.hops == 3
    assert UNEVEN.window.grid.reach == SIZE - timedelta(seconds=30) and SIZE % UNEVEN_EVERY


def test_a_tile_that_is_not_spread_to_its_last_window_is_caught(
    spark: SparkSession, many: list[History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HOPS.hops == SIZE // EVERY == 5
    monkeypatch.setattr(Hopping, "hops", property(lambda window: window.length // window.grid.size - 1))

    assert wrong_views(spark, SLIDING, rows, many, windows)


@pytest.mark.parametrize(("table", "by"), [(SLIDING, 0 * EVERY), (BEFORE, EVERY)], ids=["tiles", "before"])
def test_a_range_that_is_not_widened_enough_is_caught(
    rows: DataFrame, monkeypatch: pytest.MonkeyPatch, table: Aggregate, by: timedelta
) -> None:
    monkeypatch.setattr(Windows, "reached_sql", lambda windows, on, length: windows.widened(by).predicate(on))

    assert wrong_ranges(table, rows, RANGES, CELL if table is BEFORE else TILE)


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    exact = {n: m for n, m in SLIDING.measures.items() if not n.startswith("ratio")}
    cuts = [many[:1], many[1:5], many[5:40]]
    batches = [*(packed(spark, cut) for cut in cuts), packed(spark, many[:1]).limit(0)]

    assert wrong_kept_plans(spark, replace(SLIDING, measures=exact), batches) == []


def test_windows_that_hop_by_their_size_are_tumbling_ones(rows: DataFrame) -> None:
    tumbling = replace(SLIDING, window=Tumbling(on="at", size="1 minute"))
    hopping = replace(SLIDING, window=Hopping(on="at", size="1 minute", every="1 minute"))

    found, expected = hopping.partial(rows).withColumnRenamed(TILE, CELL), tumbling.partial(rows)

    assert found.drop("ratio__sum", "ratio_average__sum").exceptAll(
        expected.drop("ratio__sum", "ratio_average__sum")
    ).count() == 0  # fmt: skip
    assert found.count() == expected.count() > 0

"""Trailing: every record with exactly its window, whatever the cut, the merge and the order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import simple_measures, trailing
from tests.laws.cuts import same, shown, wrong_kept_plans
from tests.laws.histories import LEVELS, History, generated, packed
from tests.laws.simple_measures import odd_histories
from tests.laws.tables import stored, view_text
from tests.laws.trailing import BEFORE, ODD, SHORT, SPREADS, WITH_ITSELF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.kinds.trailing import Trailing


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


def views(spark: SparkSession, table: Trailing, rows: DataFrame) -> dict[tuple[int, str], Any]:
    stored(table, rows).createOrReplaceTempView("cuts")
    measured = [name for measures in table.last.values() for name in measures]
    found = spark.sql(view_text(table, "cuts")).select("history", *table.view_keys, "key", "at", *measured)
    return shown(found.collect(), table.view_keys)


def wrong(
    spark: SparkSession, table: Trailing, rows: DataFrame, many: list[History]
) -> list[tuple[int, str]]:
    """The histories and sides of which the view shows something else."""
    found, expected = views(spark, table, rows), trailing.expected(table)
    sides = [(index, side) for index in range(len(many)) for side in ("cut", "whole")]
    return [one for one in sides if not same(found[one], expected(many[one[0]].records))]


@pytest.mark.parametrize("table", [BEFORE, WITH_ITSELF], ids=lambda table: table.name)
def test_every_cut_and_merge_shows_each_record_with_its_window(
    spark: SparkSession, many: list[History], rows: DataFrame, table: Trailing
) -> None:
    assert wrong(spark, table, rows, many) == []


def test_states_do_not_depend_on_the_cut(many: list[History], rows: DataFrame) -> None:
    merged = BEFORE.merge(stored(BEFORE, rows)).drop(*LEVELS)
    found = shown(merged.collect(), tuple(key for key in BEFORE.state_keys if key != "history"))

    assert [n for n in range(len(many)) if found[n, "cut"] != found[n, "whole"]] == []


def test_spreads_picks_and_odd_doubles_are_those_of_the_window(spark: SparkSession) -> None:
    many = odd_histories(200)
    found = views(spark, ODD, packed(spark, many))

    wrong = [
        (index, side, name, row[name], value)
        for index, history in enumerate(many)
        for side in ("cut", "whole")
        for of, within in trailing.windows(history.records, SHORT, with_itself=False).items()
        for row in [found[index, side][of.record_id]]
        for name, value in simple_measures.shown(within).items()
        if name in SPREADS and not simple_measures.is_right(row[name], value)
    ]
    assert wrong == []


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:40])]

    assert wrong_kept_plans(spark, BEFORE, batches) == []

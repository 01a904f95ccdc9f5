"""Latest without order columns follows the log; a delete wins like any row, and is never forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import oracle
from tests.laws.cuts import Shown, wrong_kept_plans, wrong_states, wrong_views
from tests.laws.histories import History, Record, generated, packed
from tests.laws.tables import NEWEST
from twinlake.kinds.latest import DELETED, Latest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLLOWS = replace(NEWEST, name="follows", order=())


def last(records: Iterable[Record]) -> Shown:
    """The row of each key with the greatest record id, unless it is a delete."""
    found: dict[Any, Record] = {}
    for record in sorted(records, key=lambda one: one.record_id):
        found[record.key] = record
    return {
        (key,): {"at": one.at, "amount": one.amount, "words": one.words}
        for key, one in found.items()
        if not one.gone
    }


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


def test_without_order_the_greatest_coordinate_wins_for_every_cut_and_merge(
    spark: SparkSession, many: list[History], rows: DataFrame
) -> None:
    assert wrong_views(spark, FOLLOWS, rows, many, last) == []
    assert wrong_states(FOLLOWS, rows, many) == []


def test_by_its_time_another_row_wins_in_some_histories(
    spark: SparkSession, many: list[History], rows: DataFrame
) -> None:
    """The law can fail: the histories hold late rows."""
    assert wrong_views(spark, NEWEST, rows, many, last)
    assert wrong_views(spark, NEWEST, rows, many, oracle.latest) == []


def test_ties_by_arrival_are_caught(
    spark: SparkSession, many: list[History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greatest of an order that does not end in the record id is some row, and not the last one."""
    monkeypatch.setattr(Latest, "_orders", property(lambda table: ()))

    assert wrong_views(spark, FOLLOWS, rows, many, last)


@pytest.mark.parametrize("table", [FOLLOWS, NEWEST], ids=lambda table: table.name)
def test_a_delete_that_a_merge_forgets_is_caught(
    spark: SparkSession,
    many: list[History],
    rows: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    table: Latest,
) -> None:
    merge = Latest.merge
    monkeypatch.setattr(Latest, "merge", lambda latest, states: merge(latest, states).where(f"NOT {DELETED}"))

    assert wrong_views(spark, table, rows, many, oracle.latest if table.order else last)


def test_a_delete_that_is_no_row_is_caught(spark: SparkSession, many: list[History], rows: DataFrame) -> None:
    """An older row of the key would be shown again."""
    dropped = replace(FOLLOWS, where="NOT coalesce(gone, false)", delete_when=None)

    assert wrong_views(spark, dropped, rows, many, last)


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:40])]

    assert wrong_kept_plans(spark, FOLLOWS, batches) == []

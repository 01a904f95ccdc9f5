"""Trailing: every record with exactly its window, whatever the cut, the merge and the order of arrival."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import simple_measures, trailing
from tests.laws.cuts import same, shown, wrong_kept_plans
from tests.laws.histories import LEVELS, History, generated, packed
from tests.laws.simple_measures import odd_histories
from tests.laws.tables import stored, view_text
from tests.laws.trailing import BEFORE, FEW, ODD, SHORT, SPREADS, WITH_ITSELF
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.trailing import Trailing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def in_view(was: str, now: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A view with something else in the text of a length."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real: Any = Trailing._over

        def over(*asked: Any) -> str:
            text: str = real(*asked)
            assert re.search(was, text), text
            return re.sub(was, now, text)

        patch.setattr(Trailing, "_over", over)

    return plant


def forgets_the_cells_before(patch: pytest.MonkeyPatch) -> None:
    real: Any = Trailing.partial
    patch.setattr(Trailing, "partial", lambda table, rows: real(table, rows).where("_home"))


def forgets_what_nothing_is(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Count, "nothing", None)


@pytest.mark.parametrize(
    "plant",
    [
        in_view("`_point` DESC, `_asks`", "`_point` DESC, `_asks` DESC"),
        in_view("BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        in_view("ORDER BY `_point`, `_epoch`, `_partition`, `_offset`", "ORDER BY `_point`, hash(`words`)"),
        in_view(r"IF\(`_call_\d+` > 0, (.*), NULL\) AS", r"\1 AS"),
        in_view(r"`history`, `key`, `_cell`, `_block`", "`history`, `_cell`, `_block`"),
        in_view(r"true AS `_asks`, unix_micros\(`at`\) -", "true AS `_asks`, unix_micros(`at`) + 1 -"),
        forgets_the_cells_before,
        forgets_what_nothing_is,
    ],
    ids=("without the first", "with itself", "ties by value", "states of nothing", "of all keys",
         "begins later", "of its cell alone", "counts of nothing"),
)  # fmt: skip
def test_a_mistake_is_caught(
    spark: SparkSession, many: list[History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:  # fmt: skip
    plant(monkeypatch)

    assert wrong(spark, FEW, rows, many)


def test_no_mistake_is_found_where_none_is(
    spark: SparkSession, many: list[History], rows: DataFrame
) -> None:
    assert wrong(spark, FEW, rows, many) == []


def test_the_histories_have_ties_late_rows_rows_without_key_or_time_and_empty_windows(
    many: list[History],
) -> None:
    seen = set[str]()
    for history in many:
        times = [one.at for one in history.records if one.at]
        seen |= {"late"} if times != sorted(times) else set()
        seen |= {"timeless"} if len(times) < len(history.records) else set()
        for of, within in trailing.windows(history.records, SHORT, with_itself=False).items():
            seen |= {"keyless"} if of.key is None and within else set()
            seen |= {"tie"} if any(one.at == of.at for one in within) else set()
            seen |= {"first"} if any(one.at == of.at - SHORT for one in within if of.at) else set()
            seen |= set() if within else {"empty"}

    assert seen == {"late", "timeless", "keyless", "tie", "first", "empty"}


def test_a_sum_of_doubles_is_compared_by_the_sizes_of_what_is_in_its_window(
    spark: SparkSession, many: list[History], rows: DataFrame
) -> None:
    table = replace(BEFORE, last={"74 seconds": {"short_ratio": Sum("ratio")}})
    stored(table, rows).createOrReplaceTempView("cuts")
    text = view_text(table, "cuts", scaled=("ratio", "short_ratio"))
    found = shown(
        spark.sql(text).select("history", *table.view_keys, "short_ratio", "short_ratio__scale").collect(),
        table.view_keys,
    )

    expected = trailing.expected(BEFORE)
    wrong = [
        (index, side, key)
        for index, history in enumerate(many)
        for side in ("cut", "whole")
        for key, row in expected(history.records).items()
        if row["short_ratio"] is not None
        and found[index, side][key]["short_ratio__scale"] != pytest.approx(row["short_ratio_size"])
    ]
    assert wrong == []


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:40])]

    assert wrong_kept_plans(spark, BEFORE, batches) == []

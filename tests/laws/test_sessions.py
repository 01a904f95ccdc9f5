"""Sessions show the same for every cut, order and merge, whatever cells cut them; mistakes are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws.activity import EPOCH, HOURLY, VISITS, activity, sessions, told
from tests.laws.cuts import wrong_kept_plans, wrong_ranges, wrong_states, wrong_views
from tests.laws.histories import START, History, packed
from tests.laws.tables import stored, view_text
from twinlake.kinds import sessions as kind
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.sessions import CELL, Sessions
from twinlake.kinds.windows import Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def many(seed: int) -> list[History]:
    return activity(seed, 300)


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


@pytest.mark.parametrize("table", [VISITS, HOURLY], ids=lambda table: table.name)
def test_sessions_are_what_the_oracle_says_for_every_cut_and_merge(
    spark: SparkSession, table: Sessions, many: list[History], rows: DataFrame
) -> None:
    assert wrong_views(spark, table, rows, many, sessions) == []


@pytest.mark.parametrize("table", [VISITS, HOURLY], ids=lambda table: table.name)
def test_merged_states_of_sessions_are_equal_bit_for_bit_for_every_cut(
    table: Sessions, many: list[History], rows: DataFrame
) -> None:
    assert wrong_states(table, rows, many) == []


def exclusive(start: str, end: str, within: tuple[str, ...], gap: timedelta) -> str:
    return BEGINS(start, end, within, gap).replace(" > ", " >= ")


def after_the_row_before(start: str, end: str, within: tuple[str, ...], gap: timedelta) -> str:
    return BEGINS(start, end, within, gap).replace("max(", "last(")


def not_healed(start: str, end: str, within: tuple[str, ...], gap: timedelta) -> str:
    return BEGINS(start, end, tuple(dict.fromkeys((*within, CELL))), gap)


BEGINS = kind.begins_sql


@pytest.mark.parametrize("mistake", [exclusive, after_the_row_before, not_healed])
def test_a_planted_mistake_is_caught(
    spark: SparkSession,
    many: list[History],
    rows: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    mistake: Callable[..., str],
) -> None:
    told = ("session_start", "session_end", ("key",), timedelta(seconds=20))
    assert mistake(*told) != BEGINS(*told)
    monkeypatch.setattr(kind, "begins_sql", mistake)

    assert wrong_views(spark, VISITS, rows, many, sessions) or wrong_views(
        spark, HOURLY, rows, many, sessions
    )


def test_states_of_some_cells_are_those_of_all_in_these_cells(rows: DataFrame) -> None:
    """Also where a range begins within a cell: a cell is in it that starts in it."""
    ranges = (
        Windows.between(START - 60 * SECOND, START + 60 * SECOND),
        Windows.between(EPOCH - 61 * SECOND, EPOCH + 1 * SECOND) | Windows.between(START + 59 * SECOND),
        Windows.between(end=EPOCH),
        Windows(()),
    )

    assert wrong_ranges(VISITS, rows, ranges, CELL) == []


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession, many: list[History]) -> None:
    cuts = [many[:1], many[1:5], many[5:40]]
    batches = [*(packed(spark, cut) for cut in cuts), packed(spark, many[:1]).limit(0)]

    assert wrong_kept_plans(spark, VISITS, batches) == []


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((0, 20), [(0, 20, 2)]),
        ((0, 21), [(0, 0, 1), (21, 21, 1)]),
        ((0, 40, 20), [(0, 40, 3)]),
        ((-70, -10, 50, -50, -30, 10, 30), [(-70, 50, 7)]),
        ((5, 5, None), [(5, 5, 2)]),
        ((None,), []),
    ],
    ids=["exactly the gap", "more", "bridged late", "over three cells", "together", "no time"],
)
def test_a_session_ends_where_nothing_comes_for_more_than_the_gap(
    spark: SparkSession, seconds: tuple[int | None, ...], expected: list[tuple[int, int, int]]
) -> None:
    stored(VISITS, packed(spark, [told(*((at,) for at in seconds))])).createOrReplaceTempView("one")

    seen = spark.sql(view_text(VISITS, "one")).where("history = '0/cut'").collect()

    found = [(*map(seconds_of, (row["session_start"], row["session_end"])), row["n"]) for row in seen]
    assert sorted(found) == expected


def seconds_of(moment: datetime) -> int:
    return round((moment.astimezone(UTC) - START) / SECOND)


@pytest.mark.parametrize(
    ("watermark", "final"),
    [
        ("CAST(NULL AS TIMESTAMP)", False),
        ("TIMESTAMP '2026-01-01 03:00:20Z'", False),
        ("TIMESTAMP '2026-01-01 03:00:20.000001Z'", True),
    ],
)
def test_a_session_is_final_when_no_record_that_is_not_late_can_extend_it(
    spark: SparkSession, watermark: str, final: bool
) -> None:
    """One at its end plus the gap still belongs to it, so that the watermark has to be beyond."""
    stored(VISITS, packed(spark, [told((-10,), (0,))])).createOrReplaceTempView("one")

    seen = spark.sql(view_text(VISITS, "one", watermark)).where("history = '0/cut'").collect()

    assert [row["final"] for row in seen] == [final]


def test_a_filter_on_a_key_reaches_the_scan_through_the_islands(spark: SparkSession, tmp_path: Any) -> None:
    path = str(tmp_path / "states")
    table = replace(VISITS, keys=("key",), measures={"n": Count()})
    table.partial(packed(spark, [told((0,))])).write.format("delta").save(path)
    text = view_text(table, f"delta.`{path}`", "TIMESTAMP '2026-01-01 00:00:00Z'")

    plan = spark.sql(text).where("key = 'a'")._jdf.queryExecution().executedPlan()

    scan = plan.collectLeaves().mkString("\n")  # the text of the whole plan may be cut short
    assert "EqualTo(key,a)" in scan[scan.index("PushedFilters") :]

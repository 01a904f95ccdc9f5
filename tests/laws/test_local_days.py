"""Windows of local days show the same for every cut, order and merge, around every change of clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws.cuts import wrong_kept_plans, wrong_ranges, wrong_states, wrong_views
from tests.laws.histories import generated, packed
from tests.laws.local_days import HOUR, PLACES, Place
from tests.oracle.local_days import DAY, begin
from twinlake.kinds import windows
from twinlake.kinds.grid import Grid
from twinlake.kinds.windows import Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = 120


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, DataFrame]:
    return {name: packed(spark, place.histories(MANY)).cache() for name, place in PLACES.items()}


@pytest.mark.parametrize("name", PLACES)
def test_a_record_is_counted_in_its_local_days_for_every_cut_and_merge(
    spark: SparkSession, rows: dict[str, DataFrame], name: str
) -> None:
    place = PLACES[name]

    assert wrong_views(spark, place.table, rows[name], place.histories(MANY), place.expected) == []


@pytest.mark.parametrize("name", ["25 and 23 hours", "each day the last three"])
def test_merged_states_of_local_days_are_equal_bit_for_bit_for_every_cut(
    rows: dict[str, DataFrame], name: str
) -> None:
    assert wrong_states(PLACES[name].table, rows[name], PLACES[name].histories(MANY)) == []


def cell(name: str) -> str:
    grid = PLACES[name].table.cells
    assert grid is not None
    return grid.column


def ranges_of(place: Place) -> tuple[Windows, ...]:
    """That begin and end within a day, with one and beside one."""
    day = place.days[0]
    first, next_ = begin(place.zone, day), begin(place.zone, day + DAY)
    return (
        Windows.between(first, next_), Windows.between(first - HOUR, first + HOUR),
        Windows.between(end=first + timedelta(microseconds=1)), Windows.between(next_), Windows(()),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["25 and 23 hours", "each day the last three"])
def test_states_of_some_local_days_are_those_of_all_in_this_range(
    rows: dict[str, DataFrame], name: str
) -> None:
    assert wrong_ranges(PLACES[name].table, rows[name], ranges_of(PLACES[name]), cell(name)) == []


def all_of_24_hours(patch: pytest.MonkeyPatch) -> None:
    real: Any = windows.cell_runs
    patch.setattr(windows, "cell_runs", lambda *asked: real(*asked)[-1:])


def days_of_utc(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(windows, "cell_runs", lambda *asked: ())


def a_day_of_the_25th_hour(patch: pytest.MonkeyPatch) -> None:
    real: Any = Grid._found

    def planted(grid: Grid, time: str) -> str:
        text = str(real(grid, time))
        assert "+ if(" in text
        return text.replace("+ if(", "+ if(false AND ")

    patch.setattr(Grid, "_found", planted)


def ends_after_24_hours(patch: pytest.MonkeyPatch) -> None:
    size = 86_400_000_000
    patch.setattr(Grid, "moved_sql", lambda grid, start, cells: f"{start} + {cells * size}L")


@pytest.mark.parametrize(
    "plant", [all_of_24_hours, days_of_utc, a_day_of_the_25th_hour, ends_after_24_hours]
)
def test_a_wrong_length_of_a_day_is_caught(
    spark: SparkSession, rows: dict[str, DataFrame], plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, name = PLACES["25 and 23 hours"], "25 and 23 hours"
    plant(monkeypatch)

    assert wrong_views(spark, place.table, rows[name], place.histories(MANY), place.expected)


def test_a_range_that_is_only_widened_by_24_hours_is_caught(
    rows: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "25 and 23 hours"
    monkeypatch.setattr(Grid, "slack", timedelta(0))

    assert wrong_ranges(PLACES[name].table, rows[name], ranges_of(PLACES[name])[2:3], cell(name))


def test_kept_plans_make_the_states_that_fresh_ones_make(spark: SparkSession) -> None:
    place = PLACES["each day the last three"]
    exact = {n: m for n, m in place.table.measures.items() if not n.startswith("ratio")}
    many = place.histories(40)
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:])]

    assert wrong_kept_plans(spark, replace(place.table, measures=exact), batches) == []


def test_the_histories_are_of_both_sides_of_each_change() -> None:
    """Else the laws above ask nothing."""
    place = PLACES["25 and 23 hours"]
    shown = [place.expected(one.records) for one in place.histories(len(generated(MANY)))]

    lengths = {row["window_end"] - key[1] for one in shown for key, row in one.items()}
    assert lengths == {23 * HOUR, 24 * HOUR, 25 * HOUR}

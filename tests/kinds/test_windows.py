"""Windows lie on one grid whatever the rows are, and ranges of them are half-open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlake.base.errors import DefinitionError, UsageError
from twinlake.base.times import EPOCH
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.grid import Grid
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.windows import ALL, Tumbling, Windows, interval_sql, window_from_json, window_range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GRID = Grid(column="window_start", size=MINUTE)


@pytest.mark.parametrize(
    ("size", "length"),
    [("1 minute", MINUTE), ("90 seconds", 1.5 * MINUTE), ("PT1H", 60 * MINUTE), ("2 weeks", timedelta(14))],
)
def test_a_tumbling_window_lies_on_a_grid_of_its_size(size: str, length: timedelta) -> None:
    window = Tumbling(on="at", size=size)

    assert window.length == length and window.grid == Grid(column="window_start", size=length)


def test_a_tumbling_window_comes_back_from_json() -> None:
    window = Tumbling(on="at", size="PT1H")

    assert window.to_json() == {"kind": "tumbling", "on": "at", "size": "PT1H"}
    assert window_from_json(window.to_json()) == window


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("PT0.5S", "window size 'PT0.5S' is not made of whole seconds"),
        ("PT1.000001S", "is not made of whole seconds"),
        ("soon", "window size: 'soon' is not a duration"),
        ("0 seconds", "window size: '0 seconds' is not a duration"),
    ],
)
def test_a_window_is_made_of_whole_seconds(size: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        Aggregate(
            name="t", inputs=("orders",), columns={"at": "ordered_at"}, keys=(), measures={"n": Count()},
            window=Tumbling(on="at", size=size),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "at", "start"),
    [
        ("1 minute", "2026-01-31 12:00:00", "2026-01-31 12:00:00"),
        ("1 minute", "2026-01-31 12:00:59.999999", "2026-01-31 12:00:00"),
        ("1 minute", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:00"),
        ("1 minute", "1969-12-31 23:59:00", "1969-12-31 23:59:00"),
        ("7 seconds", "1970-01-01 00:00:15", "1970-01-01 00:00:14"),
        ("7 seconds", "1969-12-31 23:59:59", "1969-12-31 23:59:53"),
        ("1 day", "2026-03-29 23:30:00", "2026-03-29 00:00:00"),
        ("1 week", "1970-01-09 05:00:00", "1970-01-08 00:00:00"),
    ],
)
def test_windows_are_aligned_to_1970_in_utc(spark: SparkSession, size: str, at: str, start: str) -> None:
    sql = Tumbling(on="moment in time", size=size).grid.start_sql("moment in time")

    found = spark.sql(f"SELECT {sql} FROM (SELECT TIMESTAMP '{at}Z' AS `moment in time`)").first()

    assert found is not None
    assert found[0].astimezone(UTC) == datetime.fromisoformat(start).replace(tzinfo=UTC)


@pytest.mark.parametrize("length", [MINUTE, timedelta(days=400), timedelta(seconds=1)])
def test_a_length_is_written_as_seconds(spark: SparkSession, length: timedelta) -> None:
    found = spark.sql(f"SELECT {interval_sql(length)}").first()

    assert found is not None and found[0] == length


def test_a_range_holds_its_start_and_not_its_end(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT n, TIMESTAMP '2026-01-31 12:00:00Z' + make_dt_interval(0, 0, n) AS `odd name`"
        " FROM range(-2, 5) AS r(n)"
    )
    ranges = {
        "both": Windows.between(start=START, end=START + 2 * MINUTE),
        "start": Windows.between(start=START),
        "end": Windows.between(end=START),
        "all": ALL,
    }

    found = {
        what: sorted(row["n"] for row in rows.where(asked.predicate("odd name")).collect())
        for what, asked in ranges.items()
    }

    assert found == {"both": [0, 1], "start": [0, 1, 2, 3, 4], "end": [-2, -1], "all": list(range(-2, 5))}


def test_a_range_is_all_only_when_both_sides_are_open() -> None:
    assert ALL == Windows.between() and ALL.is_all
    assert not Windows.between(start=START).is_all and not Windows.between(end=START).is_all


def test_a_range_is_told_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    asked = Windows.between(start=START.astimezone(tokyo))

    assert asked.to_json() == [{"from": "2026-01-31T12:00:00Z", "to": None}]
    assert ALL.to_json() == [{"from": None, "to": None}]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, ALL),
        ("2026-01-31T12:00:00Z", None, Windows.between(start=START)),
        (None, "2026-01-31T13:00:00+01:00", Windows.between(end=START)),
        (
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:01Z",
            Windows.between(start=START, end=START + timedelta(seconds=1)),
        ),
    ],
)
def test_a_range_is_read_from_rfc_3339(start: str | None, end: str | None, expected: Windows) -> None:
    found = window_range(start, end, GRID, "t")

    assert found == expected and found.to_json() == expected.to_json()


def test_a_table_without_a_grid_has_no_range_but_all_of_it() -> None:
    assert window_range(None, None, None, "t") == ALL
    for start, end in (("2026-01-31T12:00:00Z", None), (None, "2026-01-31T12:00:00Z")):
        with pytest.raises(UsageError, match="t cannot be limited to a range") as caught:
            window_range(start, end, None, "t")
        assert caught.value.remedy == "leave the range out"


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "is empty"),
        ("2026-01-31T12:00:00Z", "2026-01-31T11:00:00Z", "is empty"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:30:00+01:00", "is empty"),
        ("2026-02-30", None, "'2026-02-30T00:00:00Z' is not a time"),
        ("2026-01-31T12:00:00", None, "is not a time"),
        (None, "tomorrow", "'tomorrow' is not a time"),
    ],
)
def test_what_is_no_range_is_refused(start: str | None, end: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        window_range(start, end, GRID, "t")


CELLS = range(-40, 41)
"""Minutes around START, for sets that are told one by one."""


def micros(cell: int) -> int:
    return (START + cell * MINUTE - EPOCH) // timedelta(microseconds=1)


def held(windows: Windows) -> set[int]:
    """The cells of the set."""
    return {
        cell for cell in CELLS
        if any(
            (one.start is None or one.start <= START + cell * MINUTE)
            and (one.end is None or START + cell * MINUTE < one.end)
            for one in windows.ranges
        )
    }  # fmt: skip


def gaps(windows: Windows) -> list[timedelta]:
    """How much time lies between the ranges, the most first."""
    found = [after.start - before.end for before, after in pairwise(windows.ranges)]  # type: ignore[operator]
    return sorted(found, reverse=True)


SETS = st.sets(st.sampled_from(CELLS)).map(lambda cells: Windows.of(map(micros, cells), MINUTE)) | st.tuples(
    st.sampled_from([None, *CELLS]), st.sampled_from([None, *CELLS])
).filter(lambda ends: None in ends or ends[0] < ends[1]).map(
    lambda ends: Windows.between(*(None if end is None else START + end * MINUTE for end in ends))
)


@given(st.sets(st.sampled_from(CELLS)), st.integers(1, 6))
def test_windows_found_one_by_one_are_all_in_the_set_and_few_ranges_hold_them(
    cells: set[int], most: int
) -> None:
    exact, few = Windows.of(map(micros, cells), MINUTE), Windows.of(map(micros, cells), MINUTE, most)

    assert held(exact) == cells
    assert held(few) >= cells and len(few.ranges) == min(most, len(exact.ranges))
    assert gaps(few) == sorted(gaps(exact), reverse=True)[: most - 1]


@given(SETS, SETS)
def test_two_sets_together_hold_what_either_holds(one: Windows, other: Windows) -> None:
    both = one | other

    assert held(both) == held(one) | held(other) and both == other | one
    assert Windows.from_json(both.to_json()) == both


@given(SETS, st.lists(st.sampled_from(CELLS), max_size=6))
def test_parts_of_a_set_are_together_the_set_and_share_no_window(whole: Windows, bounds: list[int]) -> None:
    parts = list(whole.cut([START + bound * MINUTE for bound in bounds]))

    assert len(parts) <= len(set(bounds)) + 1 and all(part.ranges for part in parts)
    assert [held(part) for part in parts if held(part)] == [
        cells for cells in (
            {cell for cell in held(whole) if low <= cell < high}
            for low, high in pairwise([-99, *sorted(set(bounds)), 99])
        ) if cells
    ]  # fmt: skip
    joined = Windows(())
    for part in parts:
        joined |= part
    assert joined == whole


@given(SETS | st.just(ALL), st.sampled_from(CELLS), st.sampled_from(CELLS))
def test_a_span_is_in_a_set_beside_it_or_both(asked: Windows, one: int, other: int) -> None:
    first, last = sorted((one, other))
    cells, span = held(asked), (START + first * MINUTE, START + last * MINUTE)

    assert asked.has_all(*span) == all(cell in cells for cell in range(first, last + 1))
    assert asked.has_any(*span) == any(cell in cells for cell in range(first, last + 1))


def test_the_first_and_last_windows_of_all_time_reach_beyond_it() -> None:
    year_1 = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    year_9999 = (datetime(9999, 12, 31, 23, 59, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

    found = Windows.of([year_1 - 1, year_9999], MINUTE)

    assert [(one.start is None, one.end is None) for one in found.ranges] == [(True, False), (False, True)]
    assert found.widened(timedelta(days=9)).ranges[-1].end is None
    late = Windows.between(START, datetime(9999, 12, 31, 12, tzinfo=UTC))
    assert late.widened(timedelta(days=1)) == Windows.between(START)
    assert next(ALL.cut([datetime(1, 1, 1, tzinfo=UTC)])).ranges[0].start is None


def test_no_windows_are_none_and_not_all() -> None:
    nothing = Windows.of([], MINUTE)

    assert (nothing.predicate("t"), nothing.words, nothing.is_all) == ("false", "no windows", False)
    assert nothing | ALL == ALL and list(nothing.cut([START])) == []


def test_a_set_of_ranges_is_one_condition(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT n, TIMESTAMP '2026-01-31 12:00:00Z' + make_dt_interval(0, 0, n) AS t"
        " FROM range(-40, 41) AS r(n)"
    )
    asked = Windows.of(map(micros, (-3, -2, 5, 9)), MINUTE)

    assert {row["n"] for row in rows.where(asked.predicate("t")).collect()} == {-3, -2, 5, 9}

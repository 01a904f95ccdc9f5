"""A backfill's chunks cover its range exactly once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlake.airflow.backfill import MOST_CHUNKS, chunks_between, refuse_nothing, repair_of
from twinlake.base.errors import UsageError
from twinlake.base.times import format_moment, parse_moment

START = datetime(2026, 3, 1, tzinfo=UTC)


@given(minutes=st.integers(1, 60 * 24 * 20), hours=st.integers(1, 24 * 31))
def test_chunks_touch_and_cover_the_range(minutes: int, hours: int) -> None:
    end = START + timedelta(minutes=minutes)
    chunks = chunks_between(format_moment(START), format_moment(end), hours)

    assert (parse_moment(chunks[0]["from"]), parse_moment(chunks[-1]["to"])) == (START, end)
    assert [one["to"] for one in chunks[:-1]] == [one["from"] for one in chunks[1:]]
    assert all(
        timedelta() < parse_moment(one["to"]) - parse_moment(one["from"]) <= timedelta(hours=hours)
        for one in chunks
    )


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", 1),
        ("2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z", 1),
        ("2026-03", "2026-03-02T00:00:00Z", 1),
        ("2026-03-01T00:00:00", "2026-03-02T00:00:00Z", 1),
        ("{{ 7*7 }}", "2026-03-02T00:00:00Z", 1),
        ("2020-01-01T00:00:00Z", "2026-03-01T00:00:00Z", MOST_CHUNKS // 100),
    ],
)
def test_a_range_that_is_none_is_refused(start: str, end: str, hours: int) -> None:
    with pytest.raises(UsageError):
        chunks_between(start, end, hours)


def test_a_range_in_which_nothing_lies_is_refused_with_its_ends_and_what_to_do() -> None:
    ends = ("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z")

    with pytest.raises(UsageError) as refused:
        refuse_nothing("sales", *ends, [{"rows_compared": 0}] * 4)

    assert refused.value.what == "nothing was rebuilt"
    assert refused.value.why == f"no window of sales begins between {ends[0]} and {ends[1]}"
    assert "serve.sales" in refused.value.remedy


def test_a_range_with_a_row_in_one_of_its_chunks_is_not_refused() -> None:
    chunks = [{"rows_compared": rows} for rows in (0, 3, 0, 4)]

    assert refuse_nothing("sales", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", chunks) == 7


def test_differences_stay_unless_a_repair_is_asked_for_with_its_reason(bag) -> None:
    assert repair_of({"repair": False, "reason": None}) == repair_of({"repair": False, "reason": "x"}) == {}
    assert repair_of({"repair": True, "reason": " lost rows "}) == {"repair": True, "reason": "lost rows"}
    for nothing in (None, "", "  "):
        with pytest.raises(UsageError, match="a repair needs its reason"):
            repair_of({"repair": True, "reason": nothing})

    offered = bag.dags["backfill"].params.get_param("repair")
    assert offered.value is False and "only what agrees is replaced" in offered.description

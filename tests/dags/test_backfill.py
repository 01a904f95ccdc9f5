"""A backfill's chunks cover its range exactly once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from backfill import MOST_CHUNKS, chunks_between
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import UsageError
from jobs.times import format_moment, parse_moment

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

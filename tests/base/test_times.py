"""Moments and durations: what is read, what is refused, and that texts come back the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlake.base.errors import UsageError
from twinlake.base.times import format_duration, format_moment, from_micros, parse_duration, parse_moment


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_a_moment_comes_back_from_text_and_from_micros(moment: datetime) -> None:
    assert parse_moment(format_moment(moment)) == moment
    assert from_micros((moment - from_micros(0)) // timedelta(microseconds=1)) == moment


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=1000)))
def test_a_duration_comes_back_from_text(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


def test_a_zone_is_converted_to_utc() -> None:
    moment = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    assert format_moment(moment) == "2025-12-31T23:00:00Z"
    assert parse_moment("2026-01-01T01:00:00+02:00") == moment


def test_a_date_is_its_first_moment_in_utc() -> None:
    assert parse_moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "now", "2026-01", "2026-02-30", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "1"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a time"):
        parse_moment(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "0 hours",
        "-1 hours",
        "P",
        "PT",
        "P1M",
        "P1Y",
        "3 months",
        "3 hours ago",
        "9999999999 days",
        "P99999999999D",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90 seconds", 90),
        ("3 hours", 10800),
        ("21 days", 1814400),
        ("PT3H", 10800),
        ("P1DT1M", 86460),
        ("P2W", 1209600),
    ],
)
def test_durations_are_read(text: str, expected: int) -> None:
    assert parse_duration(text) == timedelta(seconds=expected)

"""Moments at which calendars are odd, and zones in which a process may run."""

from __future__ import annotations

from datetime import UTC, datetime

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe")
"""Lord Howe's clocks are changed by 30 minutes."""
ODD_MOMENTS = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "0001-01-01T00:00:00", "0001-01-03T00:00:00", "1582-10-10T12:00:00", "1883-11-18T17:00:00",
        "1900-02-28T23:59:59.999999", "1900-03-01T00:00:00", "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00", "2000-02-29T12:00:00", "2016-12-31T23:59:59",
        "2024-02-29T23:59:59.999999", "2024-03-01T00:00:00",
        "2026-03-08T06:59:59.999999", "2026-03-08T07:00:00", "2026-11-01T05:30:00", "2026-11-01T06:30:00",
        "2026-03-29T00:59:59.999999", "2026-03-29T01:00:00", "2026-10-25T00:30:00", "2026-10-25T01:30:00",
        "2026-04-04T14:45:00", "2026-04-04T15:15:00", "2026-10-03T15:29:59.999999", "2026-10-03T15:30:00",
        "9999-12-29T00:00:00", "9999-12-31T23:59:59.999999",
    )
)  # fmt: skip
"""In order: the first and last of Python's years; leap days, a leap second; where clocks are changed in New
York, Berlin and on Lord Howe Island: hours that are there twice, and some that are not there."""

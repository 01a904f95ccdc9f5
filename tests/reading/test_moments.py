"""Times at the reader: RFC 3339 in UTC, whatever the zone of the process and its JVM, whatever the year."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.moments import ODD_MOMENTS, ZONES
from twinlake.base.as_json import to_json
from twinlake.base.times import EPOCH, format_moment
from twinlake.kinds.grid import micros
from twinlake.reading.followed import Followed
from twinlake.reading.reader import Reader

TICK = timedelta(microseconds=1)


def read(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    answer = Reader(spark, Path("/none"), Followed, lambda: None).read(sql, 1_000, threading.Event())
    found: list[dict[str, Any]] = answer["rows"]
    return found


def select(of: str, moments: list[datetime], more: int = 0) -> str:
    """`at`, so many microseconds after each moment, in order."""
    values = ", ".join(f"({n}, {micros(one - EPOCH) + more}L)" for n, one in enumerate(moments))
    at = f"SELECT n, timestamp_micros(m) AS at FROM VALUES {values} AS v(n, m)"
    return f"SELECT {of} FROM ({at}) ORDER BY n"


@pytest.mark.parametrize("zone", ZONES)
def test_every_moment_is_shown_as_it_is(
    spark: SparkSession, in_zone: Callable[[str], None], zone: str
) -> None:
    in_zone(zone)
    moments = [*ODD_MOMENTS, *(moment + TICK for moment in ODD_MOMENTS[:-1])]

    found = read(spark, select("at", moments))

    assert [row["at"] for row in found] == [format_moment(moment) for moment in moments]
    assert to_json(moments) == [format_moment(moment) for moment in moments]


@pytest.mark.parametrize("zone", ZONES)
def test_moments_within_structs_are_shown_as_they_are(
    spark: SparkSession, in_zone: Callable[[str], None], zone: str
) -> None:
    """All but those on the first day of year 1, and the last of 9999: Python lacks them in some zones."""
    in_zone(zone)
    moments = [*ODD_MOMENTS[1:-1]]

    found = read(spark, select("struct(at) AS s", moments))

    assert [row["s"]["at"] for row in found] == [format_moment(moment) for moment in moments]


def test_what_python_has_no_year_for_is_shown_as_text_and_the_rest_as_ever(spark: SparkSession) -> None:
    """The windows of the last day of 9999 end there, and those of the first of year 1 may begin there."""
    shown = "n, at, date(at) AS day"

    before = read(spark, select(shown, [ODD_MOMENTS[0]], -1))
    after = read(spark, select(shown, [EPOCH, ODD_MOMENTS[-1]], 1))

    assert before == [{"n": 0, "at": "0000-12-31T23:59:59.999999Z", "day": "0000-12-31"}]
    assert after == [
        {"n": 0, "at": "1970-01-01T00:00:00.000001Z", "day": "1970-01-01"},
        {"n": 1, "at": "+10000-01-01T00:00:00Z", "day": "+10000-01-01"},
    ]

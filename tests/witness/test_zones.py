"""Both engines have the same wall clock in every listed zone, around each change of its rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.witness.database import connect
from twinlake.witness.rules.zones import AFTER, FIRST, ZONES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN, END = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (FIRST, AFTER))
SECOND, STEP = timedelta(seconds=1), timedelta(days=5)


def changes(zone: ZoneInfo) -> list[datetime]:
    """The first second of each new offset, found by halving the five days in which it has changed."""
    found, day = [], BEGIN
    while day < END - STEP:
        after = day + STEP
        if day.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            low, high = day, after
            while high - low > SECOND:
                middle = low + timedelta(seconds=(high - low) // SECOND // 2)
                if middle.astimezone(zone).utcoffset() == day.astimezone(zone).utcoffset():
                    low = middle
                else:
                    high = middle
            found.append(high)
        day = after
    return found


def asked() -> list[tuple[str, datetime]]:
    """(zone, time): around each change, and both ends."""
    found = []
    for name in sorted(ZONES):
        for at in changes(ZoneInfo(name)):
            found += [(name, at + shift) for shift in (-SECOND, timedelta(0), timedelta(hours=1))]
        found += [(name, BEGIN), (name, END - SECOND), (name, datetime(2026, 7, 1, tzinfo=UTC))]
    return found


def test_listed_zones_have_the_same_clock(spark: SparkSession, tmp_path: Path) -> None:
    names, times = zip(*asked(), strict=True)
    file = tmp_path / "zones.parquet"
    pq.write_table(pa.table({"zone": names, "at": pa.array(times, pa.timestamp("us", tz="UTC"))}), file)

    of_spark = (
        spark.read.parquet(str(file))
        .selectExpr("zone", "unix_micros(at) AS us", "unix_micros(from_utc_timestamp(at, zone)) AS wall")
        .toArrow()
    )
    connection = connect()
    connection.register("of_spark", of_spark)
    differing = connection.sql(
        "SELECT DISTINCT zone FROM of_spark "
        "WHERE wall <> epoch_us(timezone(zone, timezone('UTC', make_timestamp(us))))"
    ).fetchall()

    assert len(of_spark) == len(names) > 10_000
    assert differing == []

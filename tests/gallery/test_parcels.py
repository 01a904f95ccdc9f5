"""The gallery's parcels, in JSON: every table shows what the oracle says, however its history was cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import shown, valid_records, wrong
from tests.oracle.gallery import parcels as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS_MS = 2 * 24 * 3_600_000


@pytest.mark.parametrize("span_ms", [0, DAYS_MS])
def test_parcels_show_what_the_oracle_says(spark: SparkSession, seed: int, span_ms: int) -> None:
    valid = valid_records("parcels", seed, 400, span_ms)

    found = shown(spark, EXAMPLES["parcels"], valid, ViewClock(), seed)

    expected = oracle.tables(valid, {})
    assert wrong(found, expected) == {}
    assert found.keys() == expected.keys()
    assert all(found.values()), "an empty table proves nothing"


@pytest.mark.parametrize(
    "midnight", [datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 3, 28, 23, tzinfo=UTC)]
)
def test_scans_around_a_day_of_25_or_23_hours_show_what_the_oracle_says(
    spark: SparkSession, seed: int, midnight: datetime
) -> None:
    """The same records, from a day before the change of clocks to a day after it."""
    valid = valid_records("parcels", seed, 400, 3 * DAYS_MS // 2)
    newest = max(one["scanned_at"] for one in valid["parcel_scans"])
    for one in valid["parcel_scans"]:
        one["scanned_at"] += midnight + timedelta(days=2) - newest

    found = shown(spark, EXAMPLES["parcels"], valid, ViewClock(), seed)

    expected = oracle.tables(valid, {})
    assert wrong(found, expected) == {}
    lengths = {row["window_end"] - start for (_, start), row in expected["scans_per_day"].items()}
    assert lengths > {timedelta(days=1)}

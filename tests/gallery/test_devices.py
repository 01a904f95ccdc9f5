"""The gallery's devices: every table shows what the oracle says, however its history was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import shown, valid_records, wrong
from tests.oracle.gallery import devices as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_MS = 3_600_000


@pytest.mark.parametrize("span_ms", [0, HOUR_MS])
def test_devices_show_what_the_oracle_says(spark: SparkSession, seed: int, span_ms: int) -> None:
    valid = valid_records("devices", seed, 400, span_ms)

    found = shown(spark, EXAMPLES["devices"], valid, ViewClock(), seed)

    assert wrong(found, oracle.tables(valid, {})) == {}
    assert all(found.values()), "an empty table proves nothing"
    assert {reading["unit"] for reading in valid["readings"]} == {"C", "F"}

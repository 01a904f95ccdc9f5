"""The gallery's inventory: every table shows what the oracle says, however its history was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import shown, valid_records, wrong
from tests.oracle.gallery import inventory as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS_MS = 2 * 24 * 3_600_000


@pytest.mark.parametrize("span_ms", [0, DAYS_MS])
def test_inventory_show_what_the_oracle_says(spark: SparkSession, seed: int, span_ms: int) -> None:
    valid = valid_records("inventory", seed, 300, span_ms)

    found = shown(spark, EXAMPLES["inventory"], valid, ViewClock(), seed)

    expected = oracle.tables(valid, {})
    assert wrong(found, expected) == {}
    assert found.keys() == expected.keys()
    assert all(found.values()), "an empty table proves nothing"

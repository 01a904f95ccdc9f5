"""The gallery's shop, two mirrored tables: every one shows what the oracle says, however history was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import shown, valid_records, wrong
from tests.longer import some
from tests.oracle.gallery import shop as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS_MS = 2 * 24 * 3_600_000


@pytest.mark.parametrize("span_ms", some([DAYS_MS, 0]))
def test_shop_show_what_the_oracle_says(spark: SparkSession, seed: int, span_ms: int) -> None:
    valid = valid_records("shop", seed, 400, span_ms)

    found = shown(spark, EXAMPLES["shop"], valid, ViewClock(), seed)

    expected = oracle.tables(valid, {})
    assert wrong(found, expected) == {}
    assert found.keys() == expected.keys()
    assert all(found.values()), "an empty table proves nothing"


def test_some_rows_are_gone_that_no_delete_was_told_of() -> None:
    valid = valid_records("shop", 3, 400)
    told = {(one["after"] or one["before"])["id"]: one for one in valid["shop_customers"]}

    shown = {key for (key,) in oracle.tables(valid, {})["customers_now"]}

    assert {key for key, one in told.items() if one["op"] != "d"} > shown
    assert any(one["op"] == "d" for one in told.values())

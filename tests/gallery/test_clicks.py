"""The gallery's music site: every table shows what the oracle says, however its history was cut."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.gallery.cuts import NOW, shown, valid_records, wrong
from tests.oracle.gallery import clicks as oracle
from tests.project import EXAMPLES
from twinlake.kinds.kind import ViewClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = timedelta(minutes=1)


def _at(watermark: datetime) -> ViewClock:
    return ViewClock(watermarks={"plays": f"TIMESTAMP '{watermark.isoformat(sep=' ')}'"})


@pytest.mark.parametrize("span", [20 * MINUTE, timedelta(days=3)], ids=["minutes", "days"])
def test_clicks_show_what_the_oracle_says(spark: SparkSession, seed: int, span: timedelta) -> None:
    valid = valid_records("clicks", seed, 400, span // timedelta(milliseconds=1))
    watermark = NOW - 3 * MINUTE

    found = shown(spark, EXAMPLES["clicks"], valid, _at(watermark), seed)

    expected = oracle.tables(valid, {"plays": watermark})
    assert wrong(found, expected) == {}
    assert found.keys() == expected.keys()
    assert all(found.values()), "an empty table proves nothing"
    for click in found["clicks_with_profile"].values():  # what a join by time finds in the history
        at, versions = click["clicked_at"], found["profile_history"].items()
        valid = [
            one for (user, begun), one in versions
            if user == click["user"] and begun <= at and (one["valid_to"] is None or at < one["valid_to"])
        ]  # fmt: skip
        profiles = [(one["plan"], one["country"]) for one in valid] or [(None, None)]
        assert [(click["plan"], click["country"])] == profiles


def test_there_are_no_songs_lately_before_there_is_a_watermark(spark: SparkSession, seed: int) -> None:
    names = ("song_minutes", "songs_lately", "top_songs")
    tables = tuple(table for table in EXAMPLES["clicks"] if table.name in names)

    found = shown(spark, tables, valid_records("clicks", seed, 100), ViewClock(), seed)

    assert found["song_minutes"] and not found["songs_lately"] and not found["top_songs"]

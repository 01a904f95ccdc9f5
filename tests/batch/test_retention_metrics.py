"""What a scrape says of what retention has deleted, now and after a start."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from prometheus_client import generate_latest
from pyspark.sql import SparkSession

from tests.batch.test_retention import lake, project, some, take  # noqa: F401 -- fixtures
from tests.metrics.scraping import Scraped, parsed
from tests.releases.lake import Lake
from twinlake.base.times import utc_now
from twinlake.metrics.scrape import registry_of

RECORDS, WHEN = "twinlake_topic_deleted_records", "twinlake_topic_deleted_timestamp_seconds"
ORDERS = {"topic": "orders"}


def scraped(of: Lake) -> Scraped:
    return parsed(generate_latest(registry_of(of.server.metrics({}))).decode())


def test_a_scrape_says_how_many_records_retention_has_deleted_of_a_topic_and_when(
    spark: SparkSession, lake: Lake, tmp_path: Path, project: Path  # noqa: F811 -- fixtures
) -> None:  # fmt: skip
    take(lake, some(0, 60), some(60, 40), some(100, 30, utc_now() - timedelta(days=3)))
    before = scraped(lake)

    assert lake.do("expire")["topics"][0]["deleted"]

    found = scraped(lake)
    assert (before.value(RECORDS, **ORDERS), before.value(WHEN, **ORDERS)) == (0, None)
    assert found.value(RECORDS, **ORDERS) == 100
    assert 0 <= time.time() - (found.value(WHEN, **ORDERS) or 0) < 120
    lake.stop()
    again = Lake(spark, tmp_path, project=project)
    try:
        after = scraped(again)
    finally:
        again.stop()
    assert after.having(RECORDS) == found.having(RECORDS) and after.having(WHEN) == found.having(WHEN)

"""The lake server with executors elsewhere shows what an oracle computes that shares no code with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import TABLES
from tests.cluster.spark_cluster import Cluster
from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views, differences

RECORDS = 150_000
"""More than a batch of unknown size has in memory."""
LONG_S = 600.0


class Platform:
    """A lake server with its cluster, and what its readers are shown."""

    def __init__(self, server: LakeProcess, cluster: Cluster, views: Views) -> None:
        self.server, self.cluster, self.views = server, cluster, views

    def start(self) -> None:
        self.server.start(LONG_S)

    def until_caught_up(self) -> None:
        self.server.until(self.server.caught_up, LONG_S)

    def differences(self) -> dict[str, Any]:
        """What the oracle finds once everything that was produced is in the tables."""
        self.until_caught_up()
        return differences(self.server, self.views, without_cancelled=False)

    def spark(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.client.status()["spark"]
        return found

    def until_executors(self, count: int) -> None:
        self.server.until(lambda: bool(self.spark()["executors"] == count), LONG_S)


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """With records before its first start."""
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder / "spark")
    try:
        cluster.start()
        for number in (1, 2):
            cluster.worker(number)
        with lake_process(folder / "lake") as server:
            (server.home / "twinlake.toml").write_text(cluster.settings())
            server.produce(RECORDS)
            views = Views(spark, server.lake)
            yield Platform(server, cluster, views)
            views.close()
    finally:
        cluster.stop()


def test_tables_fed_by_executors_equal_what_the_oracle_computes(here: Platform) -> None:
    """Nobody knows how large records are before the first batch: executors take that, and long steps."""
    here.start()
    here.until_caught_up()
    here.server.release()

    assert here.differences() == {}
    here.until_executors(2)
    assert here.spark() == {"master": here.cluster.url, "executors": 2, "cores": 2, "error": None}
    for number in (1, 2):
        assert here.cluster.tasks(number), "it has done nothing"
        assert here.cluster.said(number, "Kafka version"), "it has read nothing from Kafka"


def test_every_table_is_rebuilt_and_verified_by_executors(here: Platform) -> None:
    for table in TABLES:
        assert here.server.do("rebuild", table=table.name)["equal"], table.name
        assert here.server.do("verify", table=table.name)["equal"], table.name

"""What readers of a lake would be shown, compared with the oracle that shares no code with the platform."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.kill.server import LakeProcess
from tests.oracle.check import check
from twinlake.base.location import Location
from twinlake.lake.catalog import release_log
from twinlake.reading.follower import Follower
from twinlake.reading.views import SERVE
from twinlake.reading.watermarks import META


class Views:
    """A door for the oracle: the views that the release log yields, in the test's own session."""

    def __init__(self, spark: SparkSession, lake: Location) -> None:
        self._spark, self._lake = spark, lake
        self._follower = Follower(spark, lake)

    def follow(self) -> None:
        """Bring the views to what the lake says now."""
        for schema in (SERVE, META):
            self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        self._follower.refresh()
        self._follower.follow()
        self._follower.follow_watermarks()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self._spark.sql(sql).collect()]

    def close(self) -> None:
        """Leave nothing of it to other tests of the session."""
        numbers = [release.number for release in release_log.releases(self._lake)]
        for schema in (SERVE, META, *(f"release_{number}" for number in numbers)):
            self._spark.sql(f"DROP DATABASE IF EXISTS {schema} CASCADE")


def differences(server: LakeProcess, views: Views, *, without_cancelled: bool) -> dict[str, Any]:
    """By table, the first keys that are not what the oracle makes of the records in the topic."""
    views.follow()
    found = check(
        kafka=server.broker.login.client(), registry_url=server.services.registry_url, door=views,
        without_cancelled=without_cancelled,
    )  # fmt: skip
    assert found["records"] == server.produced
    return {name: one["examples"] for name, one in found["tables"].items() if not one["equal"]}

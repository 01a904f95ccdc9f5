"""kill -9 at each named point of a server whose lake is in HDFS: what `tests/kill/test_points.py` asks of one
on a disk, asked there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kill.server import lake_process
from tests.kill.test_points import (  # noqa: F401 -- they are collected here as well
    Platform,
    platform,
    test_a_second_server_on_the_same_lake_ends_and_says_why,
    test_a_server_killed_at_this_point_goes_on_without_loss_or_double_counting,
)
from tests.kill.views import Views
from tests.store.hdfs import Hdfs
from twinlake.base.location import Remote


@pytest.fixture(scope="module")
def whole(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int, hdfs: Hdfs
) -> Iterator[Platform]:
    lake: Remote = hdfs.lake("killed")
    with lake_process(tmp_path_factory.mktemp("kill"), seed, lake) as server:
        server.start()
        server.release()
        views = Views(spark, lake)
        yield Platform(server, views)
        views.close()

"""A certificate that differs says what a reader sees on both sides, where states are not its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tables import CASES, Case
from tests.world import World

SEEN = [case for case in CASES if case.table.name in ("visits", "largest", "statuses")]
"""Of TopRows a state has several rows of the view; of a History not each row begins a version."""


@pytest.mark.parametrize("case", SEEN, ids=lambda case: case.table.name)
def test_a_state_that_is_gone_is_shown_as_readers_saw_it(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    world = World(spark=spark, lake=tmp_path, table=case.table, seed=1)
    world.produce(40)
    world.step()
    key = case.keys[0]
    (row,) = spark.sql(f"SELECT {key} FROM delta.`{world.feed.path}` ORDER BY {key} LIMIT 1").collect()
    spark.sql(f"DELETE FROM delta.`{world.feed.path}` WHERE {key} = '{row[0]}'")

    found = world.verify()

    assert not found.equal and {one["cause"] for one in found.differences} == {"only_in_batch"}
    assert all(one["key"][key] == row[0] and one["speed"] is None for one in found.differences)
    seen = [one["batch"] for one in found.differences if set(case.values) <= set(one["batch"])]
    assert seen and all(one[key] == row[0] for one in seen)

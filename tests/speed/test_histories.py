"""Whole histories on real Delta: any interleaving of steps, rebuilds, merges, restarts shows the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tables import CASES
from tests.world import World
from twinlake.kinds.all import KINDS
from twinlake.kinds.kind import ViewClock

HISTORIES, OFTEN = 24, len(CASES)
OPERATIONS = 4


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


def test_there_is_a_table_of_every_stored_kind() -> None:
    stored = {kind for kind in KINDS.values() if "stores_rows" in vars(kind)}

    assert {type(case.table) for case in CASES} == stored


@pytest.mark.parametrize(
    "number",
    [*range(OFTEN), *(pytest.param(number, marks=pytest.mark.faults) for number in range(OFTEN, HISTORIES))],
)
def test_any_interleaving_shows_what_the_oracle_computes(
    spark: SparkSession, lake: Path, number: int, seed: int
) -> None:
    draw = random.Random(f"{seed}-{number}")
    case = CASES[number % len(CASES)]
    world = World(spark=spark, lake=lake, table=case.table, seed=draw.randrange(10**6), build=number + 1)
    did = []

    world.produce(draw.randrange(1, 30))
    world.step()
    for _ in range(OPERATIONS):
        for _ in range(draw.randrange(1, 3)):
            world.produce(draw.randrange(0, 30))
        operation = draw.choice(("step", "step to", "close", "merge", "rebuild", "restart", "idle"))
        did.append(operation)
        if operation == "step":
            world.step()
        elif operation == "step to":
            world.step(draw.randrange(world.at.position, world.log.end() + 1))
        elif operation == "close":
            world.close()
        elif operation == "merge":
            world.merge()
        elif operation == "rebuild":
            assert world.rebuild().certificate.equal
        elif operation == "restart":
            world.restart()
    world.restart()
    world.step()

    assert world.at.position == world.log.end()
    relations = {case.table.name: f"delta.`{world.feed.path}`"}
    rows = spark.sql(case.table.view(relations, ViewClock())).collect()
    records = [record for batch in world.log.batches for record in batch]
    assert case.shown(rows) == case.oracle(records), f"history {number} of {case.table.name}: {did}"

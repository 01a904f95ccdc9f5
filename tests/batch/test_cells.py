"""Sessions and hopping windows on real Delta: batch work limited to some cells is exact."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.history import MINUTE, START
from tests.longer import some
from tests.tables import GAP, SLIDING, VISITS, Case, Shown
from tests.world import World
from twinlake.batch.due import Scope, gained
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.segments import Closed

CASES = pytest.mark.parametrize("case", [VISITS, SLIDING], ids=lambda case: case.table.name)


def shown(world: World, case: Case) -> Shown:
    return case.shown(world.feed.view(world.pin()).collect())


def expected(world: World, case: Case) -> Shown:
    return case.oracle([record for batch in world.log.batches[: world.at.position] for record in batch])


@CASES
@pytest.mark.parametrize("number", some(range(3)))
def test_any_interleaving_of_steps_and_batch_work_on_any_cells_shows_what_the_oracle_does(
    spark: SparkSession, tmp_path: Path, case: Case, number: int, seed: int
) -> None:
    draw = random.Random(f"{seed}-{number}")
    world = World(spark=spark, lake=tmp_path, table=case.table, seed=draw.randrange(10**6))
    did = []
    for operation in ("step", *draw.sample(("step", "close", "merge", "rebuild", "range", "restart"), 5)):
        did.append(operation)
        world.produce(draw.randrange(1, 40))
        if operation == "step":
            world.step()
        elif operation == "close":
            world.close()
        elif operation == "merge":
            world.fill(segments=3)
            world.merge()
        elif operation == "rebuild":
            assert world.rebuild(chunk_records=draw.choice((20, 10**6))).certificate.equal
        elif operation == "range":
            first = START + draw.randrange(-60, 500) * timedelta(seconds=1)
            assert world.rebuild(windows=Windows.between(first, first + 3 * MINUTE)).certificate.equal
        else:
            world.restart()
    world.restart()
    world.step()

    assert world.verify().equal, did
    assert shown(world, case) == expected(world, case), did


@CASES
def test_what_is_changed_in_one_cell_is_found_and_repaired_there(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    world = World(spark=spark, lake=tmp_path, table=case.table)
    world.fill(segments=2)
    grid = case.table.cells.column
    spark.sql(
        f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000"
        f" WHERE {grid} = TIMESTAMP '{START + 4 * MINUTE}'"
    )

    wrong = world.verify()
    beside = world.rebuild(windows=Windows.between(START + 5 * MINUTE, START + 7 * MINUTE))
    there = world.rebuild(windows=Windows.between(START + 4 * MINUTE, START + 5 * MINUTE), repair=True)

    assert {one["cause"] for one in wrong.differences} == {"state_differs"} and not wrong.equal
    assert beside.certificate.equal and beside.certificate.rows_compared > 0
    assert there.replaced and not there.certificate.equal
    assert world.verify().equal and shown(world, case) == expected(world, case)


@CASES
@pytest.mark.faults
def test_the_cells_of_new_records_are_rebuilt_and_verified_and_the_rest_by_what_it_counted(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    """A late record lies in one cell, of sessions and of windows."""
    world = World(spark=spark, lake=tmp_path, table=case.table)
    world.fill(segments=2)
    rebuilt, verified = world.rebuild().certificate, world.verify()
    late = {**world.orders.record(), "ordered_at": START + 4 * MINUTE + GAP}
    world.log.append([late])
    world.step()
    touched = gained(world.feed, rebuilt.position, {"orders": world.at.position})

    def due(closed: Closed) -> Scope:
        return Scope(windows=touched, base=rebuilt.as_base)

    assert touched == Windows.between(START + 4 * MINUTE, START + 5 * MINUTE)
    assert world.rebuild(windows=due).certificate.equal
    scope = Scope(windows=touched, base=verified.as_base)
    composed = world.verify(scope)
    assert composed.equal and composed.covers_all and shown(world, case) == expected(world, case)
    seventh = f"{case.table.cells.column} = TIMESTAMP '{START + 7 * MINUTE}'"
    spark.sql(f"DELETE FROM delta.`{world.feed.path}` WHERE {seventh}")
    (lost,) = world.verify(scope).differences
    assert lost["cause"] == "elsewhere"

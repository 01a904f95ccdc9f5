"""Tables by the log's own clocks on real Delta: speed, batch, restarts and merges agree on every window."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.history import MINUTE, START, sales
from tests.longer import some
from tests.world import World
from twinlake.base.times import EPOCH
from twinlake.batch.due import gained
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME
from twinlake.kinds.grid import micros
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.windows import Tumbling, Windows

ARRIVED = Aggregate(
    name="arrived", inputs=("orders",), columns={"region": "region", "on": "_timestamp"}, keys=("region",),
    window=Tumbling(on="on", size="2 minutes"), measures={"orders": Count()},
)  # fmt: skip
PROCESSED = replace(ARRIVED, name="processed", columns={**ARRIVED.columns, "on": "_ingested_at"})
TABLES = pytest.mark.parametrize("table", [ARRIVED, PROCESSED], ids=lambda table: table.name)
Shown = dict[tuple[str, datetime], int]


def start_of(world: World, record: dict[str, Any], batch: int) -> datetime:
    at: datetime = record["_timestamp"] if world.table is ARRIVED else world.log.ingested_at(batch)
    return START + (at - START) // (2 * MINUTE) * 2 * MINUTE


def expected(world: World) -> Shown:
    found: Shown = defaultdict(int)
    for batch, held in enumerate(world.log.batches[: world.at.position], start=1):
        for record in held:
            found[record["region"], start_of(world, record, batch)] += 1
    return dict(found)


def shown(world: World) -> dict[tuple[str, datetime], tuple[int, bool]]:
    rows = world.feed.view(world.pin()).collect()
    return {
        (row["region"], row["window_start"].astimezone(UTC)): (row["orders"], row["final"]) for row in rows
    }


@TABLES
@pytest.mark.parametrize("number", some(range(2)))
def test_any_interleaving_of_steps_and_batch_work_shows_the_windows_of_the_log_s_clock(
    spark: SparkSession, tmp_path: Path, table: Any, number: int, seed: int
) -> None:
    draw = random.Random(f"{seed}-{number}")
    world = World(spark=spark, lake=tmp_path, table=table, seed=draw.randrange(10**6))
    did = []
    for operation in ("step", *draw.sample(("step", "merge", "rebuild", "range", "restart"), 4)):
        did.append(operation)
        world.produce(draw.randrange(1, 30))
        if operation == "step":
            world.step()
        elif operation == "merge":
            world.fill(segments=3)
            world.merge()
        elif operation == "rebuild":
            assert world.rebuild().certificate.equal
        elif operation == "range":
            first = START + draw.randrange(-1, 8) * MINUTE
            assert world.rebuild(windows=Windows.between(first, first + 4 * MINUTE)).certificate.equal
        else:
            world.restart()
    world.restart()
    world.step()

    assert world.verify().equal, did
    assert {key: orders for key, (orders, _) in shown(world).items()} == expected(world), did


@TABLES
def test_the_windows_of_new_batches_are_due_by_the_log_s_clock(
    spark: SparkSession, tmp_path: Path, table: Any
) -> None:
    world = World(spark=spark, lake=tmp_path, table=table)
    world.fill(segments=3)
    since = world.pin().position
    world.fill(segments=1)

    found = gained(world.feed, since, world.pin().position)

    starts = {micros(start_of(world, record, 4) - EPOCH) for record in world.log.batches[3]}
    assert found == Windows.of(starts, 2 * MINUTE)
    assert table is ARRIVED or len(found.ranges) == 1


def test_a_window_by_processing_time_is_final_from_the_first_batch_on_that_cannot_add_to_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Batch n is added at minute n: the fourth is the first one behind the window of the second and third.

    What a restart reads back from the version's commits says the same.
    """
    world = World(spark=spark, lake=tmp_path, table=PROCESSED)
    window, finals = START + 2 * MINUTE, []
    for _ in range(4):
        world.produce()
        world.step()
        finals.append({final for (_, start), (_, final) in shown(world).items() if start == window})
    before = shown(world)
    world.restart()

    assert finals == [set(), {False}, {False}, {True}]
    assert shown(world) == before and world.at.clocks == world.log.metadata()["clocks"]


def test_records_that_the_log_has_no_processing_time_of_are_in_no_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Those of before the log recorded it."""
    world = World(spark=spark, lake=tmp_path, table=PROCESSED)
    world.log.append([{**record, "_ingested_at": None} for record in world.orders.batch(5)])
    world.produce(7)
    world.step()

    assert sum(orders for orders, _ in shown(world).values()) == 7
    assert world.rebuild().certificate.equal


def test_a_table_by_event_time_knows_nothing_of_the_other_clocks(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path)
    world.fill(segments=1)

    assert world.shows() == sales(world.log.batches[0])
    assert set(world.at.clocks) == {LOG_APPEND_TIME, PROCESSING_TIME}

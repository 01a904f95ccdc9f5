"""Which rows of a view changed between two pins: the steps' files tell, on real Delta."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES
from tests.tables import SLIDING
from tests.world import World
from twinlake.difference import touched as module
from twinlake.difference.diff import Side, changes
from twinlake.difference.pinned import exact_side, only
from twinlake.difference.touched import is_readable, touched
from twinlake.kinds.clock import PROCESSING_TIME
from twinlake.kinds.kind import StoredKind
from twinlake.kinds.windows import Hopping
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta.delta import LOG_FOLDER

UNEVEN = replace(
    SLIDING.table, name="uneven", window=Hopping(on="ordered_at", size="150 seconds", every="1 minute")
)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark=spark, lake=tmp_path)


def shown(world: World, old: Pin, new: Pin, by_touched: bool) -> dict[Any, tuple[Any, Any]]:
    """By key, what readers saw at the two pins of each row that differs."""
    left, right = exact_side(world.feed, old), exact_side(world.feed, new)
    if by_touched:
        keys = touched(world.feed, old, new)
        assert keys is not None
        left, right = only(left, keys), only(right, keys)
    found = changes(left, right, world.table.view_keys).collect()
    return {tuple((row["l"] or row["r"])[key] for key in world.table.view_keys): (row["l"], row["r"])
            for row in found}  # fmt: skip


@pytest.mark.faults
@pytest.mark.parametrize(
    "table", [SALES, LATEST, SLIDING.table, UNEVEN], ids=["aggregate", "latest", "hopping", "uneven hopping"]
)
def test_touched_keys_lead_to_every_change_of_any_history(
    spark: SparkSession, tmp_path: Path, seed: int, table: StoredKind
) -> None:
    world, draw = World(spark=spark, lake=tmp_path, table=table, seed=seed), random.Random(seed)
    pins = [world.pin()]
    for _ in range(8):
        draw.choice([world.produce, world.step, world.step, world.close, world.merge, world.rebuild])()
        if draw.random() < 0.4:
            pins.append(world.pin())
    world.produce()
    world.step()
    pins.append(world.pin())

    for old, new in [(pins[0], pins[-1]), *pairwise(pins)]:
        assert shown(world, old, new, by_touched=True) == shown(world, old, new, by_touched=False)
    assert shown(world, pins[0], pins[-1], by_touched=True)


def test_merges_and_equal_rebuilds_touch_nothing(world: World) -> None:
    world.fill(3)
    old = world.pin()
    world.merge()
    assert world.rebuild().replaced
    keys = touched(world.feed, old, world.pin())

    assert keys is not None and keys.count() == 0


def test_a_repair_touches_what_no_step_tells(world: World) -> None:
    world.fill(1)
    damaged = world.feed.rows().toArrow()
    old = world.pin()
    write_deltalake(str(world.feed.path), damaged, mode="append", partition_by=["_segment"])
    assert touched(world.feed, old, world.pin()) is None

    old = world.pin()
    assert world.rebuild(repair=True).replaced

    assert touched(world.feed, old, world.pin()) is None


def test_more_values_than_are_held_in_memory_are_not_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = world.pin()
    world.fill(3)
    keys = touched(world.feed, old, world.pin())
    assert keys is not None
    count = keys.count()
    assert world.feed.rows().count() > count

    monkeypatch.setattr(module, "MOST_VALUES", count)
    assert touched(world.feed, old, world.pin()) is not None
    monkeypatch.setattr(module, "MOST_VALUES", count - 1)
    assert touched(world.feed, old, world.pin()) is None


def test_lost_commits_are_noticed(world: World) -> None:
    world.fill(1)
    old = world.pin()
    world.fill(2)
    new = world.pin()
    commits = world.feed.path / LOG_FOLDER
    assert old.delta_version is not None and is_readable(world.feed, old)
    (commits / f"{old.delta_version + 1:020d}.json").unlink()

    assert touched(world.feed, old, new) is None


def test_lost_files_are_noticed(world: World) -> None:
    world.fill(1)
    old = world.pin()
    world.fill(1)
    files = list(world.feed.path.glob("_segment=*/*.parquet"))
    world.fill(1)
    new = world.pin()
    for file in files:
        file.unlink()

    assert touched(world.feed, old, new) is None
    assert not is_readable(world.feed, old)


def test_a_pin_of_a_history_that_was_restored_away_is_no_longer_there(world: World) -> None:
    world.fill(2)
    pin = world.pin()
    assert pin.step is not None and is_readable(world.feed, pin)

    others: tuple[dict[str, Any], ...] = (
        {"watermarks": {"orders": 1}}, {"clocks": {"orders": {PROCESSING_TIME: 1}}},
        {"position": {"orders": 1}}, {"step": pin.step - 1},
    )  # fmt: skip
    assert [is_readable(world.feed, replace(pin, **other)) for other in others] == [False] * len(others)


def test_rows_of_other_columns_all_differ(spark: SparkSession) -> None:
    old = spark.sql("SELECT 1 AS k, 5 AS v")
    new = spark.sql("SELECT 1 AS k, 5 AS v, 'x' AS more")
    same = spark.sql("SELECT 1 AS k, 5L AS v")

    assert changes(Side(rows=old), Side(rows=old), ["k"]).count() == 0
    assert changes(Side(rows=old), Side(rows=new), ["k"]).count() == 1
    assert changes(Side(rows=old), Side(rows=same), ["k"]).count() == 1

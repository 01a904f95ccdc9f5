"""The speed layer on real Delta: steps, segments, and what must stop a version rather than count wrongly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES, MemoryLog, Orders
from tests.world import World
from twinlake.base.errors import LostVersionError, SilentSkipError, StalledVersionError
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender
from twinlake.speed.advance import Standing, advance, cuts, history_of, standing


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark=spark, lake=tmp_path)


def test_a_step_that_delta_knows_is_refused_and_counts_nothing_twice(world: World) -> None:
    """Delta skips a known transaction without a word; an owner with an outdated step must hear of it."""
    world.produce()
    world.produce()
    before = world.at
    world.step(1)

    with pytest.raises(SilentSkipError) as refused:
        advance(world.feed, before, 2)

    assert world.shows() == world.expected()
    assert "restart the lake server" in refused.value.remedy
    world.restart()
    world.step()
    assert world.shows() == world.expected()


def test_a_restart_goes_on_from_delta_whatever_batch_commit_came_last(world: World) -> None:
    """The step is the snapshot's, not the last commit's: that one may be a rebuild's or a merge's."""
    world.produce()
    world.step()
    world.rebuild()
    stood = world.at

    assert standing(world.feed) == stood
    world.produce()
    world.restart()
    world.step()
    assert world.shows() == world.expected()


def test_a_segment_counts_as_closed_only_after_its_own_commit(world: World) -> None:
    """Closing takes the next step number, so a step that was under way cannot come after it."""
    world.produce()
    world.step()
    world.produce()
    world.close()
    before_close = replace(world.at, step=world.at.step - 1, segment=world.at.segment - 1)

    with pytest.raises(SilentSkipError):
        advance(world.feed, before_close, 2)

    clocks = world.log.metadata(1)["clocks"]
    assert world.at == Standing(
        step=2, segment=1, position=1, watermark=1, clocks=clocks, records=20, steps_open=0
    )
    assert standing(world.feed) == world.at


def test_a_table_ahead_of_its_log_is_refused(world: World) -> None:
    world.produce()
    world.step()
    world.log.batches.clear()

    with pytest.raises(LostVersionError, match="ahead of its log"):
        standing(world.feed)


def test_a_table_that_was_ahead_of_its_log_is_refused_too_once_the_log_has_read_on(tmp_path: Path) -> None:
    """What was read again has other numbers: records between would be lost without a word."""
    nothing = pa.table({"orders": pa.array([], pa.int64())})
    write_deltalake(str(tmp_path), nothing)
    appender = Appender(tmp_path, [])
    told = {
        "kind": "step", "step": 1, "segment": 0, "position": {"orders": 3}, "watermark": 1, "records": 60,
        "steps_open": 1, "history": history_of({"ends": {"0": {"0": 30, "1": 30}}, "counts": {"valid": 60}}),
    }  # fmt: skip
    appender.commit([], appender.table_id, 1, told)
    counts = {"valid": 60}
    ends = {"0": {"0": 30, "1": 30}}
    log: Any = SimpleNamespace(
        path="the log", end=lambda: 5, metadata=lambda batch: {"counts": counts, "ends": ends}
    )
    feed: Any = SimpleNamespace(
        appender=appender, path=tmp_path, table_id=appender.table_id, topic="orders", version="v", log=log
    )
    assert standing(feed).records == 60

    counts["valid"] = 80
    with pytest.raises(LostVersionError, match="batch 3 of the log is not the one"):
        standing(feed)
    counts["valid"] = 60
    ends["0"] = {"0": 31, "1": 29}  # as many, and others
    with pytest.raises(LostVersionError, match="batch 3 of the log is not the one") as refused:
        standing(feed)
    assert refused.value.facts["reason"] == "other_history" and "other records now" in refused.value.why


def test_a_small_step_is_one_file_and_an_empty_one_none(world: World) -> None:
    world.produce(50)
    world.step()
    world.log.append([])
    world.step()

    newest = delta.newest_version(world.feed.path)
    commits = [delta.commit(world.feed.path, version) for version in (newest - 1, newest)]
    assert [len(commit.added) for commit in commits if commit] == [1, 0]
    assert world.at.position == 2


def test_files_carry_statistics_of_the_columns_that_prune_and_of_no_other(world: World) -> None:
    world.produce()
    world.step()

    newest = delta.newest_version(world.feed.path)
    text = (world.feed.path / "_delta_log" / f"{newest:020d}.json").read_text()
    assert "minValues" in text
    assert '\\"window_start\\"' in text and '\\"sales__sum\\"' not in text


def test_a_long_range_is_cut_by_records_and_never_inside_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    log, orders = MemoryLog(spark, tmp_path), Orders(1)
    for size in (3, 3, 9, 1, 1, 4):
        log.append(orders.batch(size))

    assert cuts(log, 0, 6, limit=6) == [2, 3, 6]
    assert cuts(log, 4, 5, limit=6) == [5]


@pytest.mark.parametrize("table", [SALES, LATEST], ids=["aggregate", "latest"])
def test_one_long_step_and_many_short_ones_show_the_same(spark: SparkSession, tmp_path: Path, table) -> None:
    short, long = (World(spark=spark, lake=tmp_path, table=table, build=build) for build in (1, 2))
    for _ in range(3):
        short.produce()
        short.step()
    long.log = short.log
    long.restart()
    long.step()

    assert long.at.step == 1
    assert short.shows() == long.shows() == short.expected()


def test_a_step_that_would_break_an_invariant_is_refused_before_its_commit(world: World) -> None:
    world.produce()
    world.step()
    world.produce()
    commits = delta.newest_version(world.feed.path)

    with pytest.raises(
        StalledVersionError, match=r"step 2 of .* would break positions_never_back"
    ) as refused:
        advance(world.feed, replace(world.at, records=1000), 2)

    assert delta.newest_version(world.feed.path) == commits
    assert "is read from its table and tried again by itself" in refused.value.remedy
    world.restart()
    world.step()
    assert world.shows() == world.expected()

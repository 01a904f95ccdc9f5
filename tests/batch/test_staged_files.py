"""What a rebuild has staged may be deleted beside it: then nothing is replaced."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.world import World
from twinlake.base.errors import BusyError
from twinlake.batch.attempt import Attempt
from twinlake.batch.maintain import drop_staging


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    made = World(spark=spark, lake=tmp_path)
    made.fill(segments=2)
    return made


def test_a_rebuild_whose_files_are_deleted_after_the_comparison_replaces_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It committed the removal of all rows and no file in their place."""
    replacing = Attempt.replacing

    def deleted_beside(self: Attempt, *told: Any) -> None:
        replacing(self, *told)
        drop_staging(world.lake / "staging", set)

    with monkeypatch.context() as beside:
        beside.setattr(Attempt, "replacing", deleted_beside)
        with pytest.raises(BusyError, match="has computed is gone"):
            world.rebuild()

    assert world.shows() == world.expected()
    assert world.rebuild().certificate.equal and world.shows() == world.expected()


def test_a_repair_is_not_made_by_the_half_that_is_left_of_what_was_computed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Attempt.computed

    def one_deleted(self: Attempt, files: dict[str, int]) -> None:
        computed(self, files)
        next(world.lake.glob("staging/*/computed/*/_chunk=*/*.parquet")).unlink()

    monkeypatch.setattr(Attempt, "computed", one_deleted)
    with pytest.raises(BusyError, match="has computed is gone"):
        world.rebuild(repair=True)

    assert world.shows() == world.expected()


def test_files_that_somebody_finishes_late_are_not_of_the_computation(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor that outlives its driver: in the folder of the attempt before, and even in this one's."""
    computed = Attempt.computed

    def finished_beside(self: Attempt, files: dict[str, int]) -> None:
        computed(self, files)
        file = next(world.lake.glob("staging/*/computed/*/_chunk=*/*.parquet"))
        shutil.copy(file, file.with_name(f"late-{file.name}"))
        before = file.parents[2] / "before" / file.parent.name
        before.mkdir(parents=True)
        shutil.copy(file, before / file.name)

    monkeypatch.setattr(Attempt, "computed", finished_beside)

    assert world.rebuild().certificate.equal
    assert world.shows() == world.expected()

"""Clean-up deletes what nobody needs any more, and nothing else."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.damages import forget
from twinlake.base.disk import Walk
from twinlake.batch.maintain import drop_staging, vacuum
from twinlake.lake.delta import delta
from twinlake.lake.disk import needed, spare_files

HOUR_S = 3600


def staged(lake: Path, *jobs: str) -> Path:
    """A staging folder in which each of these jobs has left a chunk and a file."""
    staging = lake / "staging"
    for job in jobs:
        (staging / job / "chunk-0").mkdir(parents=True)
        (staging / job / "chunk-0" / "part.parquet").write_bytes(b"rows")
        (staging / job / "done.json").write_text("{}")
    return staging


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_dead_jobs_left_is_deleted_and_what_living_ones_need_stays(tmp_path: Path) -> None:
    staging = staged(tmp_path, "dead1", "alive", "dead2")

    gone = drop_staging(staging, lambda: {"alive", "without staging"})

    assert sorted(gone) == ["dead1", "dead2"]
    assert [path.name for path in staging.iterdir()] == ["alive"]
    assert files(staging) == {"alive/chunk-0/part.parquet", "alive/done.json"}


def test_a_job_that_begins_while_others_are_deleted_keeps_what_it_stages(tmp_path: Path) -> None:
    """One that had failed is asked for again under its key, and goes on with what it had staged."""
    staging = staged(tmp_path, "one", "two")

    def alive() -> set[str]:
        """Whoever is left once somebody else is gone."""
        return set() if len([*staging.iterdir()]) == 2 else {"one", "two"}

    (gone,) = drop_staging(staging, alive)

    assert [path.name for path in staging.iterdir()] == [*{"one", "two"} - {gone}]


def test_a_job_is_not_kept_by_another_one_with_a_longer_name(tmp_path: Path) -> None:
    staging = staged(tmp_path, "job1", "job12")

    drop_staging(staging, lambda: {"job12"})

    assert [path.name for path in staging.iterdir()] == ["job12"]


def test_nothing_beside_the_staging_folder_is_touched(tmp_path: Path) -> None:
    staging = staged(tmp_path, "dead")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "rows.parquet").write_bytes(b"rows")

    drop_staging(staging, set)

    assert files(tmp_path) == {"tables/rows.parquet"}


def test_a_lake_that_never_staged_anything_has_nothing_to_drop(tmp_path: Path) -> None:
    assert drop_staging(tmp_path / "staging", lambda: {"alive"}) == []


def replaced(spark: SparkSession, path: Path, hours_ago: int) -> Path:
    """A table whose first file was replaced so many hours ago; that file."""
    first = path / delta.append(spark.range(3), path, "me", 1, {}).added[0]
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES "
              "('delta.deletedFileRetentionDuration' = 'interval 2 days')")  # fmt: skip
    made = delta.replace(spark.range(2), path, "true", "me", 2, {})
    then_s = time.time() - hours_ago * HOUR_S
    commit = path / delta.LOG_FOLDER / f"{made.version:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] = int(then_s * 1000)
    commit.write_text("\n".join(json.dumps(action) for action in actions))
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)  # of what it said before
    os.utime(commit, (then_s, then_s))
    os.utime(first, (then_s - 72 * HOUR_S, then_s - 72 * HOUR_S))
    forget(spark)
    return first


@pytest.mark.parametrize(("keep_hours", "stays"), [(8, True), (6, False)])
def test_replaced_files_go_after_the_time_that_is_asked_for_and_not_after_the_tables_own(
    spark: SparkSession, tmp_path: Path, keep_hours: int, stays: bool
) -> None:
    first = replaced(spark, tmp_path / "t", hours_ago=7)
    known = {one.path: one for one in Walk().entries(tmp_path / "t")}
    spare = list(spare_files(known.values(), *needed(tmp_path / "t")))
    old = [one for one in spare if time.time() - one.modified_s > keep_hours * HOUR_S]

    vacuum(spark, tmp_path / "t", keep_hours)

    assert first.exists() is stays
    gone = {path for path in known if not (tmp_path / "t" / path).exists() and path.endswith(".parquet")}
    assert {one.path for one in old} == gone, "`twinlake status --disk` announces what goes"
    assert first.name in {one.path for one in spare}
    assert spark.read.format("delta").load(str(tmp_path / "t")).count() == 2

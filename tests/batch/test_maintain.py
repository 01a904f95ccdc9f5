"""Clean-up deletes what nobody needs any more, and nothing else."""

from __future__ import annotations

from pathlib import Path

from jobs.batch.maintain import drop_staging


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

    gone = drop_staging(staging, {"alive", "without staging"})

    assert sorted(gone) == ["dead1", "dead2"]
    assert [path.name for path in staging.iterdir()] == ["alive"]
    assert files(staging) == {"alive/chunk-0/part.parquet", "alive/done.json"}


def test_jobs_that_are_alive_may_be_named_by_a_generator(tmp_path: Path) -> None:
    staging = staged(tmp_path, "one", "two", "dead")

    gone = drop_staging(staging, (job for job in ("two", "one")))

    assert gone == ["dead"]


def test_a_job_is_not_kept_by_another_one_with_a_longer_name(tmp_path: Path) -> None:
    staging = staged(tmp_path, "job1", "job12")

    drop_staging(staging, {"job12"})

    assert [path.name for path in staging.iterdir()] == ["job12"]


def test_nothing_beside_the_staging_folder_is_touched(tmp_path: Path) -> None:
    staging = staged(tmp_path, "dead")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "rows.parquet").write_bytes(b"rows")

    drop_staging(staging, ())

    assert files(tmp_path) == {"tables/rows.parquet"}


def test_a_lake_that_never_staged_anything_has_nothing_to_drop(tmp_path: Path) -> None:
    assert drop_staging(tmp_path / "staging", {"alive"}) == []

"""A breakpoint stops one thread where a test asks for it, and does nothing anywhere else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point, at
from twinlake.base.waiting import wait_for
from twinlake.lake.delta import delta
from twinlake.lake.delta.in_commit import in_commit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(breakpoints, "_folder", None)
    breakpoints.honour(tmp_path)
    return tmp_path


def passing(*calls: tuple[Point, str]) -> list[threading.Thread]:
    """Threads that come by these points."""
    threads = [threading.Thread(target=at, args=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def ended(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


def test_a_thread_stops_where_it_is_asked_to_until_it_is_told_to_go_on(folder: Path) -> None:
    (folder / Point.BEFORE_RELEASE).touch()
    other, stopped = passing((Point.AFTER_RELEASE, ""), (Point.BEFORE_RELEASE, ""))
    reached = folder / "before-release.reached"
    wait_for("the point", lambda: True if reached.exists() else None, 10, every_s=0.01)

    assert ended(other) and stopped.is_alive()
    assert [file.name for file in folder.iterdir()] == [reached.name]
    reached.unlink()
    assert ended(stopped)


def test_a_point_asked_for_one_table_lets_the_others_pass(folder: Path) -> None:
    (folder / Point.BEFORE_PARTIAL).write_text("latest_order")

    (other,) = passing((Point.BEFORE_PARTIAL, "sales"))

    assert ended(other)
    assert [file.name for file in folder.iterdir()] == ["before-partial"]


def test_nobody_stops_where_no_folder_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakpoints, "_folder", None)
    monkeypatch.chdir(tmp_path)
    for point in Point:
        (tmp_path / point).touch()

    assert all(map(ended, passing(*((point, "") for point in Point))))


def test_a_write_stops_with_its_data_files_and_again_before_its_commit(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    delta.create(spark, table, spark.range(0).schema)

    def write() -> None:
        with in_commit(spark, Point.AFTER_LOG_FILES, Point.BEFORE_LOG_COMMIT):
            delta.append(spark.range(3).coalesce(1), table, "test", 1, {"told": "once"})
        delta.append(spark.range(3).coalesce(1), table, "test", 2, {"told": "again"})

    points = (Point.AFTER_LOG_FILES, Point.BEFORE_LOG_COMMIT)
    for point in points:
        (folder / point).touch()
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    stood = []
    for point in points:
        reached = folder / f"{point}.reached"
        wait_for(point, lambda reached=reached: True if reached.exists() else None, 60)
        stood.append((len(list(table.glob("*.parquet"))), delta.newest_version(table)))
        (folder / Point.AFTER_LOG_FILES).touch()  # the second write is not watched
        reached.unlink()
    writer.join(60)

    assert stood == [(1, 0), (1, 0)]
    assert not writer.is_alive() and delta.newest_version(table) == 2


def test_nothing_that_starts_a_platform_asks_for_breakpoints() -> None:
    services = (PROJECT / "twinlake" / "services").rglob("*.py")
    starting = [PROJECT / "Makefile", PROJECT / "docker-compose.yml", *services]

    asks = ("--breakpoints", "breakpoints.honour")
    assert [file.name for file in starting if any(one in file.read_text() for one in asks)] == []

"""Large results take bounded memory and disk on both sides; what breaks off leaves nothing anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.faults.disk import Disk, small_disk
from tests.reading.conftest import Released, SqlServer, started
from tests.reading.test_exports import LARGE, spooled, until_free
from twinlake.base.errors import BusyError, FullDiskError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.reading import file_formats, typed_files
from twinlake.reading.client import Waiting
from twinlake.reading.export import Exports
from twinlake.reading.export_client import open_batches
from twinlake.spark.session import scratch_folder

HEAP_MB = 512
MB = 1 << 20
NARROW = "SELECT id, repeat(uuid(), 28) AS x FROM range(0, 2000000, 1, 40)"
WIDE = "SELECT id, repeat('x', 1000000) AS x FROM range(0, 2000, 1, 2)"
"""2 GB each: of rows of a kilobyte, and of a megabyte, of which 4,096 would be a batch of 4 GB."""
MOST_JVM = (HEAP_MB + 700) * MB
"""Beside the heap: classes, compiled code, and batches of ten tasks."""
MOST_GROWTH = 200 * MB
"""Of a process of Python while 2 GB go through it."""


@pytest.fixture(scope="module")
def small(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    server = SqlServer(
        home=released.lake.parent, scratch=tmp_path_factory.mktemp("small"),
        more=("--memory", f"{HEAP_MB}m"),
    )  # fmt: skip
    with started(server):
        yield server


class Watched:
    """The most memory that processes have in a block, of pages that are theirs alone and not a file's."""

    def __init__(self, **processes: psutil.Process) -> None:
        self._processes = processes
        self.before = {name: self._rss(one) for name, one in processes.items()}
        self.most = dict(self.before)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @staticmethod
    def _rss(process: psutil.Process) -> int:
        found = process.memory_info()
        return int(found.rss - found.shared)

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            for name, one in self._processes.items():
                self.most[name] = max(self.most[name], self._rss(one))

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def growth(self, name: str) -> int:
        return self.most[name] - self.before[name]


@pytest.mark.faults
@pytest.mark.parametrize("asked", [NARROW, WIDE], ids=["many rows", "wide rows"])
def test_two_gigabytes_take_little_memory_at_the_server_and_here(
    small: SqlServer, tmp_path: Path, asked: str
) -> None:
    assert small._process is not None
    small.services.save(Settings(home=tmp_path).services_file)
    server = psutil.Process(small._process.pid)
    began = time.monotonic()
    with Watched(jvm=small.jvm(), server=server) as there:
        client = subprocess.Popen(
            [sys.executable, "-m", "twinlake", "--home", str(tmp_path), "query", asked,
             "--output", str(tmp_path / "a.parquet")],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for("the client", lambda: psutil.Process(client.pid).memory_info().rss > 50 * MB or None, 30)
        with Watched(client=psutil.Process(client.pid)) as here:
            _, words = client.communicate(timeout=500)

    shown = {name: value // MB for name, value in (there.most | here.most).items()}
    print(f"{time.monotonic() - began:.0f} s, MB at most: {shown}", file=sys.stderr)
    assert client.returncode == 0, words
    assert there.most["jvm"] < MOST_JVM, shown
    assert there.growth("server") < MOST_GROWTH, shown
    assert here.growth("client") < 2 * MOST_GROWTH, shown
    until_free(small)


@pytest.mark.faults
def test_a_server_that_is_killed_leaves_no_file_and_starts_empty(
    small: SqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    small.services.save(Settings(home=tmp_path).services_file)
    valid = typed_files.valid

    def killing(batches: Any) -> Iterator[Any]:
        for number, batch in enumerate(valid(batches)):
            if number == 1:
                java = small.jvm()
                small.kill()
                java.wait(30)
            yield batch

    monkeypatch.setattr(typed_files, "valid", killing)
    folder = tmp_path / "out"
    folder.mkdir()
    done = CliRunner().invoke(build_app(), ["query", LARGE, "--output", str(folder / "a.parquet")])

    assert isinstance(done.exception, UnreachableError), done.output
    assert done.exception.what == "the answer broke off" and "of 100,000 rows" in done.exception.why
    assert [*folder.iterdir()] == []
    left = spooled(small)
    small.start()
    assert left and spooled(small) == []


@pytest.mark.faults
def test_a_server_that_dies_while_it_computes_is_asked_once_more(
    small: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.reading.client.AWAY_S", 300.0)  # of a busy machine
    words, had = list[str](), list[int]()
    slow = "SELECT count(*) AS n FROM range(0, 1000000000, 1, 40) WHERE hash(id) % 7 = 1"

    def ask() -> None:
        with open_batches(small.services, slow, waiting=Waiting(words.append)) as batches:
            had.extend(batch.num_rows for batch in batches)

    asking = threading.Thread(target=ask)
    asking.start()
    small.until_busy(2)
    small.kill()
    small.start()
    asking.join(300)

    assert had == [1]
    assert "ended while it ran the statement" in words[0]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk", megabytes=16) as made:
        yield made


@pytest.mark.faults
@pytest.mark.parametrize("ending", file_formats.FORMATS)
def test_a_full_disk_here_is_said_and_nothing_is_left_on_it(
    sql: SqlServer, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    sql.services.save(Settings(home=tmp_path).services_file)
    asked = "SELECT id, uuid() AS x FROM range(0, 1000000, 1, 4)"

    done = CliRunner().invoke(build_app(), ["query", asked, "--output", str(disk.folder / f"a.{ending}")])

    assert isinstance(done.exception, FullDiskError), (done.output, done.exception)
    assert done.exception.what == f"the disk of {disk.folder} is full"
    assert [*disk.folder.iterdir()] == []
    free = os.statvfs(disk.folder)
    assert free.f_bavail == free.f_blocks, "not even without a name"
    until_free(sql)


@pytest.mark.faults
def test_the_servers_disk_is_never_filled_and_is_asked_again_with_room(
    released: Released, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "scratch", megabytes=1_500) as disk:
        server = SqlServer(home=released.lake.parent, scratch=disk.folder)
        with started(server):
            disk.fill(leave=1_000 * MB)
            with pytest.raises(FullDiskError) as error:
                open_batches(server.services, LARGE)
            left = spooled(server)
            disk.give_room()
            with open_batches(server.services, LARGE) as batches:
                count = sum(batch.num_rows for batch in batches)

    assert error.value.what == f"the disk of {disk.folder / 'local'} has no room for a large result"
    assert "make room there" in error.value.remedy
    assert (left, count) == ([], 100_000)


def rows(spark: SparkSession) -> Any:
    return spark.sql("SELECT id, repeat('x', 1000) AS x FROM range(0, 30000, 1, 3)")


def left(spark: SparkSession) -> list[Path]:
    return [*scratch_folder(spark).glob("export-*")]


def test_what_does_not_fit_on_the_disk_is_refused_and_nothing_of_it_stays(spark: SparkSession) -> None:
    before = Exports(spark).bytes_held

    with pytest.raises(FullDiskError, match="has no room for a large result"):
        Exports(spark, kept_free=1 << 50).of(rows(spark), None)
    with pytest.raises(UsageError) as large:
        Exports(spark, most=1_000_000).of(rows(spark), None)

    assert large.value.why == "its rows have more than 1,000,000 bytes, which wait on the SQL server's disk"
    assert "export_gigabytes in [limits]" in large.value.remedy
    assert (Exports(spark).bytes_held, left(spark)) == (before, [])


def test_all_together_have_a_limit_and_files_go_as_they_are_sent(spark: SparkSession) -> None:
    exports = Exports(spark, most=Exports(spark).bytes_held + 40_000_000)
    first = exports.of(rows(spark), None)
    files = len(left(spark))
    with pytest.raises(BusyError, match="was stopped"):
        exports.of(rows(spark), None)

    pieces = first.arrow()
    seen = [len(left(spark)) for _ in pieces]
    assert first.facts["rows"] == 30_000
    assert (files, seen[0], sorted(seen, reverse=True), left(spark)) == (4, 3, seen, [])
    first.close()
    again = exports.of(rows(spark), None)
    again.close()
    assert left(spark) == []


def test_no_batch_of_a_file_has_many_bytes(spark: SparkSession) -> None:
    wide = spark.sql("SELECT repeat('x', 1000000) AS x FROM range(0, 40, 1, 1)")
    export = Exports(spark).of(wide, None)

    sizes = [batch.nbytes for batch in export._batches(mapped=True)]
    export.close()
    assert max(sizes) <= 6 * MB and sum(sizes) >= 40_000_000

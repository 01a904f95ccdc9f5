"""Backups of a lake server that works: each comes back as a lake that the oracle finds right, with every
record once, whatever went on while it was taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.demo.story import CHANGED, changed_definitions
from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views, differences
from twinlake.backup.archive import Archive, Backup
from twinlake.backup.check import check
from twinlake.backup.restore import restore
from twinlake.backup.take import take
from twinlake.base.job import Run
from twinlake.config.settings import Settings
from twinlake.lake.catalog import release_log

pytestmark = pytest.mark.faults
RUN = Run(id="test")
RECORDS, BUSY_S, LONG_S = 2_000, 60.0, 300.0


class Busy:
    """Records come without an end, a table is rebuilt, another release is built and made live."""

    def __init__(self, server: LakeProcess) -> None:
        self.server, self.ending = server, threading.Event()
        self.failed: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(one,)) for one in (self._send, self._change)
        ]

    def __enter__(self) -> Busy:
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        for one in self._threads:
            one.join()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failed.append(error)

    def _send(self) -> None:
        while not self.ending.wait(1):
            self.server.produce(RECORDS)

    def _change(self) -> None:
        self.server.do("rebuild", table=CHANGED)
        plan = self.server.do("plan", definitions=changed_definitions())["id"]
        self.server.do("build", plan=plan)
        self.server.do("promote", plan=plan, approved_by="test")
        self.server.do("maintain")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LakeProcess]:
    with lake_process(tmp_path / "lake") as made:
        made.produce(20_000)
        yield made


def test_any_moment_of_a_busy_minute_comes_back_and_kafka_has_the_rest(
    server: LakeProcess, spark: SparkSession, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    server.start()
    server.until(server.caught_up, LONG_S)
    server.release()
    settings, folder = Settings(home=server.home), tmp_path / "backups"
    taken: list[Backup] = []
    began = time.monotonic()

    with Busy(server) as busy:
        while time.monotonic() - began < BUSY_S or len(taken) < 4:
            taken.append(take(settings, folder, RUN))
            time.sleep(0.5)
    assert busy.failed == [] and release_log.live(server.home / "lake").number > 1  # type: ignore[union-attr]
    server.kill()
    taken.append(take(settings, folder, RUN))  # of what a kill has left

    archive = Archive(folder)
    batches = [one.logs["orders"] for one in taken]
    assert batches == sorted(batches) and batches[0] < batches[-1]
    assert len({one.id for one in taken}) == len(taken)
    figure("backups of a busy minute", f"{len(taken)}, from batch {batches[0]} to {batches[-1]}")
    for one in (taken[0], taken[len(taken) // 2], taken[-1]):
        assert check(archive, one, RUN).is_whole
        _comes_back(server, archive, one, spark)


def _comes_back(server: LakeProcess, archive: Archive, backup: Backup, spark: SparkSession) -> None:
    """In another folder, over the same Kafka."""
    server.home = server.home.with_name(f"home-{backup.id}")
    server.lake, server.breakpoints = server.home / "lake", server.home / "breakpoints"
    restore(archive, backup, server.home, server.home / "lake", RUN)
    replace(server.services, lake=str(server.lake)).save(server.home / "services.json")
    server.start(LONG_S)
    server.until(server.caught_up, LONG_S)
    views = Views(spark, server.lake)
    try:
        live = release_log.live(server.lake)
        assert live is not None
        changed = live.number > 1
        assert differences(server, views, without_cancelled=changed) == {}, (backup.id, live.number)
        for table in live.tables:
            assert server.do("verify", table=table)["equal"], table
    finally:
        views.close()
        server.kill()

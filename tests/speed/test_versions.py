"""Owners on real Delta: failures stay alone, comparisons meet at one position, one lock per version."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import twinlake.speed.owner
from tests.history import LATEST, SALES, MemoryLog, Orders, version_of
from tests.world import World
from twinlake.base.errors import BusyError, NotFoundError, TimedOutError, UsageError
from twinlake.base.job import CancelledError, Run
from twinlake.base.waiting import wait_for
from twinlake.batch.merge import merge_small
from twinlake.lake.catalog.version import Version
from twinlake.server import lock
from twinlake.speed.owner import Owner, PassedError
from twinlake.speed.versions import Versions

RUN = Run(id="test")


class BrittleLog(MemoryLog):
    """A log whose rows one version cannot compute as long as it is broken."""

    broken = False

    def metadata(self, batch: int | None = None):
        if self.broken and threading.current_thread().name.startswith("owner latest_order"):
            raise RuntimeError("the logic fails")
        return super().metadata(batch)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> BrittleLog:
    return BrittleLog(spark, tmp_path)


@pytest.fixture
def versions(log: BrittleLog, tmp_path: Path) -> Iterator[Versions]:
    made = Versions(tmp_path, {"orders": log}, merge_small)
    made.start(version_of(SALES))
    made.start(version_of(LATEST))
    yield made
    made.stop()


def offered(versions: Versions, log: BrittleLog, orders: Orders, batches: int) -> None:
    for _ in range(batches):
        end = log.append(orders.batch(10))
        versions.offer("orders", log.metadata(), log.rows(end - 1, end))


def until(true: Callable[[], bool], seconds: float = 180) -> None:
    wait_for("what the test expects", lambda: True if true() else None, seconds, every_s=0.05)


def shown(versions: Versions, log: BrittleLog, version: Version) -> World:
    """The version's table as a world, to compare what it shows with the oracle."""
    world = World.__new__(World)
    owner = versions.owner(version)
    world.spark, world.table, world.log = log.spark, SALES if version.table == SALES.name else LATEST, log
    world.feed, world.at = owner.feed(), owner.standing
    return world


def test_a_version_that_fails_is_stalled_alone_and_catches_up_after_the_fix(
    versions: Versions, log: BrittleLog
) -> None:
    orders, (good, bad) = Orders(1), (version_of(SALES), version_of(LATEST))
    offered(versions, log, orders, 1)
    log.broken = True
    offered(versions, log, orders, 2)

    until(lambda: {h.table: h.stalled for h in versions.health()} == {SALES.name: False, LATEST.name: True})
    assert versions.advance_to(good, {"orders": 3}, RUN) == {"orders": 3}
    stalled = next(health for health in versions.health() if health.stalled)
    assert stalled.error and "the logic fails" in stalled.error["why"] and stalled.lag_records > 0
    log.broken = False
    assert versions.advance_to(bad, {"orders": 3}, RUN) == {"orders": 3}
    assert not any(health.stalled for health in versions.health())
    for world in (shown(versions, log, good), shown(versions, log, bad)):
        assert world.shows() == world.expected()


def test_a_version_stalls_even_where_its_error_cannot_be_explained(
    log: BrittleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many_open(error: BaseException, lake: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(twinlake.speed.owner, "damage_in", too_many_open)
    log.append(Orders(6).batch(5))
    log.broken = True
    owner = Owner(tmp_path, version_of(LATEST), log, lambda owner: None)
    owner.signal(1)

    until(lambda: owner.error is not None, 60)
    assert owner.error and owner.error.why == "the logic fails"
    owner.stop()


def test_a_version_that_cannot_be_opened_is_shown_where_it_stands_and_why_in_one_line(
    log: BrittleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, version = Orders(6), version_of(LATEST)
    version.save(tmp_path)
    for _ in range(2):
        log.append(orders.batch(5))
    owner = Owner(tmp_path, version, log, lambda owner: None)
    owner.signal(2)
    until(lambda: owner.standing.position == 2)
    owner.stop()
    reached = owner.standing
    whole = log.no_rows()
    monkeypatch.setattr(log, "no_rows", lambda: whole.drop("status"))

    again = Owner(tmp_path, version, log, lambda owner: None)
    try:
        until(lambda: again.error is not None)
        error = again.error
        assert error is not None

        assert replace(again.standing, segment=0) == replace(reached, segment=0)
        assert error.what == f"{version} does not advance from batch 2"
        assert error.why.startswith("[UNRESOLVED_COLUMN") and "\n" not in error.why
    finally:
        again.stop()


def test_a_segment_has_its_steps_and_its_time(
    log: BrittleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.speed.owner.STEPS_PER_SEGMENT", 2)
    closed: list[int] = []
    orders, version = Orders(5), version_of(LATEST)
    version.save(tmp_path)
    owner = Owner(tmp_path, version, log, lambda owner: closed.append(owner.standing.position))

    def steps(through: int) -> None:
        for batch in range(log.end() + 1, through + 1):
            log.append(orders.batch(5))
            owner.signal(batch)
            until(lambda batch=batch: owner.standing.position == batch)

    try:
        steps(3)
        assert (closed, owner.standing.segment) == ([], 0)
        monkeypatch.setattr("twinlake.speed.owner.SEGMENT_S", 0.0)
        steps(4)
        until(lambda: closed == [4])
        monkeypatch.setattr("twinlake.speed.owner.STEPS_PER_SEGMENT", 3)
        steps(6)
        assert closed == [4]
    finally:
        owner.stop()


def test_an_owner_that_failed_once_goes_the_whole_way_though_nobody_asks_again(
    log: BrittleLog, tmp_path: Path
) -> None:
    orders, version = Orders(4), version_of(LATEST)
    version.save(tmp_path)
    for _ in range(4):
        log.append(orders.batch(10))
    log.broken = True
    owner = Owner(tmp_path, version, log, lambda owner: None, long_records=10)
    owner.signal(4)
    until(lambda: owner.error is not None)

    log.broken = False

    until(lambda: owner.standing.position == 4)
    assert owner.error is None
    owner.stop()


def test_versions_are_pinned_together_at_exactly_one_position_while_batches_come(
    versions: Versions, log: BrittleLog
) -> None:
    orders = Orders(2)
    offered(versions, log, orders, 1)
    feeding = threading.Thread(target=offered, args=(versions, log, orders, 4))
    feeding.start()

    pins = versions.pin_together([version_of(SALES), version_of(LATEST)], RUN)
    feeding.join()

    assert pins[0].position == pins[1].position
    assert [versions.advance_to(version, {"orders": 5}, RUN)["orders"] for version in versions.living()] == [
        5,
        5,
    ]
    with pytest.raises(PassedError):
        versions.owner(version_of(SALES)).pin_at(1).result(30)


def test_a_new_version_starts_at_nothing_catches_up_and_a_restart_finds_all(
    versions: Versions, log: BrittleLog, tmp_path: Path
) -> None:
    offered(versions, log, Orders(3), 2)
    green = replace(version_of(SALES), build=2)
    versions.start(green)
    versions.advance_to(green, {"orders": 2}, RUN)
    versions.retire(version_of(LATEST), "2026-02-01T00:00:00Z")
    versions.stop()

    again = Versions(tmp_path, {"orders": log}, merge_small)
    again.load()

    assert again.living() == [version_of(SALES), green] and again.newest(SALES.name) == green
    for version in again.living():
        assert again.advance_to(version, {"orders": 2}, RUN) == {"orders": 2}
        assert again.pin(version).segment == 1
    with pytest.raises(NotFoundError):
        again.get(LATEST.name, version_of(LATEST).name)
    world = shown(again, log, green)
    assert world.shows() == world.expected()
    again.stop()


def test_the_batch_lane_is_held_by_one_and_the_other_ends_busy(versions: Versions) -> None:
    version = version_of(SALES)

    with versions.batch_lock(version):
        with pytest.raises(BusyError, match="is taken"):
            with versions.batch_lock(version, wait_s=0.2):
                pass
        with versions.batch_lock(version_of(LATEST)):
            pass
    with versions.batch_lock(version):
        pass


def test_a_second_server_is_refused_as_long_as_the_first_lives(tmp_path: Path) -> None:
    held = lock.take(tmp_path)

    with pytest.raises(BusyError, match="in use by another lake server"):
        lock.take(tmp_path)
    held.close()
    lock.take(tmp_path).close()


def test_a_version_whose_definition_cannot_be_read_is_stalled_and_stops_nobody(
    versions: Versions, log: BrittleLog, tmp_path: Path
) -> None:
    """A kind or measure that is gone must not keep the lake server from starting."""
    offered(versions, log, Orders(4), 1)
    versions.stop()
    odd = replace(version_of(SALES), build=9, definition={"kind": "gone"})
    odd.save(tmp_path)

    again = Versions(tmp_path, {"orders": log}, merge_small)
    again.load()

    health = {(one.table, one.version): one for one in again.health()}
    assert {name: one.stalled for (_, name), one in health.items()} == {
        version_of(SALES).name: False, version_of(LATEST).name: False, odd.name: True,
    }  # fmt: skip
    assert "unknown table kind 'gone'" in (health[odd.table, odd.name].error or {})["what"]
    with pytest.raises(UsageError, match="unknown table kind"):
        again.opened(odd)
    again.retire(odd, "2026-02-01T00:00:00Z")
    assert odd.name not in [version.name for version in again.living()]
    again.stop()


def test_a_wait_for_a_version_that_stands_still_says_where_and_ends(
    versions: Versions, log: BrittleLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever keeps it: a job asks it for a position, for itself, for its segment, or to stand still."""
    version, cancelled = version_of(SALES), Run(id="cancelled")
    cancelled.cancelled.set()
    orders = Orders(5)
    offered(versions, log, orders, 1)
    versions.advance_to(version, {"orders": 1}, RUN)

    with versions.hold([version], 300, RUN), monkeypatch.context() as impatient:
        impatient.setattr("twinlake.speed.wait_progress.STILL_S", 1.0)
        impatient.setattr("twinlake.speed.versions.ANSWER_WAIT_S", 1.0)
        offered(versions, log, orders, 1)
        with pytest.raises(TimedOutError, match=f"{version} has stood at batch 1 for 1 s"):
            versions.advance_to(version, {"orders": 2}, RUN)
        with pytest.raises(TimedOutError, match=f"{version}, which is busy after batch 1"):
            versions.pin(version, RUN)
        with pytest.raises(TimedOutError, match="busy after batch 1"):
            versions.close_segment(version, RUN)
        with pytest.raises(TimedOutError, match="busy after batch 1"), versions.hold([version], 1, RUN):
            pass
        for asked in (versions.pin, versions.close_segment):
            with pytest.raises(CancelledError):
                asked(version, cancelled)

    assert versions.advance_to(version, {"orders": 2}, RUN) == {"orders": 2}

"""One lake server per lake where machines share the store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from twinlake.base.errors import BusyError, FullDiskError
from twinlake.base.location import Location
from twinlake.base.waiting import wait_for
from twinlake.lake.storage import store
from twinlake.server import lease

BEAT_S, SILENT_S = 0.05, 1.0


def take(lake: Location) -> lease.Lease:
    return lease.take(lake, BEAT_S, SILENT_S)


def elsewhere(lake: Location, number: int) -> None:
    """A lease that a process of another machine has taken."""
    owner = {"machine": "another one", "host": "far", "pid": 1, "born": 1}
    assert store.put_if_absent(lake / "lease" / f"{number:08d}.json", json.dumps(owner))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lease").mkdir()
    return tmp_path


def test_a_second_server_is_refused_as_long_as_the_first_shows_that_it_lives(lake: Path) -> None:
    first = take(lake)

    with pytest.raises(BusyError, match=f"process {os.getpid()} on"):
        take(lake)
    first.close()
    take(lake).close()


def test_of_many_servers_at_once_one_has_the_lake(lake: Path) -> None:
    had, lock = list[lease.Lease](), threading.Lock()
    begin = threading.Barrier(6)

    def try_to() -> None:
        begin.wait()
        try:
            one = take(lake)
        except BusyError:
            return
        with lock:
            had.append(one)

    threads = [threading.Thread(target=try_to) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(had) == 1
    had[0].close()


def test_a_machine_that_is_silent_loses_the_lake_and_not_before(lake: Path) -> None:
    elsewhere(lake, 1)
    store.replace(lake / "lease" / "00000001.beat", "1")
    beats = iter(range(2, 1000))
    dead = threading.Event()

    def beat() -> None:
        while not dead.wait(BEAT_S):
            store.replace(lake / "lease" / "00000001.beat", str(next(beats)))

    alive = threading.Thread(target=beat)
    alive.start()
    with pytest.raises(BusyError, match="process 1 on far"):
        take(lake)
    dead.set()
    alive.join()

    take(lake).close()


def test_who_was_killed_on_this_machine_is_known_to_be_gone_at_once(lake: Path) -> None:
    code = f"from pathlib import Path; from twinlake.server import lease; lease.take(Path({str(lake)!r})); " \
        "import time; print('has it', flush=True); time.sleep(60)"  # fmt: skip
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "has it\n"
    holder.kill()
    holder.wait()

    lease.take(lake, BEAT_S, silent_s=3600).close()


def test_who_finds_the_lake_taken_ends_at_once(lake: Path) -> None:
    lost = threading.Event()
    held = lease.Lease(lake / "lease", 1, BEAT_S, lost.set)
    wait_for("a beat", lambda: store.exists(lake / "lease" / "00000001.beat"), 5)

    elsewhere(lake, 2)

    assert lost.wait(5)
    held.close()


def test_a_store_without_room_does_not_keep_a_server_from_seeing_that_it_has_lost_the_lake(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stopped looking for ever: two servers worked on one lake."""
    failed = threading.Event()

    def full(*_: object) -> None:
        failed.set()
        raise FullDiskError("the store has no room", "all data nodes are away", "make room")

    monkeypatch.setattr(store, "replace", full)
    lost = threading.Event()
    held = lease.Lease(lake / "lease", 1, BEAT_S, lost.set)
    assert failed.wait(5)

    elsewhere(lake, 2)

    assert lost.wait(5)
    held.close()


def test_a_file_of_somebody_else_is_no_lease(lake: Path) -> None:
    (lake / "lease" / "notes.json").write_text("{}")

    take(lake).close()


def test_leases_do_not_pile_up(lake: Path) -> None:
    for _ in range(5):
        take(lake).close()

    assert len(store.names(lake / "lease")) <= 6

"""What goes with an old backup, and what a kill of its removal leaves: whole backups, nothing for ever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.faults.disk import small_disk
from tests.project import PROJECT
from tests.small_lake.small import unpack
from twinlake.backup import archive as archives
from twinlake.backup.archive import KEPT_UNNAMED_S, Archive, Backup
from twinlake.backup.check import check
from twinlake.backup.take import take, take_and_keep
from twinlake.base.errors import FullDiskError, TimedOutError, TwinlakeError
from twinlake.base.job import CancelledError, Run
from twinlake.config.settings import Settings
from twinlake.lake.storage import store

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RUN = Run(id="test")
KILLED = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from twinlake.backup.take import take_and_keep
from twinlake.base.job import Run
from twinlake.config.settings import Settings
from twinlake.lake.storage import store

home, folder, keep, at, left = sys.argv[1:]
left = int(left)

def kill(event, given):
    # before this process changes anything in the archive once more than it may
    global left
    if event in ("os.rename", "os.remove", "os.mkdir") and str(given[0]).startswith(folder):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

sys.addaudithook(kill)
take_and_keep(Settings(home=Path(home)), Path(folder), int(keep), Run(id="test"),
              lambda: datetime.fromisoformat(at))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    unpack(0, home)
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def day(number: int) -> datetime:
    return NOW + timedelta(days=number)


def change(home: Path) -> None:
    """A version of a table loses its data files, and the settings are others."""
    table = min((home / "lake" / "tables" / "sales_per_region").glob("*/_delta_log")).parent
    DeltaTable(str(table)).delete()
    (home / "twinlake.toml").write_text("# second\n")


def make_old(folder: Path) -> None:
    """As if nothing of it could belong to a backup that is being taken."""
    long_ago = time.time() - KEPT_UNNAMED_S - 1
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (long_ago, long_ago))


def kept(folder: Path) -> set[str]:
    """The files beside the lists."""
    return {str(one) for part in ("data", "content") for one in (folder / part).rglob("*") if one.is_file()}


def needed(archive: Archive) -> set[str]:
    return {str(archive.place(file)) for backup in archive.all() for file in backup.files}


def two_taken(home: Path, folder: Path) -> tuple[Backup, Backup]:
    """Of different states; each has files that the other lacks, and most of them in common."""
    (home / "twinlake.toml").write_text("# first\n")
    first = take(Settings(home=home), folder, RUN, lambda: day(0))
    change(home)
    second = take(Settings(home=home), folder, RUN, lambda: day(1))
    return first, second


def test_a_backup_takes_along_the_oldest_and_what_no_other_needs(home: Path, folder: Path) -> None:
    first, second = two_taken(home, folder)
    archive = Archive(folder)
    of_both = {one.path for one in first.files if one.is_data} & {one.path for one in second.files}
    of_first = {one.path for one in first.files if one.is_data} - {one.path for one in second.files}
    assert of_both and of_first
    make_old(folder)

    third = take_and_keep(Settings(home=home), folder, 2, RUN, lambda: day(2))

    assert third.removed == (first.id,)
    assert archive.ids() == [third.backup.id, second.id]
    assert kept(folder) == needed(archive)
    assert not any((folder / "data" / path).exists() for path in of_first)
    assert all(check(archive, one, RUN).is_whole for one in archive.all())


def test_after_a_clock_that_was_ahead_the_last_one_taken_is_the_newest_and_stays(
    home: Path, folder: Path
) -> None:
    (home / "twinlake.toml").write_text("# first\n")
    ahead = [take(Settings(home=home), folder, RUN, lambda: day(400)) for _ in range(2)]
    (home / "twinlake.toml").write_text("# second\n")

    taken = [take_and_keep(Settings(home=home), folder, 2, RUN, partial(day, one)) for one in (1, 2)]

    archive, made = Archive(folder), [one.backup for one in taken]
    assert [one.removed for one in taken] == [(ahead[0].id,), (ahead[1].id,)]
    assert archive.ids() == [made[1].id, made[0].id] and archive.load() == made[1]
    assert made[1].made_at == "2026-02-02T12:00:00Z"
    assert take(Settings(home=home), folder, RUN, lambda: day(500)).id == f"{day(500):%Y%m%dT%H%M%SZ}"


@pytest.mark.faults
def test_a_kill_at_any_step_leaves_whole_backups_and_the_next_one_removes_the_rest(
    home: Path, folder: Path, tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    """Before each change that it makes in the archive, until there is none left."""
    first, second = two_taken(home, folder)
    make_old(folder)
    pristine, kills, lists = tmp_path / "pristine", 0, set()
    folder.rename(pristine)
    while True:
        shutil.copytree(pristine, folder)  # with the times of the files
        command = [sys.executable, "-c", KILLED, str(home), str(folder), "1", day(2).isoformat(), str(kills)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
        archive = Archive(folder)
        lists.add(len(archive.ids()))
        assert archive.ids() and all(check(archive, one, RUN).is_whole for one in archive.all()), kills
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        kills += 1
        make_old(folder)
        after = take_and_keep(Settings(home=home), folder, 1, RUN, lambda: day(3))
        assert archive.ids() == [after.backup.id] and check(archive, after.backup, RUN).is_whole, kills
        assert kept(folder) == needed(archive), kills
        shutil.rmtree(folder)
    assert lists == {1, 2, 3} and kills >= 4, (lists, kills)
    assert {first.id, second.id}.isdisjoint(archive.ids())
    figure("kills while backups were removed", str(kills))


@pytest.mark.faults
def test_a_full_disk_is_named_the_backups_there_stay_whole_and_the_next_one_goes_on(
    home: Path, folder: Path
) -> None:
    """As the lake server does a job: it looks for errors that say that its own disks are full."""
    settings = Settings(home=home)
    with small_disk(folder) as disk:
        first = take(settings, folder, RUN, lambda: day(0))
        (home / "twinlake.toml").write_text("# other settings\n")
        disk.fill()
        with pytest.raises(FullDiskError) as full, store.telling_of_no_room(settings.lake):
            take_and_keep(settings, folder, 1, RUN, lambda: day(1))
        assert full.value.what.startswith(f"the disk of {folder}")
        archive = Archive(folder)
        assert archive.ids() == [first.id] and check(archive, first, RUN).is_whole
        disk.give_room()
        second = take_and_keep(settings, folder, 1, RUN, lambda: day(2))

        assert second.removed == (first.id,) and check(archive, second.backup, RUN).is_whole


def test_while_one_is_taken_another_waits_for_its_end_and_can_be_cancelled(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own holds the folder: what one has found there the other must not remove."""
    take(Settings(home=home), folder, RUN, lambda: day(0))
    monkeypatch.setattr(archives, "TURN_S", 0.3)
    code = f"import fcntl, sys; one = open('{folder}/.lock', 'a'); fcntl.flock(one, fcntl.LOCK_EX)"
    held = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print(1, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert held.stdout and held.stdout.readline() == b"1\n"
        with pytest.raises(TimedOutError, match="waiting for another backup to end"):
            take(Settings(home=home), folder, RUN, lambda: day(1))
        cancelled = threading.Event()
        cancelled.set()
        with pytest.raises(CancelledError):
            take(Settings(home=home), folder, Run(id="test", cancelled=cancelled), lambda: day(1))
    finally:
        held.kill()
        held.communicate()
    assert take(Settings(home=home), folder, RUN, lambda: day(1)).copied == 0


def test_two_at_once_in_one_process_are_one_after_the_other(home: Path, folder: Path) -> None:
    made = list[str]()

    def run() -> None:
        made.append(take_and_keep(Settings(home=home), folder, 1, RUN, lambda: day(0)).backup.id)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    archive = Archive(folder)
    assert len(made) == 3
    assert len(archive.ids()) == 1 and check(archive, archive.load(), RUN).is_whole


def test_where_an_old_one_cannot_be_removed_it_says_that_the_new_one_is_whole(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(Settings(home=home), folder, RUN, lambda: day(0))

    def refuse(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(store, "delete", refuse)
    with pytest.raises(TwinlakeError, match="is whole, and the older ones could not be removed"):
        take_and_keep(Settings(home=home), folder, 1, RUN, lambda: day(1))
    assert len(Archive(folder).ids()) == 2 and check(Archive(folder), Archive(folder).load(), RUN).is_whole

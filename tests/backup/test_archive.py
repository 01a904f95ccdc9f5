"""Backups of a small lake, without Spark: what is kept once, what is refused, what a damaged one says."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from tests.small_lake.small import unpack
from twinlake.backup import restore as restoring
from twinlake.backup import snapshot as snapshots
from twinlake.backup import take as taking
from twinlake.backup.archive import KEPT_UNNAMED_S, Archive, Backup
from twinlake.backup.check import check
from twinlake.backup.restore import restore
from twinlake.backup.take import take, take_and_keep
from twinlake.base.errors import DamagedError, FormatError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import CancelledError, Run
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.paused import Paused, Pauses
from twinlake.lake.delta.table_state import TableState

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RUN = Run(id="test")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with a lake that nobody writes to, settings, users, and what no backup needs."""
    home = tmp_path / "home"
    unpack(0, home)
    (home / "access").mkdir()
    (home / "access" / "users").write_text("anna:1:ab:cd:admin\n")
    (home / "twinlake.toml").write_text("[limits]\nquery_seconds = 60\n")
    (home / "services.json").write_text('{"api_token": "a-secret"}')
    (home / "lake" / "checkpoints").mkdir()
    (home / "lake" / "checkpoints" / "one").write_text("Spark's")
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def taken(home: Path, folder: Path, at: datetime = NOW) -> Backup:
    return take(Settings(home=home), folder, RUN, lambda: at)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_lake_at_rest_comes_back_with_settings_and_users_and_no_secret(home: Path, folder: Path) -> None:
    made, again = taken(home, folder), home.with_name("again")

    restore(Archive(folder), made, again, again / "lake", RUN)

    before, after = content(home), content(again)
    assert (after["access/users"], after["twinlake.toml"]) == (
        before["access/users"],
        before["twinlake.toml"],
    )
    assert "services.json" not in after and not any("checkpoints" in path for path in after)
    for path in {path.rpartition("/_delta_log/")[0] for path in before if "/_delta_log/" in path}:
        one, other = (TableState(place / path, appends=False) for place in (home, again))
        assert (one.version, one.files, one.transactions) == (other.version, other.files, other.transactions)
        assert all(
            (again / path / unquote(file)).stat().st_size == one.files[file].bytes for file in one.files
        )
    assert not any(b"a-secret" in one for one in content(folder).values())
    assert made.logs and {"orders", "sales_per_region"} <= {*release_log.live(again / "lake").tables}


def test_what_an_earlier_one_has_is_not_copied_again(home: Path, folder: Path) -> None:
    first, second = taken(home, folder), taken(home, folder, NOW + timedelta(days=1))

    assert first.copied == first.bytes
    assert second.copied == 0
    assert Archive(folder).ids() == [second.id, first.id]
    kept = {str(folder / path) for path in content(folder)}
    about = {
        f"{folder}/archive.json",
        f"{folder}/.lock",
        *(f"{folder}/backups/{one.id}.json" for one in (first, second)),
    }
    assert kept - about == {str(Archive(folder).place(one)) for one in first.files}


def test_two_of_one_second_are_two(home: Path, folder: Path) -> None:
    assert [taken(home, folder).id for _ in range(3)] == [
        "20260131T120000Z", "20260131T120000Z-1", "20260131T120000Z-2",
    ]  # fmt: skip
    assert Archive(folder).load().id == "20260131T120000Z-2"


def test_those_that_go_take_along_what_no_other_needs(home: Path, folder: Path) -> None:
    old = taken(home, folder)
    (home / "twinlake.toml").write_text("")
    taken(home, folder, NOW + timedelta(days=1))
    archive = Archive(folder)
    place = next(archive.place(one) for one in old.files if one.path == "twinlake.toml")
    assert isinstance(place, Path)

    assert archive.keep(1) == [old.id]
    assert place.exists(), "it may belong to one that is being taken"
    long_ago = time.time() - KEPT_UNNAMED_S - 1
    os.utime(place, (long_ago, long_ago))
    assert archive.keep(1) == [] and not place.exists()
    assert check(archive, archive.load(), RUN).is_whole


@pytest.mark.parametrize("is_data", [True, False])
@pytest.mark.parametrize("wrong", ["changed", "cut", "gone"])
def test_a_damaged_file_is_named_and_not_restored(
    home: Path, folder: Path, is_data: bool, wrong: str
) -> None:
    made, archive, again = taken(home, folder), Archive(folder), home.with_name("again")
    place = next(archive.place(one) for one in made.files if one.is_data is is_data and one.bytes)
    assert isinstance(place, Path)
    whole = place.read_bytes()
    if wrong == "gone":
        place.unlink()
    else:
        place.write_bytes(whole[:-1] + (bytes([whole[-1] ^ 1]) if wrong == "changed" else b""))

    found = check(archive, made, RUN)

    assert not found.is_whole and str(place) in found.wrong[0]
    with pytest.raises(DamagedError, match="is not what was written there"):
        restore(archive, made, again, again / "lake", RUN)
    assert not (again / "lake").exists()
    with pytest.raises(UsageError, match="not empty"):
        restore(archive, made, again, again / "lake", RUN)


def test_one_that_is_interrupted_is_none_and_the_next_one_is_whole(home: Path, folder: Path) -> None:
    stop = threading.Event()
    run = Run(id="test", report=lambda one: stop.set() if one.done > one.total / 2 else None, cancelled=stop)

    with pytest.raises(CancelledError):
        take(Settings(home=home), folder, run, lambda: NOW)

    assert Archive(folder).ids() == []
    with pytest.raises(NotFoundError, match="holds no whole backup"):
        Archive(folder).load()
    for half in folder.rglob("*.parquet"):
        half.write_bytes(b"half")
    assert check(Archive(folder), taken(home, folder), RUN).is_whole


def test_what_one_that_was_interrupted_has_copied_is_not_copied_again(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, seen = taking.copied, list[str]()

    def copied(source: Path, target: Path, moved: Callable[[int], None]) -> tuple[int, str]:
        if len(seen) == 20:
            raise FileNotFoundError(str(source))
        seen.append(str(target))
        return copy(source, target, moved)

    monkeypatch.setattr(taking, "copied", copied)
    with pytest.raises(TwinlakeError, match="not copied again"):
        taken(home, folder)
    before = {*seen}
    Path(seen[0]).unlink()
    with (folder / "copied.jsonl").open("a") as notes:
        notes.write('{"path": "lake/torn')
    seen.clear()
    monkeypatch.setattr(taking, "copied", lambda *given: (seen.append(str(given[1])), copy(*given))[1])

    made = taken(home, folder)

    assert before & {*seen} == {min(before & {*seen})} and check(Archive(folder), made, RUN).is_whole
    assert not (folder / "copied.jsonl").exists()
    seen.clear()
    taken(home, folder, NOW + timedelta(minutes=1))
    assert seen == []


def test_everything_of_a_lake_is_backed_up_or_known_to_be_left_out(home: Path, folder: Path) -> None:
    lake = home / "lake"
    Pauses(lake).put(
        Paused(kind="topic", name="orders", since="2026-01-31T12:00:00Z", by="anna", reason="rubbish")
    )
    made = taken(home, folder)
    again = home.with_name("again")

    restore(Archive(folder), made, again, again / "lake", RUN)

    (found,) = Pauses(again / "lake").all()
    assert (found.name, found.reason) == ("orders", "rubbish")
    left = {one.name for one in lake.iterdir()} - {one.name for one in (again / "lake").iterdir()}
    assert left <= {
        "checkpoints", "ids", "lake.lock", "report.json", "described.json", "staging", "published",
    }  # fmt: skip


def test_two_lakes_that_begin_in_one_folder_do_not_share_it(
    home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one looks at the empty folder; the other takes a backup; the one goes on."""
    other = tmp_path / "other"
    unpack(0, other)
    known = formats.known(other / "lake")
    assert known is not None
    replace(known, id="another").save(other / "lake")
    look, looked = Archive.is_begun, list[str]()

    def is_begun(self: Archive, lake_id: str) -> bool:
        found = look(self, lake_id)
        if lake_id == "another" and not looked:
            looked.append(lake_id)
            taken(home, folder)
        return found

    monkeypatch.setattr(Archive, "is_begun", is_begun)

    with pytest.raises(UsageError, match="has the backups of another lake"):
        take_and_keep(Settings(home=other), folder, 1, RUN, lambda: NOW + timedelta(minutes=1))
    assert len(Archive(folder).ids()) == 1 and taken(home, folder, NOW + timedelta(hours=1))


def test_a_lake_that_takes_the_place_of_another_is_not_mixed_with_it(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, versions = home / "lake", snapshots._versions
    shutil.copytree(lake, home / "lake.before")

    def swapped(of: Path) -> Iterator[tuple[str, str]]:
        lake.rename(home / "lake.after")
        (home / "lake.before").rename(lake)
        return versions(of)

    with monkeypatch.context() as swapping, pytest.raises(TwinlakeError, match="taken the place of"):
        swapping.setattr(snapshots, "_versions", swapped)
        taken(home, folder)
    assert Archive(folder).ids() == [] and taken(home, folder)


def test_a_lake_of_a_newer_format_is_not_taken(home: Path, folder: Path) -> None:
    known = formats.known(home / "lake")
    assert known is not None
    replace(known, format=99, needs="9.9.9").save(home / "lake")

    with pytest.raises(FormatError):
        taken(home, folder)


def test_one_that_is_removed_while_it_is_read_is_not_called_damaged(home: Path, folder: Path) -> None:
    old = taken(home, folder)
    (home / "access" / "users").write_text("anna:1:ab:cd:analyst\n")
    for file in folder.rglob("*"):
        os.utime(file, (time.time() - KEPT_UNNAMED_S - 1,) * 2)
    take_and_keep(Settings(home=home), folder, 1, RUN, lambda: NOW + timedelta(days=1))
    again = home.with_name("again")

    with pytest.raises(NotFoundError, match="was removed while it was read"):
        check(Archive(folder), old, RUN)
    with pytest.raises(NotFoundError, match="was removed while it was read"):
        restore(Archive(folder), old, again, again / "lake", RUN)


def test_nothing_starts_on_half_a_lake_nor_is_one_restored_into_a_mount_point(
    home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, again, copy = taken(home, folder), tmp_path / "again", restoring.copied
    count = iter(range(20))

    def copied(*given: Any) -> tuple[int, str]:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return copy(*given)

    with monkeypatch.context() as killing, pytest.raises(KeyboardInterrupt):
        killing.setattr(restoring, "copied", copied)
        restore(Archive(folder), made, again, again / "lake", RUN)

    assert (again / "twinlake.toml").exists(), "it says where the lake would be"
    monkeypatch.setenv("TWINLAKE_HOME", str(again))
    done = CliRunner().invoke(build_app(), ["up"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "a restore into this data directory was interrupted"
    assert not (again / "lake").exists()

    monkeypatch.setattr(Path, "is_mount", lambda self: self.name == "lake")
    with pytest.raises(UsageError, match="is a mount point"):
        restore(Archive(folder), made, tmp_path / "third", tmp_path / "third" / "lake", RUN)
    assert not (tmp_path / "third").exists()


def test_it_is_refused_where_it_would_be_lost_with_the_lake_or_mixed_with_something(
    home: Path, folder: Path
) -> None:
    for place in (home / "backups", home / "lake" / "x", home.parent):
        with pytest.raises(UsageError, match="backups cannot be in"):
            taken(home, place)
    folder.mkdir()
    (folder / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="is no folder of backups"):
        taken(home, folder)
    other = folder.with_name("other")
    taken(home, other)
    about = json.loads((home / "lake" / "lake.json").read_text())
    (home / "lake" / "lake.json").write_text(json.dumps({**about, "id": "another"}))
    with pytest.raises(UsageError, match="has the backups of another lake"):
        taken(home, other)
    with pytest.raises(NotFoundError, match="there is no lake"):
        taken(home.with_name("nothing"), folder)


@pytest.mark.parametrize("what", ["a file", "a link to nothing", "below a file"])
def test_what_is_no_folder_is_said_to_be_none(home: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / "place"
    if what == "a link to nothing":
        place.symlink_to(tmp_path / "nothing")
    else:
        place.write_text("mine")
    folder = place / "below" if what == "below a file" else place

    with pytest.raises(UsageError, match="is no folder of backups") as error:
        taken(home, folder)
    assert error.value.remedy == "name another folder"


def test_a_link_into_the_lake_is_no_folder_elsewhere(home: Path, folder: Path) -> None:
    folder.symlink_to(home / "lake")

    with pytest.raises(UsageError, match="backups cannot be in"):
        taken(home, folder)


def test_in_a_folder_that_everybody_may_enter_its_owner_alone_finds_what_is_in_it(
    home: Path, folder: Path
) -> None:
    folder.mkdir(mode=0o755)

    taken(home, folder)

    modes = {part: (folder / part).stat().st_mode for part in ("backups", "data", "content")}
    assert {stat.S_IMODE(mode) for mode in modes.values()} == {0o700}, modes


def test_a_folder_that_a_kill_left_half_begun_is_begun_again(home: Path, folder: Path) -> None:
    for part in ("backups", "data"):
        (folder / part).mkdir(parents=True)

    assert check(Archive(folder), taken(home, folder), RUN).is_whole
    (folder / "archive.json").unlink()
    with pytest.raises(UsageError, match="is no folder of backups"):
        taken(home, folder)


def test_a_folder_that_everybody_may_enter_is_its_owner_s_alone_once_a_backup_is_restored_into_it(
    home: Path, folder: Path
) -> None:
    made, again = taken(home, folder), home.with_name("again")
    again.mkdir()
    again.chmod(0o755)

    restore(Archive(folder), made, again, again / "lake", RUN)

    assert stat.S_IMODE(again.stat().st_mode) == 0o700


def test_nothing_is_restored_over_anything_nor_outside(home: Path, folder: Path) -> None:
    made, archive, again = taken(home, folder), Archive(folder), home.with_name("again")
    with pytest.raises(UsageError, match="is not empty"):
        restore(archive, made, home, home / "lake", RUN)
    elsewhere = home.with_name("disk") / "lake"
    elsewhere.mkdir(parents=True)
    (elsewhere / "file").write_text("")
    with pytest.raises(UsageError, match="there is a lake at"):
        restore(archive, made, again, elsewhere, RUN)
    file = folder / "backups" / f"{made.id}.json"
    file.write_text(file.read_text().replace('"path": "lake/lake.json"', '"path": "lake/../../gone.json"'))
    with pytest.raises(UsageError, match="is no path in a data directory"):
        restore(archive, archive.load(), again, again / "lake", RUN)
    assert not (home.parent / "gone.json").exists() and not (again / "lake").exists()


def test_one_of_a_newer_twinlake_is_refused_before_anything_is_written(home: Path, folder: Path) -> None:
    made, again = taken(home, folder), home.with_name("again")
    file = folder / "backups" / f"{made.id}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "lake_format": 999}))

    with pytest.raises(FormatError, match="has format 999"):
        restore(Archive(folder), Archive(folder).load(), again, again / "lake", RUN)

    assert not again.exists()


def test_a_file_that_goes_or_is_damaged_ends_one_and_the_next_is_whole_once_it_is_back(
    home: Path, folder: Path
) -> None:
    """As both errors say; nothing is copied twice."""
    last = max((home / "lake" / "logs").rglob("*.parquet"), key=lambda one: one.stat().st_size)
    whole = last.read_bytes()
    last.write_bytes(whole[:-1])
    with pytest.raises(TwinlakeError, match=rf"{last} has {len(whole) - 1:,} bytes") as damaged:
        taken(home, folder)
    last.unlink()
    with pytest.raises(TwinlakeError, match="went while it was to be copied") as gone:
        taken(home, folder)
    assert Archive(folder).ids() == []
    last.write_bytes(whole)

    made = taken(home, folder)

    assert "docs/damage.md" in damaged.value.remedy and gone.value.remedy.startswith("run it again")
    assert check(Archive(folder), made, RUN).is_whole


def test_where_the_newest_is_damaged_the_one_before_it_is_restored_into_another_folder(
    home: Path, folder: Path
) -> None:
    old = taken(home, folder)
    (home / "twinlake.toml").write_text("")
    new, archive = taken(home, folder, NOW + timedelta(days=1)), Archive(folder)
    place = next(archive.place(one) for one in new.files if one.path == "twinlake.toml")
    assert isinstance(place, Path)
    place.write_text("[limits]")
    into = [home.with_name(name) for name in ("first", "second", "third")]
    with pytest.raises(DamagedError) as refused:
        restore(archive, archive.load(), into[0], into[0] / "lake", RUN)
    assert str(place) in check(archive, new, RUN).wrong[0]

    restore(archive, archive.load(old.id), into[1], into[1] / "lake", RUN)

    assert "restore an earlier backup (--id) into another folder" in refused.value.remedy
    assert content(into[1])["twinlake.toml"] == b"[limits]\nquery_seconds = 60\n"
    with pytest.raises(UsageError, match="is not empty") as used:
        restore(archive, archive.load(old.id), into[1], into[1] / "lake", RUN)
    assert "name an empty folder" in used.value.remedy
    restore(archive, archive.load(old.id), into[2], into[2] / "lake", RUN)
    assert content(into[2]) == content(into[1])


def test_what_a_folder_is_refused_for_is_over_with_the_folder_that_its_error_asks_for(
    home: Path, folder: Path
) -> None:
    folder.mkdir()
    (folder / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="is no folder of backups") as used:
        taken(home, folder)
    with pytest.raises(UsageError, match="backups cannot be in") as within:
        taken(home, home / "backups")
    with pytest.raises(NotFoundError, match="there are no backups in") as none:
        Archive(folder).all()
    empty = folder.with_name("empty")
    made = taken(home, empty)
    about = empty / "archive.json"
    ours = about.read_text()
    about.write_text(json.dumps({**json.loads(ours), "format": 999}))
    with pytest.raises(UsageError, match="was made by a newer Twinlake") as newer:
        Archive(empty).load()
    about.write_text(json.dumps({**json.loads(ours), "lake_id": "another"}))
    with pytest.raises(UsageError, match="has the backups of another lake") as others:
        taken(home, empty)
    about.write_text(ours)

    assert (used.value.remedy, within.value.remedy) == (
        "name an empty folder",
        "name a folder on another disk",
    )
    assert none.value.remedy == "name the folder that `twinlake backup` was given"
    assert (newer.value.remedy, others.value.remedy) == ("install that one", "name another folder")
    assert [one.id for one in Archive(empty).all()] == [made.id]
    assert taken(home, folder.with_name("another")).id == made.id

"""What an upgrade keeps, byte for byte, how it is put back, and how it is let go."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services.upgraded import DATA, LAKE, World, content, kill_at, world_in, write
from tests.world import Killed
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, TwinlakeError, UsageError
from twinlake.services.upgrade import kept, starter, state
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.starter import Starter


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_in(tmp_path)


def test_only_what_is_never_changed_in_place_is_a_link(world: World) -> None:
    kept.keep(world.lakes, world.folders)

    linked = {path for path in LAKE if (world.lakes.before / path).stat().st_nlink > 1}
    assert linked == {DATA}
    for path in LAKE.keys() - linked:  # a later change in place is none of what is kept
        with (world.lakes.lake / path).open("r+") as file:
            file.write("changed")
    assert content(world.lakes.before) == {path: text.encode() for path, text in LAKE.items()}
    assert stat.S_IMODE(world.lakes.before.stat().st_mode) == 0o700
    assert stat.S_IMODE(world.folders.upgrade.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("path", "is_it"),
    [
        ("tables/t/v/part-0.parquet", True),
        ("logs/orders/day=1/part-0.parquet", True),
        ("tables/t/v/_delta_log/00.checkpoint.parquet", False),
        ("tables/t/v/_delta_log/_sidecars/00.parquet", False),
        ("tables/t/v/.part-0.parquet.crc", False),
        ("tables/t/v/_temporary.parquet", False),
        ("lake.json", False),
        ("tables/t/v.json", False),
    ],
)
def test_what_is_never_changed_is_a_data_file_of_a_table(path: str, is_it: bool) -> None:
    assert kept.is_never_changed(path) is is_it


@pytest.mark.parametrize("copies", range(1, 14))
def test_killed_between_any_two_copies_of_the_way_back_it_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    lake, home = world.lake, world.home
    world.upgrade.forward()
    of_new = world.home
    with monkeypatch.context() as killing:
        left, copy = [copies], kept._copy

        def counted(file: Path, to: Path) -> None:
            left[0] -= 1
            if not left[0]:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text("half")  # of a file
                raise Killed
            copy(file, to)

        killing.setattr(kept, "_copy", counted)
        with pytest.raises(Killed):
            world.upgrade.back()

    world.upgrade.back()

    assert (world.lake, world.home) == (lake, home)
    kept_after = content(world.folders.upgrade / "after")
    assert {path: of_new[path] for path in kept_after} == kept_after


def test_a_disk_without_room_for_the_copies_is_refused_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(world.folders.home)._replace(free=kept.ROOM_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: free)

    with pytest.raises(TwinlakeError, match="too little room to keep"):
        world.upgrade.forward()

    assert world.machine.does == [] and kept.kept_lakes(world.lakes) == []


@pytest.mark.parametrize("point", [Point.UPGRADE_GOING, None])
def test_what_is_let_go_half_is_nothing_to_go_back_to(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point | None
) -> None:
    world.upgrade.forward()
    freed = kept.freed_bytes(kept.kept_lakes(world.lakes))
    assert 0 < freed < sum(one.stat().st_blocks * 512 for one in world.lakes.before.rglob("*")) + 1e5
    if point:
        kill_at(monkeypatch, point)
        with pytest.raises(Killed):
            world.upgrade.let_go()
        with pytest.raises(UsageError, match="no going back any more"):
            world.upgrade.back()
        with pytest.raises(UsageError, match="has not been ended"):
            world.upgrade.forward()
    lake = world.lake

    world.upgrade.let_go()

    assert kept.kept_lakes(world.lakes) == [] and world.step is None and world.lake == lake


def test_what_cannot_be_deleted_is_said_and_deleted_when_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upgrade.forward()

    def refuse(place: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(place / "a"))

    with monkeypatch.context() as refusing, pytest.raises(TwinlakeError) as said:
        refusing.setattr(shutil, "rmtree", refuse)
        world.upgrade.let_go()

    assert "Operation not permitted" in said.value.why and "--done` again" in said.value.remedy
    assert kept.kept_lakes(world.lakes) == [world.lakes.going]
    world.upgrade.let_go()
    assert kept.kept_lakes(world.lakes) == [] and world.step is None


def test_a_link_to_the_lake_frees_nothing(world: World) -> None:
    kept.keep(world.lakes, world.folders)
    with_link = kept.freed_bytes([world.lakes.before])
    (world.lakes.lake / DATA).unlink()

    assert kept.freed_bytes([world.lakes.before]) == with_link + 4096


def test_only_one_runs_at_a_time(world: World) -> None:
    with state.alone(world.folders), pytest.raises(BusyError, match="another `twinlake upgrade`"):
        with state.alone(world.folders):
            pass


def test_a_state_that_cannot_be_read_stops_everything_and_says_where_the_lake_is(world: World) -> None:
    write(world.folders.upgrade, {"state.json": '{"step": "fly"}'})
    calls: list[Callable[[], object]] = [
        world.upgrade.forward, world.upgrade.back, lambda: state.refuse_start(world.folders),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="cannot be read") as refused:
            call()
        assert "lake.before" in refused.value.remedy


def test_a_lake_behind_a_link_is_kept_beside_what_the_link_leads_to(world: World, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    world.lakes.lake.rename(tmp_path / "elsewhere" / "real")
    (tmp_path / "lake").symlink_to(tmp_path / "elsewhere" / "real")
    world.lakes = world.machine.lakes = Lakes.of(tmp_path / "lake")
    before = world.lake

    world.upgrade.forward()
    world.upgrade.back()

    assert world.lake == before and (tmp_path / "lake").is_symlink()
    assert (tmp_path / "elsewhere" / "real.after").is_dir()


def test_who_started_the_services_is_written_down_and_asked_whether_it_still_is_that_version(
    world: World,
) -> None:
    assert starter.load(world.folders) == starter.this()
    assert starter.this().is_there()
    assert not replace(starter.this(), version="9.9.9").is_there()
    assert not replace(starter.this(), python="/nowhere/python").is_there()
    (world.folders.run / "started.json").write_text("[")
    assert starter.load(world.folders) == Starter() and not Starter().is_there()


def test_a_folder_of_the_lake_that_is_a_link_is_refused_first_for_nothing_of_it_would_be_kept(
    world: World, tmp_path: Path
) -> None:
    tables, elsewhere = world.lakes.lake / "tables", tmp_path / "larger" / "tables"
    elsewhere.parent.mkdir()
    tables.rename(elsewhere)
    tables.symlink_to(elsewhere)

    with pytest.raises(UsageError, match="is a link") as refused:
        world.upgrade.forward()

    assert str(elsewhere) in refused.value.why and "backup" in refused.value.remedy
    assert world.machine.does == [] and kept.kept_lakes(world.lakes) == []


def test_where_the_lake_of_before_was_deleted_there_is_no_way_back_and_nothing_is_touched(
    world: World,
) -> None:
    world.upgrade.forward()
    shutil.rmtree(world.lakes.before)
    lake, home, does = world.lake, world.home, [*world.machine.does]

    with pytest.raises(UsageError, match=r"lake\.before is gone"):
        world.upgrade.back()

    assert (world.lake, world.home, world.machine.does) == (lake, home, does)
    world.upgrade.let_go()
    assert world.step is None and world.lake == lake


def test_what_a_killed_end_of_an_earlier_upgrade_has_left_hides_nothing_of_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upgrade.forward()
    world.upgrade.back()
    remove = shutil.rmtree

    def killed(place: Path, **how: Any) -> None:
        if place == world.folders.upgrade:
            raise Killed
        remove(place, **how)

    with monkeypatch.context() as killing:
        killing.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            world.upgrade.let_go()
    assert world.step is None and (world.folders.upgrade / "after").is_dir()
    write(world.folders.home, {"access/users": "anna and carl"})
    lake, home = world.lake, world.home
    world.upgrade.forward()
    write(world.folders.home, {"access/users": "anna, carl and dora", "gallery.json": "[1]"})

    world.upgrade.back()

    assert (world.lake, world.home) == (lake, home)
    kept_after = content(world.folders.upgrade / "after")
    assert kept_after["access/users"] == b"anna, carl and dora" and kept_after["gallery.json"] == b"[1]"

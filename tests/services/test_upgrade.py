"""An upgrade by its files: what is kept, what is put back, and that a kill at any step loses nothing.

What runs is a stand-in that does to a data directory what services of another version do: it writes small
files again in place, adds and deletes data files, and keeps a database.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.world import Killed
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, DifferenceError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.version import VERSION
from twinlake.services.folders import Folders
from twinlake.services.upgrade import kept, starter, state
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.starter import Starter
from twinlake.services.upgrade.state import State, Step
from twinlake.services.upgrade.steps import Upgrade

TABLE = "tables/sales/a-1"
DATA, COMMIT, CHECKPOINT = (
    f"{TABLE}/region=eu/part-1.parquet", f"{TABLE}/_delta_log/0.json",
    f"{TABLE}/_delta_log/0.checkpoint.parquet",
)  # fmt: skip
LAKE = {
    "lake.json": '{"id": "x", "format": 0}', DATA: "rows", COMMIT: "commit", CHECKPOINT: "checkpoint",
    f"{TABLE}/.part-1.parquet.crc": "sum", f"{TABLE}.json": "definition", "lake.lock": "12",
}  # fmt: skip
HOME = {
    "services.json": '{"api_token": "first"}', "twinlake.toml": "", "access/users": "anna",
    "airflow/airflow.db": "runs", "run/started.json": "", "run/alarms.json": "[]", "run/history/now": "1",
}  # fmt: skip
APART = {"kafka/data/orders-0/0.log": "records", "registry/db": "schemas", "airflow/logs/a/1.log": "log",
         "logs/lake.log": "log", "run/parts/lake.json": "{}"}  # fmt: skip
"""What stays as it is, whichever way it goes."""
FORWARD = [
    Point.UPGRADE_BEGUN, Point.UPGRADE_STOPPED, Point.UPGRADE_KEEPING, Point.UPGRADE_KEPT,
    Point.UPGRADE_STARTING, Point.UPGRADE_STARTED, Point.UPGRADE_CHECKED,
]  # fmt: skip
NEVER_RAN = FORWARD[:4]
"""Killed there, the new version has not run."""
BACKWARD = [
    Point.UPGRADE_RETURNING, Point.UPGRADE_MOVED, Point.UPGRADE_RETURNED, Point.UPGRADE_RESTARTING,
]  # fmt: skip


@dataclass
class Machine:
    """The services of one data directory; `does` is what was asked of them."""

    folders: Folders
    lakes: Lakes
    runs: list[str] = field(default_factory=lambda: ["broker", "lake"])
    does: list[str] = field(default_factory=list)
    fails: TwinlakeError | None = None
    differs: TwinlakeError | None = None
    in_the_way: TwinlakeError | None = None

    def look(self, services: Sequence[str]) -> None:
        if self.in_the_way:
            raise self.in_the_way

    def running(self) -> list[str]:
        return self.runs

    def problems(self) -> list[list[str]] | None:
        return []

    def standing(self) -> dict[str, Any]:
        return {"release": {"number": 2, "tables": {}}}

    def down(self) -> None:
        self.runs = []
        self.does.append("down")

    def up(self, services: Sequence[str]) -> None:
        self.does.append("up")
        assert (self.lakes.lake / "lake.json").exists()
        self._write()
        if self.fails:
            raise self.fails
        self.runs = [*services]

    def wrong(self, before: State) -> TwinlakeError | None:
        assert before.standing == self.standing()
        return self.differs

    def up_as_before(self, by: Starter, services: Sequence[str]) -> bool:
        self.does.append(f"up by {by.version}")
        self.runs = [*services]
        return True

    def note(self, what: Mapping[str, str]) -> None:
        self.does.append(f"note {what['change']}")

    def _write(self) -> None:
        lake = self.lakes.lake
        (lake / "lake.json").write_text('{"id": "x", "format": 6}')  # in place, as Spark may do
        (lake / COMMIT).write_text("commit of the new version")
        (lake / CHECKPOINT).write_bytes(b"")
        (lake / TABLE / "_delta_log" / "1.json").write_text("one more")
        (lake / TABLE / "part-2.parquet").write_text("more rows")
        (lake / DATA).unlink(missing_ok=True)  # merged
        home = self.folders.home
        (home / "airflow" / "airflow.db").write_text("other tables")
        (home / "airflow" / "airflow.db-wal").write_text("of the new version")
        (home / "services.json").write_text('{"api_token": "second"}')
        (home / "gallery.json").write_text("[]")


@dataclass
class World:
    machine: Machine
    folders: Folders
    lakes: Lakes
    said: list[str]

    @property
    def upgrade(self) -> Upgrade:
        return Upgrade(
            platform=self.machine, folders=self.folders, lakes=self.lakes, now=lambda: "2026-01-31T12:00:00Z",
            say=self.said.append,
        )  # fmt: skip

    @property
    def lake(self) -> dict[str, bytes]:
        return content(self.lakes.lake)

    @property
    def home(self) -> dict[str, bytes]:
        """Without the lakes, locks, and what the upgrade itself keeps."""
        found = content(self.folders.home)
        own = ("lake", "upgrade/", "run/upgrade.lock")
        return {path: held for path, held in found.items() if not path.startswith(own)}

    @property
    def step(self) -> Step | None:
        found = state.load(self.folders)
        return None if found is None else found.step


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    folders, lakes = Folders(home=tmp_path), Lakes.of(tmp_path / "lake")
    folders.make()
    write(tmp_path / "lake", LAKE)
    write(tmp_path, HOME)
    write(tmp_path, APART)
    starter.this().save(folders)
    os.chmod(lakes.lake, 0o755)
    return World(Machine(folders, lakes), folders, lakes, [])


def kill_at(monkeypatch: pytest.MonkeyPatch, *points: Point) -> list[Point]:
    """The process ends at the first time that each is reached."""
    left = [*points]

    def at(point: Point, table: str = "") -> None:
        if point in left:
            left.remove(point)
            raise Killed

    monkeypatch.setattr(breakpoints, "at", at)
    return left


def test_data_files_are_kept_by_links_and_all_that_is_written_again_as_copies(world: World) -> None:
    before = world.lake

    ended = world.upgrade.forward()

    assert (ended.step, world.machine.does) == (Step.UPGRADED, ["down", "down", "up", "note upgrade"])
    assert content(world.lakes.before) == before and world.lake != before
    assert "1 data files by links, 6 files copied" in "\n".join(world.said)


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


def test_an_upgrade_that_is_taken_back_later_leaves_every_byte_of_before_and_keeps_what_came(
    world: World,
) -> None:
    lake, home = world.lake, world.home
    world.upgrade.forward()
    (world.folders.home / "kafka/data/orders-0/0.log").write_text("records and more")
    (world.folders.home / "access/users").write_text("anna without ben")
    after, of_kafka = world.lake, "kafka/data/orders-0/0.log"

    ended = world.upgrade.back()

    assert (ended.step, ended.started) == (Step.RETURNED, True)
    assert world.lake == lake
    assert world.home == {**home, of_kafka: b"records and more"}
    assert content(world.lakes.after) == after
    assert (world.folders.upgrade / "after" / "airflow/airflow.db-wal").read_text() == "of the new version"
    assert world.machine.does[-3:] == ["down", f"up by {VERSION}", "note back"]
    assert world.machine.runs == ["broker", "lake"]
    assert stat.S_IMODE(world.lakes.lake.stat().st_mode) == 0o755
    (said,) = [line for line in world.said if line.startswith("changed since")]
    assert "access/users;" in said and "services.json" not in said  # which the upgrade itself has changed


@pytest.mark.parametrize("point", FORWARD)
def test_killed_at_any_step_it_goes_on_to_the_same_end(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    before = world.lake
    left = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.forward()
    assert not left
    with pytest.raises(UsageError, match=r"an upgrade of 2026-01-31T12:00:00Z was not finished") as refused:
        state.refuse_start(world.folders)
    assert refused.value.remedy == state.BOTH_WAYS

    ended = world.upgrade.forward()

    assert (ended.step, ended.services) == (Step.UPGRADED, ["broker", "lake"])
    assert content(world.lakes.before) == before
    assert json.loads((world.lakes.lake / "lake.json").read_text())["format"] == 6
    assert world.machine.runs == ["broker", "lake"]
    state.refuse_start(world.folders)


@pytest.mark.parametrize("point", FORWARD)
def test_killed_at_any_step_it_goes_back_to_every_byte_of_before(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    lake, home = world.lake, world.home
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.forward()

    ended = world.upgrade.back()

    assert (ended.step, ended.started) == (Step.RETURNED, True)
    assert (world.lake, world.home) == (lake, home)
    assert not world.lakes.before.exists() and not world.lakes.making.exists()
    assert world.lakes.after.exists() is (point not in NEVER_RAN)
    assert world.step is (None if point in NEVER_RAN else Step.RETURNED)
    assert world.machine.runs == ["broker", "lake"]


@pytest.mark.parametrize("again", ["forward", "back"])
@pytest.mark.parametrize("point", BACKWARD)
def test_killed_on_the_way_back_it_goes_on_going_back(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point, again: str
) -> None:
    lake, home = world.lake, world.home
    world.upgrade.forward()
    after = world.lake
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.back()

    ended = world.upgrade.back() if again == "back" else world.upgrade.forward()

    assert ended.step is Step.RETURNED
    assert (world.lake, world.home, content(world.lakes.after)) == (lake, home, after)


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


@pytest.mark.parametrize(
    "fails", [{"fails": UnreachableError("lake does not get ready", "its process ended", "see its log")},
              {"differs": DifferenceError("the lake is not as it was before the upgrade", "release 1", "")}],
)  # fmt: skip
def test_where_the_new_version_fails_everything_is_put_back_and_the_reason_said(
    world: World, fails: dict[str, Any]
) -> None:
    lake, home = world.lake, world.home
    world.machine = replace(world.machine, **fails)
    (error,) = fails.values()

    with pytest.raises(TwinlakeError, match="failed, and everything is back as it was") as failed:
        world.upgrade.forward()

    assert failed.value.why == f"{error.what}; {error.why}"
    assert failed.value.remedy.startswith(f"Twinlake {VERSION} runs again.")
    assert (world.lake, world.home, world.step) == (lake, home, Step.RETURNED)
    assert world.machine.does[-3:] == ["down", f"up by {VERSION}", "note back"]


def test_where_keeping_fails_nothing_but_a_restart_has_happened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, home = world.lake, world.home

    def no_links(*places: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)

    with pytest.raises(TwinlakeError, match="everything is back as it was"):
        world.upgrade.forward()

    assert (world.lake, world.home, world.step) == (lake, home, None)
    assert kept.kept_lakes(world.lakes) == [] and world.machine.does[-2] == f"up by {VERSION}"


def test_what_would_fail_is_said_first_and_changes_nothing(world: World) -> None:
    before = content(world.folders.home)
    world.machine.in_the_way = UsageError("no Java is here", "", "install one")

    with pytest.raises(UsageError, match="no Java"):
        world.upgrade.forward()

    assert (content(world.folders.home), world.machine.does, world.step) == (before, [], None)


def test_a_disk_without_room_for_the_copies_is_refused_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(world.folders.home)._replace(free=kept.ROOM_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: free)

    with pytest.raises(TwinlakeError, match="too little room to keep"):
        world.upgrade.forward()

    assert world.machine.does == [] and kept.kept_lakes(world.lakes) == []


def test_a_second_upgrade_waits_until_the_first_is_ended(world: World) -> None:
    world.upgrade.forward()

    with pytest.raises(UsageError, match="has not been ended") as refused:
        world.upgrade.forward()
    assert "`twinlake upgrade --done`" in refused.value.remedy and "--back" in refused.value.remedy

    world.upgrade.let_go()

    assert kept.kept_lakes(world.lakes) == [] and not world.folders.upgrade.exists()
    assert world.upgrade.forward().step is Step.UPGRADED


def test_after_the_way_back_the_same_new_version_is_not_started_by_mistake(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(starter.this(), version="0.0.9").save(world.folders)
    world.upgrade.forward()

    ended = world.upgrade.back()

    assert ended.started is False and not any(one.startswith("up by") for one in world.machine.does)
    assert world.upgrade.after_return(ended).startswith("Install Twinlake 0.0.9 where")
    with pytest.raises(UsageError, match="was put back from Twinlake") as refused:
        state.refuse_start(world.folders)
    assert refused.value.remedy.startswith("install Twinlake 0.0.9 and run `twinlake up`")
    monkeypatch.setattr(state, "VERSION", "0.0.9")  # which is installed now
    state.refuse_start(world.folders)


def test_what_did_not_run_before_is_not_started_by_a_failure(world: World) -> None:
    world.machine.runs, world.machine.fails = [], UnreachableError("lake does not get ready")

    with pytest.raises(TwinlakeError) as failed:
        world.upgrade.forward(["lake"])

    assert world.machine.runs == [] and not any(one.startswith("up by") for one in world.machine.does)
    assert "run `twinlake up`" in failed.value.remedy


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


def test_a_link_to_the_lake_frees_nothing(world: World) -> None:
    kept.keep(world.lakes, world.folders)
    with_link = kept.freed_bytes([world.lakes.before])
    (world.lakes.lake / DATA).unlink()

    assert kept.freed_bytes([world.lakes.before]) == with_link + 4096


def test_going_back_without_an_upgrade_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="no upgrade to go back from"):
        world.upgrade.back()
    world.upgrade.forward()
    world.upgrade.back()
    with pytest.raises(UsageError, match="is back already"):
        world.upgrade.back()


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

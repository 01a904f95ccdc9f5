"""A data directory, and a stand-in for its services: it does to it what services of another version do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.world import Killed
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import TwinlakeError
from twinlake.services.folders import Folders
from twinlake.services.upgrade import starter, state
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


def world_in(folder: Path) -> World:
    folders, lakes = Folders(home=folder), Lakes.of(folder / "lake")
    folders.make()
    write(folder / "lake", LAKE)
    write(folder, HOME)
    write(folder, APART)
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

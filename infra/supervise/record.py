"""What is kept on disk about the parts: folders, the wanted parts, and one record per part.

The records make a part recognisable after the supervisor, or the whole command line, has been killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.supervise.process import Identity
from jobs.settings import Settings

_LOG_KEEP_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The places under $TWINLAKE_HOME that belong to the services."""

    home: Path

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def records(self) -> Path:
        return self.run / "parts"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def supervisor_lock(self) -> Path:
        return self.run / "supervisor.lock"

    def of(self, name: str) -> Path:
        """The state of one service: kafka, registry, airflow, sql."""
        return self.home / name

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def mark(self, part: str) -> str:
        """What every process of the part carries in its environment."""
        return f"{part}@{self.home}"

    def make(self) -> None:
        """Makes the folders; what holds secrets is closed to other users."""
        self.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.run, self.records, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)


def folders_of(settings: Settings) -> Folders:
    return Folders(home=settings.home)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the supervisor knows about one part."""

    part: str
    state: str = "waiting"
    """waiting, preparing, starting, ready, failed (about to be tried again)."""
    identity: Identity | None = None
    since: str = ""
    restarts: int = 0
    failures: int = 0
    """Ends in a row without having been ready."""
    note: str = ""
    error: dict[str, str] | None = None

    @property
    def alive(self) -> bool:
        return self.identity is not None and self.identity.alive

    def become(self, state: str, **changes: Any) -> Record:
        return replace(self, state=state, since=datetime.now(UTC).isoformat(timespec="seconds"), **changes)


def save(folders: Folders, record: Record) -> None:
    """Writes the record as a whole."""
    _write(folders.records / f"{record.part}.json", asdict(record))


def load(folders: Folders, part: str) -> Record:
    """The record of the part; an empty one when it was never started."""
    try:
        found = json.loads((folders.records / f"{part}.json").read_text())
        identity = found.pop("identity")
        return Record(identity=Identity(**identity) if identity else None, **found)
    except (FileNotFoundError, ValueError, TypeError):
        return Record(part=part, state="stopped")


def forget(folders: Folders, part: str) -> None:
    (folders.records / f"{part}.json").unlink(missing_ok=True)


def wanted(folders: Folders) -> set[str]:
    """The parts that should be running."""
    try:
        return set(json.loads((folders.run / "wanted.json").read_text()))
    except (FileNotFoundError, ValueError):
        return set()


def want(folders: Folders, parts: Iterable[str]) -> None:
    _write(folders.run / "wanted.json", sorted(parts))


def rotate(log: Path) -> None:
    """Keeps one older log beside the current one; called before a part starts."""
    if log.exists() and log.stat().st_size > _LOG_KEEP_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, log.stat().st_size - 400 * (lines + 1)))
            return file.read().decode(errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def write_secret(path: Path, text: str) -> None:
    """Writes a file that only its owner can read."""
    staged = path.with_name(path.name + ".tmp")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    staged.replace(path)


def remove_state(folders: Folders) -> None:
    """Removes what Twinlake made in its home, and the home itself when nothing else is in it."""
    names = (
        "lake", "kafka", "registry", "airflow", "sql", "run", "logs", "demo", "bench", "reports",
        "services.json",
    )  # fmt: skip
    for name in names:
        path = folders.home / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if folders.home.is_dir() and not any(folders.home.iterdir()):
        folders.home.rmdir()


def _write(path: Path, value: Any) -> None:
    staged = path.with_name(path.name + ".tmp")
    staged.write_text(json.dumps(value, indent=2))
    staged.replace(path)

"""Folders: the places under $TWINLAKE_HOME that belong to the services."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from twinlake.config.sections import OF_HOME
from twinlake.config.settings import RECORDS, Settings

_OF_OPERATOR = ("twinlake.toml", "accept-unconfined-sql")
"""Files that an operator makes in a home, by these names."""


@dataclass(frozen=True, kw_only=True)
class Folders:
    """What lies where in one home."""

    home: Path

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def records(self) -> Path:
        return self.run / RECORDS

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def supervisor_lock(self) -> Path:
        return self.run / "supervisor.lock"

    @property
    def supervisor_pid(self) -> Path:
        """The supervisor's process id, for systemd; `records` has what tells it from another of that id."""
        return self.run / "supervisor.pid"

    @property
    def command_lock(self) -> Path:
        """Held by the one command that changes what runs."""
        return self.run / "command.lock"

    @property
    def secrets_lock(self) -> Path:
        """Held by whoever writes services.json together with what servers ask for."""
        return self.run / "secrets.lock"

    @property
    def rotation(self) -> Path:
        """There from the beginning of a rotation of secrets to its end; it has their names."""
        return self.run / "rotation.json"

    @property
    def upgrade(self) -> Path:
        """What an upgrade has kept of before, and how far it is; gone when all of it is over."""
        return self.home / "upgrade"

    @property
    def active_settings(self) -> Path:
        """`twinlake.toml` as it was when the supervisor was started."""
        return self.run / "twinlake.toml"

    @property
    def containers(self) -> Path:
        """There while the parts run in containers, which are not ours to start or end."""
        return self.run / "containers"

    def of(self, name: str) -> Path:
        """The state of one service: kafka, registry, airflow, sql."""
        return self.home / name

    def private(self, name: str) -> Path:
        """The same folder, made where it is missing and closed to other users."""
        folder = self.of(name)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def mark(self, part: str) -> str:
        """What every process of the part carries in its environment."""
        return f"{part}@{self.home}"

    def make(self) -> None:
        """Makes the folders, closed to other users: the lake's own are open to whoever gets so far."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.run, self.records, self.logs):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)

    def close(self) -> str:
        """Closes a home that other users may enter, made before or by hand; says what it did, '' for nothing.

        A group that was let in stays so.
        """
        found = self.home.stat()
        if not found.st_mode & stat.S_IRWXO or found.st_uid != os.geteuid():
            return ""
        if others := sorted({path.name for path in self.home.iterdir()} - {*OF_HOME, *_OF_OPERATOR}):
            return (
                f"every user of this machine can read the lake in {self.home}, which was left as it is, "
                f"because {others[0]} is there, too; `chmod 700 {self.home}` closes it"
            )
        self.home.chmod(0o700)
        return f"{self.home} was open to every user of this machine; now it is its owner's alone"


def folders_of(settings: Settings) -> Folders:
    return Folders(home=settings.home)

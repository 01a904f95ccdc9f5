"""Keeps the wanted parts running: starts each after what it needs and what has the cores first, restarts what
dies, adopts what lives.

`python -m twinlake.services.supervise.supervisor --home H` runs detached, one per home (a lock sees to it).
It may be killed at any time: the parts go on, and the next supervisor recognises them by their records.
Ending parts is the task of `twinlake down`, which must also work when there is no supervisor left.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from twinlake.base.files import SECRET, alone, replace_file
from twinlake.config.library import jars_folder
from twinlake.config.project import project_at
from twinlake.config.settings import Services, Settings
from twinlake.config.settings_file import overrides, without_overrides
from twinlake.services.addresses import addresses, publish
from twinlake.services.all import all_parts
from twinlake.services.folders import Folders, folders_of
from twinlake.services.part import Context, Part
from twinlake.services.ports import Ports
from twinlake.services.supervise import record
from twinlake.services.supervise.keeper import Keeper, say
from twinlake.services.supervise.process import identity_of
from twinlake.services.supervise.record import Record
from twinlake.services.upgrade import starter
from twinlake.setup.java import find_java

_TICK_S = 0.25


class Supervisor:
    """All keepers of one home."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], java_home: Path, parts: Sequence[Part]
    ) -> None:
        self.settings = settings
        self.folders = folders_of(settings)
        # a part is given those settings that it reads, and no other's secrets
        self.environ: Mapping[str, str] = without_overrides(environ)
        self.ending = threading.Event()
        self._parts = {part.name: part for part in parts}
        self._java_home = java_home
        self._wanted: set[str] = set()
        self._keepers: dict[str, Keeper] = {}
        self._ports = Ports(self.folders.run / "ports.json", settings.values.ports.fixed)
        self._lock = threading.Lock()
        self._services = Services()
        self._write_services()

    def run(self) -> None:
        """Follows the list of wanted parts until asked to end."""
        while not self.ending.is_set():
            self._wanted = record.wanted(self.folders)
            for name in self._wanted:
                if name in self._parts and name not in self._keepers:
                    keeper = Keeper(self, self._parts[name])
                    self._keepers[name] = keeper
                    keeper.start()
            with suppress(OSError):
                record.shorten(self.folders.log("supervisor"))
            self.ending.wait(_TICK_S)
        for keeper in self._keepers.values():
            keeper.join(timeout=5)

    def is_ready(self, name: str) -> bool:
        return name in self._keepers and self._keepers[name].ready.is_set()

    def is_starting(self, name: str) -> bool:
        keeper = self._keepers.get(name)
        starts = keeper.is_starting if keeper else name in self._wanted and name in self._parts
        needs = self._parts[name].needs if starts else ()
        return starts and all(self.is_ready(need) or self.is_starting(need) for need in needs)

    def context(self) -> Context:
        """What parts may know, as it is now."""
        return Context(
            settings=self.settings, folders=self.folders, ports=self._ports, java_home=self._java_home,
            services=self._services,
        )  # fmt: skip

    def renew_ports(self, part: Part) -> None:
        """Chooses other ports where others hold the service's own, and restarts whoever used the old."""
        with self._lock, alone(self.folders.secrets_lock):
            self._read_services()  # a secret may have been rotated
            if taken := self._ports.renew_taken(part.ports):
                whose = ", ".join(taken)
                say(f"{part.name}: someone else listens on {whose}; other ports were chosen")
            elif self._services == self._with_own_password(addresses(self.context())):
                return
            self._services = publish(self.context())
        for keeper in self._keepers.values():
            if keeper.part.name != part.name and self._uses(keeper.part, part.name):
                keeper.renew.set()

    def _uses(self, part: Part, name: str) -> bool:
        if part.service == self._parts[name].service:
            return True
        return any(need == name or self._uses(self._parts[need], name) for need in part.needs)

    def _write_services(self) -> None:
        with alone(self.folders.secrets_lock):
            self._read_services()
            # not before: what could not be written is written at the next start of a part
            self._services = publish(self.context())

    def _read_services(self) -> None:
        file = self.settings.services_file
        if file.exists():
            self._services = Services.load(file)

    def _with_own_password(self, found: Services) -> Services:
        """Airflow keeps its password itself: another one there moves no address, so nothing starts again."""
        return replace(found, airflow_password=self._services.airflow_password)


def lock(folders: Folders) -> int | None:
    """The descriptor that holds this home's supervisor lock, None when another supervisor has it."""
    descriptor = os.open(folders.supervisor_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def with_active_settings(settings: Settings) -> Settings:
    """The settings as they are now, in a copy for every part that starts again while this supervisor runs.

    A lake server that died after an edit would come back with another lake, and read the topics there too.
    """
    kept = folders_of(settings).active_settings
    try:
        replace_file(kept, settings.file.read_bytes(), SECRET)
    except FileNotFoundError:
        kept.unlink(missing_ok=True)
    return replace(settings, active_file=kept)


def main(parts: Callable[[Sequence[str]], Sequence[Part]] = all_parts) -> None:
    """Runs until SIGTERM; the parts stay."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--project", type=Path, help="the nearest one upward unless given")
    parser.add_argument("--jars", type=Path, default=jars_folder({}))
    given = parser.parse_args()
    settings = Settings(
        home=given.home, in_project=project_at(given.project), jars=given.jars,
        overrides=overrides(os.environ),
    )  # fmt: skip
    settings.refuse_incomplete()
    folders = folders_of(settings)
    folders.make()
    if lock(folders) is None:
        sys.exit("another supervisor runs for this home")
    settings = with_active_settings(settings)
    os.umask(0o022)  # the SQL server reads the lake as another user; secrets set their mode themselves
    me = identity_of(os.getpid())
    replace_file(folders.supervisor_pid, f"{os.getpid()}\n")
    starter.this().save(folders)
    record.save(folders, Record(part="supervisor", state="ready", identity=me).become("ready"))
    wanted = parts(settings.values.given)
    supervisor = Supervisor(settings, os.environ, find_java(os.environ), wanted)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.ending.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    supervisor.run()


if __name__ == "__main__":
    main()

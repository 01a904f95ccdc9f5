"""Keeps the wanted parts running: starts each after what it needs, restarts what dies, adopts what lives.

`python -m infra.supervise.supervisor --home H` runs detached, one per home (a lock sees to it). It may be
killed at any time: the parts go on, and the next supervisor recognises them by their records. Ending parts is
the task of `twinlake down`, which must also work when there is no supervisor left.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from infra.parts.part import Context, Part, all_parts
from infra.parts.ports import HOST, Ports
from infra.setup.java import find_java
from infra.supervise import record
from infra.supervise.process import end, end_marked, identity_of, start
from infra.supervise.record import Folders, Record, folders_of
from jobs.errors import TwinlakeError
from jobs.settings import Services, Settings

BACKOFF_S = (0.5, 1, 2, 4, 8, 15, 30)
_STEADY_S = 60.0  # a part that lived this long is given the short pauses again
_TICK_S = 0.25
_PROBE_S = 0.5


class Keeper(threading.Thread):
    """Keeps one part running until the supervisor ends."""

    def __init__(self, supervisor: Supervisor, part: Part) -> None:
        super().__init__(name=part.name, daemon=True)
        self._supervisor = supervisor
        self._folders = supervisor.folders
        self.part = part
        self.ready = threading.Event()
        self.renew = threading.Event()
        """Set when the part must start again because an address it uses has changed."""
        self._record = record.load(self._folders, part.name)
        self._gone = threading.Event()
        """Set when a process that this supervisor started has ended; an adopted one has to be looked at."""
        self._how = ""
        self._last = self._record.identity

    def run(self) -> None:
        """Start, watch, start again; never returns before the supervisor ends."""
        attempt = 0
        adopted = self._record.alive
        while not self._supervisor.ending.is_set():
            began = time.monotonic()
            try:
                if not adopted:
                    self._wait_for_needs()
                    self._start()
                self._watch(adopted)
                why = None
            except Exception as error:  # whatever goes wrong with one part must not end the keeping of it
                why = error
            if self._supervisor.ending.is_set():
                return
            adopted = False
            was_ready = self.ready.is_set()
            self.ready.clear()
            attempt = 0 if time.monotonic() - began > _STEADY_S else attempt + 1
            self._failed(why, was_ready)
            self._supervisor.ending.wait(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])

    def _wait_for_needs(self) -> None:
        self._last = self._record.identity or self._last
        self._become("waiting", identity=None)
        while not self._supervisor.ending.is_set():
            if all(self._supervisor.is_ready(need) for need in self.part.needs):
                return
            time.sleep(0.1)

    def _start(self) -> None:
        if self._supervisor.ending.is_set():
            return
        mark = self._folders.mark(self.part.name)
        end_marked(mark, self._last)  # children that outlived a killed part would hold its ports and files
        self._supervisor.renew_ports(self.part)
        self.renew.clear()
        self._become("preparing")
        record.rotate(self._folders.log(self.part.name))
        context = self._supervisor.context()
        self.part.prepare(context)
        if self.part.command is None:
            return
        command = self.part.command(context)
        process = start(
            command.arguments, environ={**self._supervisor.environ, **command.environ},
            folder=self._folders.run,
            log=self._folders.log(self.part.name), mark=mark,
        )  # fmt: skip
        self._become("starting", identity=identity_of(process.pid))
        self._gone.clear()
        threading.Thread(target=self._take_exit, args=(process, self._gone), daemon=True).start()

    def _take_exit(self, process: subprocess.Popen[bytes], gone: threading.Event) -> None:
        code = process.wait()
        self._how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        gone.set()

    def _watch(self, adopted: bool) -> None:
        """Returns when the process has ended, or has to start again."""
        probed_at = 0.0
        while not self._supervisor.ending.is_set():
            if self.part.command is not None and (
                self._gone.is_set() or (adopted and not self._record.alive)
            ):
                return
            if self.renew.is_set():
                if self.part.command is not None:
                    end(self._record.identity, self._folders.mark(self.part.name), self.part.grace_s)
                return
            if not self.ready.is_set() and time.monotonic() - probed_at > _PROBE_S:
                try:
                    answer = self.part.probe(self._supervisor.context())
                    self._become("ready", note=answer, failures=0, error=None)
                    self.ready.set()
                except Exception as error:
                    self._record = replace(self._record, note=str(error)[:300])
                probed_at = time.monotonic()
            # A process of its own wakes it at once; adopted ones are looked at.
            self._gone.wait(_TICK_S if self.part.command is not None else 1.0)

    def _failed(self, error: Exception | None, was_ready: bool) -> None:
        said = None
        if isinstance(error, TwinlakeError):
            said = error.to_json()
        elif error is not None:
            said = {
                "what": f"{self.part.name} could not be started",
                "why": f"{type(error).__name__}: {error}",
            }
            traceback.print_exception(error)
        print(f"{self.part.name} ended ({said or self._how or 'its process is gone'})", flush=True)
        self._become(
            "failed", restarts=self._record.restarts + 1, error=said,
            failures=0 if was_ready else self._record.failures + 1,
        )  # fmt: skip

    def _become(self, state: str, **changes: object) -> None:
        self._record = self._record.become(state, **changes)
        record.save(self._folders, self._record)


class Supervisor:
    """All keepers of one home."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], java_home: Path, parts: Sequence[Part]
    ) -> None:
        self.settings = settings
        self.folders: Folders = folders_of(settings)
        self.environ = dict(environ)
        self.ending = threading.Event()
        self._parts = {part.name: part for part in parts}
        self._java_home = java_home
        self._keepers: dict[str, Keeper] = {}
        self._ports = Ports(self.folders.run / "ports.json")
        self._lock = threading.Lock()
        self._services = Services()
        self._write_services()

    def run(self) -> None:
        """Follows the list of wanted parts until asked to end."""
        while not self.ending.is_set():
            for name in record.wanted(self.folders):
                if name in self._parts and name not in self._keepers:
                    keeper = Keeper(self, self._parts[name])
                    self._keepers[name] = keeper
                    keeper.start()
            self.ending.wait(_TICK_S)
        for keeper in self._keepers.values():
            keeper.join(timeout=5)

    def is_ready(self, name: str) -> bool:
        return name in self._keepers and self._keepers[name].ready.is_set()

    def context(self) -> Context:
        """What parts may know, as it is now."""
        return Context(
            settings=self.settings, folders=self.folders, ports=self._ports, java_home=self._java_home,
            services=self._services,
        )  # fmt: skip

    def renew_ports(self, part: Part) -> None:
        """Chooses other ports where strangers sit on the part's own, and restarts whoever used the old."""
        with self._lock:
            if not (taken := self._ports.renew_taken(part.ports)):
                return
            print(
                f"{part.name}: someone else listens on {', '.join(taken)}; other ports were chosen",
                flush=True,
            )
            self._write_services()
        for keeper in self._keepers.values():
            if keeper.part.name != part.name and self._uses(keeper.part, part.name):
                keeper.renew.set()

    def _uses(self, part: Part, name: str) -> bool:
        if part.service == self._parts[name].service:
            return True
        return any(need == name or self._uses(self._parts[need], name) for need in part.needs)

    def _write_services(self) -> None:
        file = self.settings.services_file
        self._services = Services.load(file) if file.exists() else Services()
        self._services = addresses(self.context())
        self._services.save(file)


def addresses(context: Context) -> Services:
    """What services.json says: every address by the ports as they are, secrets kept or made."""
    from infra.parts import airflow, broker, registry

    ports = context.ports
    return Services(
        bootstrap_servers=f"{HOST}:{ports['broker']}",
        registry_url=registry.url(ports["registry"]),
        api_url=f"http://{HOST}:{ports['lake']}",
        api_token=context.services.api_token or secrets.token_urlsafe(32),
        sql_url=f"http://{HOST}:{ports['sql']}",
        jdbc_url=f"jdbc:hive2://{HOST}:{ports['jdbc']}/",
        airflow_url=f"http://{HOST}:{ports['airflow']}",
        airflow_user=airflow.USER,
        airflow_password=airflow.password(context),
        lake=str(context.settings.lake),
        cluster_id=broker.cluster_id(context),
    )


def lock(folders: Folders) -> int | None:
    """The descriptor that holds this home's supervisor lock, None when another supervisor has it."""
    descriptor = os.open(folders.supervisor_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def main(parts: Callable[[], Sequence[Part]] = all_parts) -> None:
    """Runs until SIGTERM; the parts stay."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    settings = Settings(home=parser.parse_args().home)
    folders = folders_of(settings)
    folders.make()
    if lock(folders) is None:
        sys.exit("another supervisor runs for this home")
    os.umask(0o022)  # the SQL server reads the lake as another user; secrets set their mode themselves
    me = identity_of(os.getpid())
    record.save(folders, Record(part="supervisor", state="ready", identity=me).become("ready"))
    supervisor = Supervisor(settings, os.environ, find_java(os.environ), parts())
    signal.signal(signal.SIGTERM, lambda *_: supervisor.ending.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    supervisor.run()


if __name__ == "__main__":
    main()

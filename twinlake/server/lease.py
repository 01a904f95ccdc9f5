"""Lease: one lake server per lake where machines share the store, and no lock ends with its process.

Leases are numbered: who publishes the next number by put-if-absent has the lake. The one who has it shows so
by changing a file every few seconds; nobody compares clocks, whoever waits sees the file change or not. A
server that was frozen and is back finds the next number taken and ends at once. What it commits before it has
looked is safe: a commit is put-if-absent, too, and every step and batch has one number.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from twinlake.base.errors import BusyError
from twinlake.base.location import Location
from twinlake.lake.storage import store

BEAT_S = 3.0
SILENT_S = 20.0
"""Who has not changed its file for so long has the lake no more, once somebody else takes it."""
LOST_EXIT = 75
_TAKEN, _BEAT, _ENDED = ".json", ".beat", ".ended"
_NAME = re.compile(r"(\d{8})\.json")
journal = structlog.get_logger(__name__)


class Lease:
    """Held until `close`, or until another machine takes the lake because this one was silent."""

    def __init__(
        self, folder: Location, number: int, beat_s: float = BEAT_S, lost: Callable[[], None] | None = None
    ) -> None:
        self._folder, self._number, self._beat_s = folder, number, beat_s
        self._lost = lost or _end
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The lake is free at once, for whoever comes next."""
        self._closed.set()
        self._thread.join(timeout=10)
        store.put_if_absent(_file(self._folder, self._number, _ENDED), "")

    def _run(self) -> None:
        beats = 0
        while not self._closed.is_set():
            try:
                if _newest(self._folder) > self._number:
                    journal.error("another lake server has taken the lake; this one ends", lease=self._number)
                    self._lost()
                    return
                beats += 1
                store.replace(_file(self._folder, self._number, _BEAT), str(beats))
            except Exception as error:  # whatever it is: who looks no more does not see that the lake is lost
                journal.warning("the lease cannot be renewed; it is tried again", why=str(error))
            self._closed.wait(self._beat_s)


def take(lake: Location, beat_s: float = BEAT_S, silent_s: float = SILENT_S) -> Lease:
    """The lake's next lease; BusyError while somebody else holds one, known after a beat or two of it."""
    folder = lake / "lease"
    store.make_folder(folder)
    newest = _newest(folder)
    if newest and (why := _held(folder, newest, silent_s)):
        raise BusyError(
            f"the lake {lake} is in use by another lake server ({why})",
            "two writers would stand in each other's way",
            "stop the other one with `twinlake down` on its machine, or name another lake",
        )
    me = {"machine": _machine(), "host": socket.gethostname(), "pid": os.getpid(), "born": _born(os.getpid())}
    if not store.put_if_absent(_file(folder, newest + 1, _TAKEN), json.dumps(me)):
        raise BusyError(
            f"the lake {lake} is in use by another lake server", "it has taken the lake in this moment",
            "stop one of the two",
        )  # fmt: skip
    for name in store.names(folder):
        number = re.match(r"\.?(\d{8})\.", name)
        if number and int(number[1]) < newest:  # the last one's stay, for who waits for them
            store.delete(folder / name)
    return Lease(folder, newest + 1, beat_s)


def _held(folder: Location, number: int, silent_s: float) -> str | None:
    """By whom, in words; None where it has ended."""
    ended, beat = _file(folder, number, _ENDED), _file(folder, number, _BEAT)
    owner = json.loads(store.read_text(_file(folder, number, _TAKEN)))
    if store.exists(ended) or (
        owner["machine"] == _machine() and (owner["born"] is None or _born(owner["pid"]) != owner["born"])
    ):
        return None
    seen, until = _text(beat), time.monotonic() + silent_s
    while time.monotonic() < until:
        time.sleep(min(1.0, silent_s / 10))
        if store.exists(ended):
            return None
        if _text(beat) != seen:
            return f"process {owner['pid']} on {owner['host']}"
    return None


def _newest(folder: Location) -> int:
    return max((int(found[1]) for name in store.names(folder) if (found := _NAME.fullmatch(name))), default=0)


def _file(folder: Location, number: int, ending: str) -> Location:
    return folder / f"{number:08d}{ending}"


def _text(file: Location) -> str | None:
    try:
        return store.read_text(file)
    except FileNotFoundError:
        return None


def _machine() -> str:
    """This machine since its start, as far as it knows the ids of processes; a container is one, too."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {os.urandom(8).hex()}"  # not known: nobody is the same


def _born(pid: int) -> Any:
    """When a process began, by the kernel's ticks; None of one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _end() -> None:
    os._exit(LOST_EXIT)  # not by and by: another machine writes the lake

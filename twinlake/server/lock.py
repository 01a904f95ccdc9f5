"""Lock: one lake server per lake, because a version has one owner and a log one ingest."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from twinlake.base.errors import BusyError
from twinlake.base.location import Location
from twinlake.server import lease

FILE = "lake.lock"


class Held(Protocol):
    def close(self) -> object:
        """Let it go."""


def take(lake: Location) -> Held:
    """The lake for this process alone, until it is closed or the process ends; or BusyError.

    A second server would compute the same steps, and find each of its transactions taken.
    """
    return _locked(lake) if isinstance(lake, Path) else lease.take(lake)


def refuse_taken(lake: Path) -> None:
    """BusyError where a lake server has the lake; nothing of it is changed."""
    with suppress(FileNotFoundError), (lake / FILE).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _taken(lake, file.read()) from error


def _taken(lake: Path, holder: str) -> BusyError:
    return BusyError(
        f"the lake {lake} is in use by another lake server (process {holder.strip() or 'unknown'})",
        "two writers would stand in each other's way",
        "stop the other one with `twinlake down`, or use another TWINLAKE_HOME",
    )


def _locked(lake: Path) -> Held:
    """By the kernel, which lets go with the process."""
    lake.mkdir(parents=True, exist_ok=True)
    file = (lake / FILE).open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read()
        file.close()
        raise _taken(lake, holder) from error
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file

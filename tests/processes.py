"""What runs for a state folder, by the mark that every process of a part carries, children included; and the
end of a process with all below it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from twinlake.services.supervise.process import MARK


def has_ended(process: psutil.Process) -> bool:
    """Whether or not anybody has reaped it: where nothing does, as in some containers, it is listed still."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def killed(process: subprocess.Popen[bytes]) -> int:
    """kill -9 of it and of all below it, frozen or not; its exit code."""
    with suppress(psutil.NoSuchProcess):
        for one in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                one.kill()
    process.kill()
    return process.wait()


def of_home(home: Path) -> list[psutil.Process]:
    return [process for _, process in _marked(home)]


def parts_of_home(home: Path) -> set[str]:
    return {part for part, _ in _marked(home)}


def _marked(home: Path) -> Iterator[tuple[str, psutil.Process]]:
    for process in psutil.process_iter():
        try:
            part, _, marked = process.environ().get(MARK, "").partition("@")
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if marked == str(home):
            yield part, process

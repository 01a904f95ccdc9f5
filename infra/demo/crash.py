"""kill -9 of a part with all its children, and waiting until the supervisor has brought it back."""

from __future__ import annotations

import time

import psutil

from infra.demo.summary import DemoError
from infra.supervise import record
from jobs.settings import Settings


def kill(settings: Settings, part: str) -> int:
    """Ends the part as a power cut would end its processes; returns the pid it had."""
    identity = record.load(record.folders_of(settings), part).identity
    process = identity.process() if identity else None
    if process is None:
        raise DemoError(f"{part} is not running, so it cannot be killed")
    victims = [process, *process.children(recursive=True)]
    for victim in victims:
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(victims, timeout=20)
    return process.pid


def wait_back(settings: Settings, part: str, pid: int, patience_s: float = 150) -> None:
    """Returns once another process of the part is ready."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        now = record.load(record.folders_of(settings), part)
        if now.state == "ready" and now.alive and now.identity and now.identity.pid != pid:
            return
        time.sleep(0.2)
    raise DemoError(f"{part} did not come back within {patience_s:.0f} s; see `twinlake logs {part}`")

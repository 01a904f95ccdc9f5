"""kill -9 of a part with all its children, and waiting until the supervisor has brought it back."""

from __future__ import annotations

import psutil

from tests.demo.summary import DemoError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.services.supervise import record


def kill(settings: Settings, part: str) -> int:
    """Ends the part as a power cut would end its processes; returns the pid it had."""
    identity = record.of(settings, part).identity
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
    """Returns once another process of the part than `pid` is ready."""

    def back() -> bool | None:
        now = record.of(settings, part)
        is_new = now.alive and now.identity is not None and now.identity.pid != pid
        return True if now.state == "ready" and is_new else None

    wait_for(f"{part} to come back", back, patience_s, every_s=0.2, remedy=f"see `twinlake logs {part}`")

"""Run: what a job's verb sees of the job: its id, its progress, and whether it was cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.errors import TwinlakeError


class CancelledError(TwinlakeError):
    """Raised between the parts of a job after somebody cancelled it; nothing is half done."""

    def __init__(self, job: str) -> None:
        super().__init__(
            f"job {job} was cancelled",
            "someone asked for it with `twinlake jobs cancel`",
            "submit it again to run it; what it had committed before stays committed",
        )


@dataclass(frozen=True, kw_only=True)
class Progress:
    done: float = 0
    total: float = 0
    unit: str = ""
    message: str = ""


@dataclass(kw_only=True)
class Run:
    """Handed to every job handler. Verbs report through it and ask it between chunks whether to go on."""

    id: str
    report: Callable[[Progress], None] = lambda progress: None
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def tag(self) -> str:
        """The Spark job tag under which everything of this job runs, so that cancel reaches it."""
        return f"job-{self.id}"

    def progress(self, done: float, total: float, unit: str, message: str = "") -> None:
        self.report(Progress(done=done, total=total, unit=unit, message=message))

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError(self.id)

"""Run: what a job's verb sees of the job (id, progress, whether it was cancelled), and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

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


class Result(Protocol):
    """What a job found or did."""

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The end of a job that failed and has a result all the same, for whoever looks into it."""

    error: TwinlakeError
    result: Result


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

    def say(self, message: str) -> None:
        """Progress that cannot be counted."""
        self.progress(0, 0, "", message)

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError(self.id)

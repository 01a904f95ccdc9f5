"""A job: what is known of it, what its verb sees of it while it runs, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Protocol

from twinlake.base.errors import TwinlakeError, error_of

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
AGAIN = ("failed", "cancelled", "interrupted")
"""Asked for again under the same key, such a job is started again."""
ENDED = ("succeeded", *AGAIN)


Via = Literal["api", "airflow", "cli", "console"]


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks for a job, by which way, and why."""

    by: str | None = None
    via: Via = "api"
    why: str | None = None


SOMEBODY = "somebody"
"""Who has answered in Airflow, where Airflow does not say who."""
NOBODY = Asker()
"""Who asks does not say who it is."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One asked-for piece of work; `attempt` counts how often it was started under the same key.

    Moments are RFC 3339, UTC.
    """

    id: str
    kind: str
    params: dict[str, Any]
    key: str | None = None
    state: State = "queued"
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    attempt: int = 1
    idle_minutes: int | None = None
    """It runs, and for so long, which is too long, nothing in it has gone on."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """The job that `to_json` wrote; what this code does not know of it is left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})

    def summary(self) -> str:
        """How it is, in one line for a person."""
        parts: list[str] = [self.state]
        if not self.ended_at:
            done, total = self.progress.get("done") or 0, self.progress.get("total")
            if total:
                share = "" if done == int(done) else f" ({done / total:.0%})"
                parts.append(f"{int(done):,} of {total:,.0f} {self.progress['unit']}{share}")
            if message := self.progress.get("message"):
                parts.append(message)
            if what := self.progress.get("waiting_for"):
                parts.append(f"waiting for {what}")
            elif (left := self.progress.get("eta_s")) is not None:
                parts.append(f"about {left:.0f} s left")
            if self.idle_minutes is not None:
                parts.append(f"no progress for {self.idle_minutes} minutes")
        return ", ".join(parts)

    def succeeded(self) -> dict[str, Any]:
        """Its result; a job that ended otherwise raises its error, of the class that it was."""
        if self.state == "succeeded":
            return self.result or {}
        raise error_of(self.error or {"what": f"job {self.id} is {self.state}"})


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
    """How far a job is. The step under way will have added `span` to `done` when it ends."""

    done: float = 0
    total: float = 0
    unit: str = ""
    message: str = ""
    span: float = 0


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
    asker: Asker = NOBODY
    report: Callable[[Progress], None] = lambda progress: None
    moved: Callable[[], None] = lambda: None
    """Something went on that is not worth a report."""
    waits: Callable[[str | None], None] = lambda what: None
    """Called with what the job waits for, and with None once it goes on."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    _step: Progress | None = field(default=None, init=False)
    _shared: float = field(default=0.0, init=False)
    _last_share: float = field(default=0.0, init=False)
    _stepping: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def tag(self) -> str:
        """The Spark job tag under which everything of this job runs, so that cancel reaches it."""
        return f"job-{self.id}"

    def progress(self, done: float, total: float, unit: str, message: str = "", span: float = 0) -> None:
        """A step begins."""
        with self._stepping:
            self._step = Progress(done=done, total=total, unit=unit, message=message, span=span)
            self._shared = 0.0
            self.report(self._step)

    def share(self, of: Callable[[Progress | None], float]) -> None:
        """Reports how much of the step under way is done (0 to 1), as far as that is more than before."""
        with self._stepping:
            step, share = self._step, min(1.0, of(self._step))
            if share != self._last_share:
                self._last_share = share
                self.moved()
            if step and step.span and share > self._shared:
                self._shared = share
                self.report(replace(step, done=step.done + step.span * share))

    def say(self, message: str) -> None:
        """Progress that cannot be counted."""
        self.progress(0, 0, "", message)

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError(self.id)


def batches_text(position: Mapping[str, int]) -> str:
    """A position for a person: of each topic the last batch of its log that was taken."""
    return ", ".join(f"{topic} batch {batch}" for topic, batch in position.items())

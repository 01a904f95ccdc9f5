"""Work: the lake server's jobs. Accepted once per key, persisted before they start, found again after a
kill."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
from pydantic import ValidationError

from jobs.errors import BusyError, NotFoundError, TwinlakeError, UsageError
from jobs.lake.ledger import Ledger
from jobs.run import CancelledError, Progress, Run
from jobs.server.job_kinds import Kind
from jobs.times import format_moment

logger = logging.getLogger(__name__)

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
ENDED = ("succeeded", "failed", "cancelled", "interrupted")
AGAIN = ("failed", "cancelled", "interrupted")
AT_ONCE = 6
QUEUE_LIMIT = 200


@dataclass(frozen=True, kw_only=True)
class Job:
    """One asked-for piece of work; `attempt` counts how often it was started under the same key."""

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

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        *[(name, pa.string()) for name in ("id", "kind", "params", "key", "state", "result", "error")],
        *[(name, pa.string()) for name in ("created_at", "started_at", "ended_at")],
        ("attempt", pa.int64()),
    ]
)
_NESTED = ("params", "result", "error")


class Jobs:
    """`start(job, params, run)` does a job; what it returns is the result, what it raises the error."""

    def __init__(
        self,
        lake: Path,
        kinds: Mapping[str, Kind],
        do: Callable[[Kind, Any, Run], dict[str, Any]],
        cancel_tag: Callable[[str], None] = lambda tag: None,
    ) -> None:
        self._kinds = kinds
        self._do = do
        self._cancel_tag = cancel_tag
        self._ledger = Ledger(lake / "runs", SCHEMA)
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, str] = {}
        self._runs: dict[str, Run] = {}
        self._began: dict[str, float] = {}
        self._sequence = 0
        self._changed = threading.Condition(threading.RLock())
        self._workers = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="job")
        self._load()

    def start(self) -> None:
        """Begin with the jobs that were accepted but not started before the last stop."""
        with self._changed:
            waiting = [job for job in self._jobs.values() if job.state == "queued"]
        for job in waiting:
            self._workers.submit(self._work, job.id)

    def submit(self, kind: str, params: Mapping[str, Any], key: str | None = None) -> Job:
        """Accept a job; on return it survives a kill. The same key finds the same job, or starts it again."""
        known = self._kinds.get(kind)
        if known is None:
            raise UsageError(f"there is no job kind {kind!r}", "", f"known: {', '.join(sorted(self._kinds))}")
        try:
            plain = known.params.model_validate(dict(params)).model_dump(mode="json", by_alias=True)
        except ValidationError as error:
            raise UsageError(f"the parameters of {kind} are wrong", _faults(error), "correct them") from error
        with self._changed:
            before = self._jobs.get(self._keys.get(key, "")) if key else None
            if before is not None:
                if (before.kind, before.params) != (kind, plain):
                    raise UsageError(
                        f"key {key!r} belongs to another job",
                        f"job {before.id} has it: {before.kind} {json.dumps(before.params)}",
                        "use a key of its own for each job",
                    )
                if before.state not in AGAIN:
                    return before
                job = replace(
                    before, state="queued", progress={}, result=None, error=None, started_at=None,
                    ended_at=None,
                    attempt=before.attempt + 1,
                )  # fmt: skip
            else:
                job = Job(id=uuid4().hex[:12], kind=kind, params=plain, key=key, created_at=_now())
            if sum(not other.ended for other in self._jobs.values()) >= QUEUE_LIMIT:
                raise BusyError(
                    "too many jobs are waiting", f"the limit is {QUEUE_LIMIT}", "wait, or cancel some"
                )
            self._put(job)
        self._workers.submit(self._work, job.id)
        return job

    def get(self, id: str) -> Job:
        with self._changed:
            job = self._jobs.get(id)
        if job is None:
            raise NotFoundError(f"there is no job {id!r}", "", "see `twinlake jobs list`")
        return job

    def list(self) -> list[Job]:
        """Newest first."""
        with self._changed:
            return sorted(self._jobs.values(), key=lambda job: job.created_at, reverse=True)

    def wait(self, id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is after so many seconds."""
        until = time.monotonic() + seconds
        with self._changed:
            while not (job := self.get(id)).ended and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return job

    def cancel(self, id: str) -> Job:
        """Ask a job to end at the next place where nothing is half done; one that has ended stays as it
        is."""
        with self._changed:
            job = self.get(id)
            if job.state == "queued":
                self._put(replace(job, state="cancelled", ended_at=_now()))
            run = self._runs.get(id)
            if run:
                run.cancelled.set()
        if run:
            self._cancel_tag(run.tag)
        return self.get(id)

    def stop(self, wait_s: float = 20) -> None:
        """Cancel what runs; what cannot end in time is found interrupted at the next start."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        with self._changed:
            runs = list(self._runs.values())
        for run in runs:
            run.cancelled.set()
            self._cancel_tag(run.tag)
        until = time.monotonic() + wait_s
        with self._changed:
            while self._runs and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    def alive(self) -> set[str]:
        """Jobs whose staging may still be needed: not ended, or to be continued under their key."""
        with self._changed:
            return {job.id for job in self._jobs.values() if not job.ended or job.state == "interrupted"}

    def compact(self) -> bool:
        return self._ledger.compact()

    def _work(self, id: str) -> None:
        with self._changed:
            job = self._jobs[id]
            if job.state != "queued":
                return
            job = self._put(replace(job, state="running", started_at=_now()))
            self._began[id] = time.monotonic()
            run = self._runs[id] = Run(id=id, report=lambda progress: self._report(id, progress))
        state: State
        try:
            kind = self._kinds[job.kind]
            result = self._do(kind, kind.params.model_validate(job.params), run)
            state, error = "succeeded", None
        except CancelledError as cancelled:
            state, result, error = "cancelled", None, cancelled.to_json()
        except TwinlakeError as known:
            state, result, error = "failed", getattr(known, "result", None), known.to_json()
        except Exception as unknown:
            if run.cancelled.is_set():
                state, result, error = "cancelled", None, CancelledError(id).to_json()
            else:
                logger.exception("job %s (%s) failed", id, job.kind)
                text = str(unknown).strip().splitlines() or [type(unknown).__name__]
                why = f"{type(unknown).__name__}: {' '.join(text[:3])[:600]}"
                failed = TwinlakeError(
                    f"{job.kind} failed", why, "see `twinlake logs lake` for the whole error"
                )
                state, result, error = "failed", None, failed.to_json()
        with self._changed:
            self._runs.pop(id, None)
            self._began.pop(id, None)
            self._put(replace(self._jobs[id], state=state, result=result, error=error, ended_at=_now()))

    def _report(self, id: str, progress: Progress) -> None:
        with self._changed:
            job = self._jobs[id]
            eta = None
            if progress.done and progress.total:
                taken = time.monotonic() - self._began[id]
                eta = round(max(0.0, taken * (progress.total - progress.done) / progress.done), 1)
            self._jobs[id] = replace(job, progress={**asdict(progress), "eta_s": eta})
            self._changed.notify_all()

    def _put(self, job: Job) -> Job:
        """Persist, then remember; the caller holds the lock."""
        row = {**{name: value for name, value in asdict(job).items() if name != "progress"}}
        self._sequence += 1
        self._ledger.append(
            [{**row, **{name: json.dumps(row[name]) for name in _NESTED}, "sequence": self._sequence}]
        )
        self._jobs[job.id] = job
        if job.key:
            self._keys[job.key] = job.id
        self._changed.notify_all()
        return job

    def _load(self) -> None:
        """Read what was; a job that was running when the server died is interrupted."""
        for row in sorted(self._ledger.rows(), key=lambda row: row["sequence"]):
            self._sequence = row.pop("sequence")
            job = Job(**{**row, **{name: json.loads(row[name]) for name in _NESTED}})
            self._jobs[job.id] = job
            if job.key:
                self._keys[job.key] = job.id
        for job in list(self._jobs.values()):
            if job.state != "running":
                continue
            with self._changed:
                self._put(
                    replace(job, state="interrupted", ended_at=_now(), error=_interrupted(job).to_json())
                )


def _interrupted(job: Job) -> TwinlakeError:
    return TwinlakeError(
        f"job {job.id} was interrupted",
        "the lake server ended while it was running",
        "submit it again (with the same key, if it had one); what it had committed stays committed",
    )


def _faults(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'params'}: {fault['msg']}" for fault in error.errors()
    )


def _now() -> str:
    return format_moment(datetime.now(UTC))

"""Jobs: accepted once per key, persisted before they start, found again after a kill."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog

from twinlake.base import service_log
from twinlake.base.errors import (
    BusyError,
    FullDiskError,
    NotFoundError,
    TwinlakeError,
    UsageError,
    first_lines,
)
from twinlake.base.job import (
    AGAIN,
    NOBODY,
    Asker,
    CancelledError,
    Failed,
    Job,
    Progress,
    Result,
    Run,
    State,
)
from twinlake.base.times import Clock, format_moment, parse_moment
from twinlake.lake.catalog.audit_log import AuditLog, is_act
from twinlake.lake.catalog.runs import Runs
from twinlake.server.job_kind import JobKind

journal = structlog.get_logger(__name__)

AT_ONCE = 6
URGENT_AT_ONCE = 2
QUEUE_LIMIT = 200
CONTINUED = timedelta(days=7)
"""What an interrupted job has staged waits so long for its key; one that comes later starts again."""
PATIENCE_S = 3600.0
AGAIN_S = 2.0
"""A job that cannot be written down is tried again so often."""


class Jobs:
    """`do(kind, params, run)` does a job: it returns its result or a `Failed`, or raises the error.

    One that runs without any progress for longer than `patience_s` is shown as idle.
    """

    def __init__(
        self,
        runs: Runs,
        audit: AuditLog,
        kinds: Mapping[str, JobKind],
        do: Callable[[JobKind, Any, Run], Result | Failed],
        clock: Clock,
        cancel_tag: Callable[[str], None] = lambda tag: None,
        patience_s: float = PATIENCE_S,
        listen: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self._store = runs
        self._audit = audit
        self._patience_s = patience_s
        self._kinds = kinds
        self._do = do
        self._clock = clock
        self._cancel_tag = cancel_tag
        self._listen = listen
        """Called with each job once it runs, and once it has ended."""
        self._started = self._ending = False
        self._running: dict[str, Run] = {}
        self._began: dict[str, float] = {}
        self._moved: dict[str, float] = {}
        self._changed = threading.Condition(threading.RLock())
        self._workers = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="job")
        self._urgent = ThreadPoolExecutor(max_workers=URGENT_AT_ONCE, thread_name_prefix="urgent job")
        self._interrupt_running()

    def start(self) -> None:
        """Begin with the jobs that were accepted but not started; from here on each begins when it comes."""
        with self._changed:
            self._started = True
        for job in self._store.all():
            if job.state == "queued":
                self._hand_over(job)

    def submit(
        self, kind: str, params: Mapping[str, Any], key: str | None = None, asker: Asker = NOBODY
    ) -> Job:
        """Accept a job; on return it survives a kill. The same key finds the same job, or starts it again."""
        known = self._kinds.get(kind)
        if known is None:
            raise UsageError(f"there is no job kind {kind!r}", "", f"known: {', '.join(sorted(self._kinds))}")
        plain = known.asked(kind, params)
        with self._changed:
            before = self._store.with_key(key) if key else None
            if before is not None:
                if (before.kind, known.as_now(before.params)) != (kind, plain):
                    raise UsageError(
                        f"key {key!r} belongs to another job",
                        f"job {before.id} has it: {before.kind} {json.dumps(before.params)}",
                        "use a key of its own for each job",
                    )
                if before.state not in AGAIN:
                    return before
                job = replace(
                    before, state="queued", progress={}, result=None, error=None, started_at=None,
                    ended_at=None, attempt=before.attempt + 1,
                )  # fmt: skip
            else:
                job = Job(id=uuid4().hex[:12], kind=kind, params=plain, key=key, created_at=self._now())
            if sum(not other.ended for other in self._store.all()) >= QUEUE_LIMIT:
                raise BusyError(
                    "too many jobs are waiting", f"the limit is {QUEUE_LIMIT}", "wait, or cancel some"
                )
            if is_act(kind, plain, asker):
                self._audit.asked(job, asker, self._now())
            try:
                self._put(job)
            except Exception:
                self._note_end(replace(job, state="failed", ended_at=self._now()))
                raise
        self._hand_over(job)
        return job

    def get(self, id: str) -> Job:
        job = self._store.get(id)
        if job is None:
            raise NotFoundError(f"there is no job {id!r}", "", "see `twinlake jobs list`")
        return self._shown(job)

    def list(self, key: str | None = None) -> list[Job]:
        """Newest first; with a key the job that has it, which is not started again."""
        if key is None:
            return [self._shown(job) for job in self._store.all()]
        found = self._store.with_key(key)
        return [self._shown(found)] if found else []

    def wait(self, id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.get(id).ended, seconds)
            return self.get(id)

    def cancel(self, id: str, asker: Asker = NOBODY) -> Job:
        """Ask a job to end at the next place where nothing is half done; an ended one stays as it is."""
        with self._changed:
            job = self.get(id)
            if not job.ended:
                try:
                    self._audit.cancelled(job, asker, self._now())
                except FullDiskError:  # which is a reason to cancel
                    journal.exception("the audit log lacks that a job was cancelled", job=id, by=asker.by)
            if job.state == "queued":
                self._note_end(self._put(replace(job, state="cancelled", ended_at=self._now())))
            run = self._running.get(id)
            if run:
                run.cancelled.set()
        if run:
            self._cancel_tag(run.tag)
        return self.get(id)

    def stop(self, wait_s: float = 20) -> None:
        """Cancel what runs; what cannot end in time is found interrupted at the next start."""
        for workers in (self._workers, self._urgent):
            workers.shutdown(wait=False, cancel_futures=True)
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            running = list(self._running.values())
        for run in running:
            run.cancelled.set()
            self._cancel_tag(run.tag)
        with self._changed:
            self._changed.wait_for(lambda: not self._running, wait_s)

    def alive(self) -> set[str]:
        """Jobs whose staging may still be needed: not ended, or soon to be continued under their key."""
        since = self._clock() - CONTINUED

        def may_be_continued(job: Job) -> bool:
            if job.state != "interrupted" or not job.key or not job.ended_at:
                return False
            return parse_moment(job.ended_at) > since

        return {job.id for job in self._store.all() if not job.ended or may_be_continued(job)}

    def _hand_over(self, job: Job) -> None:
        """To its worker; what comes before `start` waits for it."""
        if not self._started:
            return
        workers = self._urgent if self._is_urgent(job) else self._workers
        workers.submit(self._work, job.id)

    def _work(self, id: str) -> None:
        begun = self._begin(id)
        if begun is None:
            return
        job, run = begun
        about = {name: job.params[name] for name in ("table", "version") if job.params.get(name)}
        with service_log.about({"job": id, "kind": job.kind, **about}):
            journal.info("the job begins", attempt=job.attempt)
            self._listen(job)
            state, result, error = self._outcome(job, run)
            tell = journal.error if state == "failed" else journal.info
            tell("the job ended", state=state, why=error.what if error else None)
        failure = error.to_json() if error else None
        with self._changed:
            self._running.pop(id, None)
            self._began.pop(id, None)
            self._moved.pop(id, None)
            ended = replace(self.get(id), state=state, result=result, error=failure, ended_at=self._now())
            try:
                self._put(ended)
            except Exception as failed:  # a full disk, for instance: whoever waits must hear of the end
                journal.exception("the end of the job was not persisted", job=id)
                ended = replace(ended, state="failed", error=_unpersisted(ended, failed).to_json())
                self._store.show(ended)
                self._changed.notify_all()
            self._note_end(ended)
        self._listen(ended)

    def _begin(self, id: str) -> tuple[Job, Run] | None:
        """The job, running; None where it was cancelled before. It was accepted: it waits for room."""
        failed = False
        with self._changed:
            while (job := self.get(id)).state == "queued" and not self._ending:
                try:
                    job = self._put(replace(job, state="running", started_at=self._now()))
                except Exception as error:
                    self._store.show(replace(job, progress={"message": f"it cannot begin: {error}"}))
                    if not failed:
                        journal.exception(
                            "the job cannot be written down; it begins as soon as it can", job=id
                        )
                    failed = True
                    self._changed.wait(AGAIN_S)
                    continue
                self._began[id] = self._moved[id] = time.monotonic()
                run = self._running[id] = Run(
                    id=id, asker=self._audit.asker(job), moved=lambda: self._move(id),
                    report=lambda progress: self._report(id, progress),
                    waits=lambda what: self._wait(id, what),
                )  # fmt: skip
                return job, run
        return None

    def _outcome(self, job: Job, run: Run) -> tuple[State, dict[str, Any] | None, TwinlakeError | None]:
        """Does the job: how it ended, what it found, what went wrong."""
        try:
            kind = self._kinds[job.kind]
            done = self._do(kind, kind.params.model_validate(job.params), run)
            if isinstance(done, Failed):
                return "failed", _as_json(done.result), done.error
            return "succeeded", _as_json(done), None
        except CancelledError as cancelled:
            return "cancelled", None, cancelled
        except TwinlakeError as known:
            return "failed", None, known
        except BaseException as unknown:  # whoever waits must hear of the end, whatever ended it
            if run.cancelled.is_set():
                return "cancelled", None, CancelledError(job.id)
            journal.exception("the job failed")
            why = f"{type(unknown).__name__}: {first_lines(unknown)}"
            remedy = "see `twinlake logs lake` for the whole error"
            return "failed", None, TwinlakeError(f"{job.kind} failed", why, remedy)

    def _report(self, id: str, progress: Progress) -> None:
        with self._changed:
            if id not in self._began:
                return  # it has ended
            self._move(id)
            eta = None
            if progress.done and progress.total:
                taken = time.monotonic() - self._began[id]
                eta = round(max(0.0, taken * (progress.total - progress.done) / progress.done), 1)
            shown = {name: value for name, value in asdict(progress).items() if name != "span"}
            self._store.show(replace(self.get(id), progress={**shown, "eta_s": eta}))
            self._changed.notify_all()

    def _wait(self, id: str, what: str | None) -> None:
        with self._changed:
            if id not in self._began:
                return
            job = self.get(id)
            progress = {name: value for name, value in job.progress.items() if name != "waiting_for"}
            if what is not None:
                progress["waiting_for"] = what
            self._store.show(replace(job, progress=progress))
            self._changed.notify_all()

    def _move(self, id: str) -> None:
        if id in self._moved:
            self._moved[id] = time.monotonic()

    def _shown(self, job: Job) -> Job:
        if job.state == "queued" and not job.progress and (others := self._in_its_way(job)):
            return replace(job, progress={"waiting_for": f"one of {others} other jobs to end"})
        moved = self._moved.get(job.id)
        idle = 0.0 if moved is None else time.monotonic() - moved
        if job.state != "running" or idle <= self._patience_s:
            return job
        return replace(job, idle_minutes=int(idle / 60))

    def _in_its_way(self, job: Job) -> int:
        """How many jobs have the places of such a job; 0 where one is free."""
        is_urgent = self._is_urgent(job)
        with self._changed:
            running = [self._store.get(id) for id in self._running]
        others = sum(other is not None and self._is_urgent(other) == is_urgent for other in running)
        return others if others >= (URGENT_AT_ONCE if is_urgent else AT_ONCE) else 0

    def _is_urgent(self, job: Job) -> bool:
        kind = self._kinds.get(job.kind)
        return kind is not None and kind.urgent

    def _put(self, job: Job) -> Job:
        """Persist, then tell whoever waits."""
        with self._changed:
            self._store.put(job)
            self._changed.notify_all()
        return job

    def _note_end(self, job: Job) -> None:
        """In the audit log; what cannot be written there now is by the next start."""
        try:
            self._audit.ended(job)
        except Exception:
            journal.exception("the audit log does not have the end of a job yet", job=job.id)

    def _interrupt_running(self) -> None:
        """A job that was running when the server died is interrupted; the audit log hears of all ends."""
        for job in self._store.all():
            if job.state == "running":
                failure = _interrupted(job).to_json()
                self._put(replace(job, state="interrupted", ended_at=self._now(), error=failure))
        for act in self._audit.open():
            known = self._store.get(act.job)
            if known is None or known.attempt != act.attempt:  # a kill came before it was accepted
                known = Job(id=act.job, kind=act.act, params={}, state="interrupted", ended_at=self._now(),
                            attempt=act.attempt)  # fmt: skip
            if known.ended:
                self._note_end(known)

    def _now(self) -> str:
        return format_moment(self._clock())


def _interrupted(job: Job) -> TwinlakeError:
    return TwinlakeError(
        f"job {job.id} was interrupted",
        "the lake server ended while it was running",
        "submit it again (with the same key, if it had one); what it had committed stays committed",
    )


def _unpersisted(job: Job, error: Exception) -> TwinlakeError:
    return TwinlakeError(
        f"the end of job {job.id} could not be written down",
        f"it {job.state}, then {type(error).__name__}: {error}",
        "see that the disk of the lake has room, then submit it again; what it had committed stays committed",
    )


def _as_json(result: Result) -> dict[str, Any]:
    """As JSON, or the error of what JSON cannot hold: here, where it ends the job and not its worker."""
    data = result.to_json()
    json.dumps(data)
    return data

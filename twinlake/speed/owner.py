"""Owner: the one thread that computes a version's steps. Others signal "log at n" or ask, and wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from twinlake.base.errors import StalledVersionError, TwinlakeError, first_lines
from twinlake.base.location import Location
from twinlake.base.waiting import answer
from twinlake.lake.catalog.failing_record import FailingRecord, failing_record, is_of_data
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.delta import delta
from twinlake.lake.delta.damages import Damages
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.log.fresh_rows import NewRows
from twinlake.lake.log.log import Log
from twinlake.lake.storage import store
from twinlake.spark.session import scratch_folder
from twinlake.speed.advance import LONG_RECORDS, Standing, advance, close, cuts, last_standing, standing
from twinlake.speed.mailbox import ClosedMailboxError, Mailbox
from twinlake.speed.pause import Hold

STEPS_PER_SEGMENT = 50
SEGMENT_S = 60.0
"""A segment lasts at least so long: every one costs a close and, soon after, a merge."""
OPEN_WAIT_S = 120.0
RETRY_FIRST_S = 2.0
RETRY_LAST_S = 60.0


@dataclass(kw_only=True)
class _Waiter:
    """Somebody waits for at least a position, or exactly it (the owner stops there until it is pinned)."""

    batch: int
    exact: bool
    future: Future[Pin] = field(default_factory=Future)


@dataclass(frozen=True, kw_only=True)
class Events:
    """Who is called in an owner's thread: with the seconds of a step or a commit, and when a try fails."""

    step: Callable[[Owner, float], None] = lambda owner, seconds: None
    commit: Callable[[float], None] = lambda seconds: None
    failure: Callable[[Owner], None] = lambda owner: None


class Owner:
    """A version that fails is stalled and tried again by itself, ever more rarely; nobody else notices."""

    def __init__(
        self,
        lake: Location,
        version: Version,
        log: Log,
        on_closed: Callable[[Owner], None],
        long_records: int = LONG_RECORDS,
        damages: Damages | None = None,
        paused: Callable[[], Paused | None] = lambda: None,
        events: Events = Events(),
    ) -> None:
        self.version = version
        self.log = log
        self.error: TwinlakeError | None = None
        self.paused = paused
        """Whether somebody has it take no step: asked before each one."""
        self.failures = 0
        """How often a try has failed, ever."""
        self.standing = Standing()
        self.batch_lock = threading.Lock()
        """The batch lock: rebuilds, merges and clean-up of this version, one at a time."""
        self._lake = lake
        self._topic = log.topic.name
        self._journal = structlog.get_logger(__name__).bind(table=version.table, version=version.name)
        self._long_records = long_records
        self._on_closed, self._events = on_closed, events
        self._damages = damages or Damages()
        self._feed: MaintainedVersion | None = None
        self._closed_at = 0.0  # on the monotonic clock
        self._target = 0
        self._planned: list[int] = []
        self._blamed: tuple[tuple[int, int], FailingRecord | None] | None = None
        self._queued = False
        self._waiters: list[_Waiter] = []
        self._lock = threading.Lock()
        self._retry_s = RETRY_FIRST_S
        self._timer: threading.Timer | None = None
        self._mailbox = Mailbox(f"owner {version}", self._prepare)
        self.opened = self._mailbox.ask(self._open)
        """Done once the owner knows where the version stands (or is stalled)."""

    def signal(self, batch: int) -> None:
        """The log is at `batch`; catch up when there is time."""
        with self._lock:
            self._target = max(self._target, batch)
            if self._queued or self.error is not None:
                return
            self._queued = True
        self._ask_quietly(self._catch_up)

    def offer(self, batch: int, rows: NewRows) -> Future[Any] | None:
        """The batch is in memory: an idle owner that is next to it takes it; others read the log later."""
        if self.error is None and self.standing.position == batch - 1 and not self._barred(batch):
            with self._lock:
                self._target = max(self._target, batch)
            with suppress(ClosedMailboxError):  # retired in this moment
                taken = self._mailbox.ask_if_idle(lambda: self._guarded(lambda: self._take(batch, rows)))
                if taken is not None:
                    return taken
        self.signal(batch)
        return None

    def pin(self) -> Future[Pin]:
        """The version as it stands between two steps."""
        return self._mailbox.ask(self._pin)

    def pin_at(self, batch: int, exact: bool = True) -> Future[Pin]:
        """The version at exactly (or at least) this position, once it is there."""
        waiter = _Waiter(batch=batch, exact=exact)
        with self._lock:
            self._waiters.append(waiter)
        if self.error is not None:
            self._try_again()  # somebody waits for it now
        else:
            self.signal(self._target)
        self._ask_quietly(self._serve_waiters)
        return waiter.future

    def has_reached(self, batch: int) -> bool:
        """Whether it is known to be there or beyond, without a question to its thread.

        A version that has never been opened has reached nothing, not even the beginning.
        """
        return self.standing.position >= batch and (batch > 0 or self._feed is not None)

    def hold(self, limit_s: float) -> Hold:
        """Take no step as long as the hold lasts, from when the step under way is done."""
        hold = Hold(limit_s)
        self._mailbox.ask(lambda: hold.stand(self.standing.position)).add_done_callback(hold.refuse)
        return hold

    def read_by(self, log: Log) -> Future[None]:
        """Take the next step from this log of the same topic, whose files may say other things now."""

        def reopen() -> None:
            self.log, self._feed, self._planned = log, None, []
            self._guarded(self._open_now)

        return self._mailbox.ask(reopen)

    def between_steps(self) -> Future[int]:
        """The position at which it is once the step under way is done."""
        return self._mailbox.ask(lambda: self.standing.position)

    def close_segment(self) -> Future[Closed]:
        """Close the open segment and pin what is closed by it."""
        return self._mailbox.ask(self._close_for_batch)

    def feed(self) -> MaintainedVersion:
        """The version ready to be computed, or the error that stalls it."""
        if self._feed is None:
            answer(self._mailbox.ask(lambda: None), f"{self.version} to be opened", OPEN_WAIT_S)
        if self._feed is None:
            raise self.error or StalledVersionError(
                f"{self.version} is not open yet", "", "try again in a moment"
            )
        return self._feed

    def stop(self) -> bool:
        with self._lock:
            if self._timer:
                self._timer.cancel()
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.future.set_running_or_notify_cancel():
                waiter.future.set_exception(ClosedMailboxError(self._mailbox.name))
        return self._mailbox.close()

    # -- below: in the owner's thread only

    def _prepare(self) -> None:
        self.log.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "speed")

    def _open(self) -> None:
        """Read where the version stands, and close the segment that an earlier process left open."""
        self._guarded(self._open_now)

    def _open_now(self) -> None:
        try:
            feed = open_version(self._lake, self.version, {self._topic: self.log})
            assert isinstance(feed, MaintainedVersion)  # versions of view kinds have no owner
            feed.appender.on_commit = self._events.commit
            at = standing(feed)
        except Exception:
            # readers are served what it has: it is shown where that ends, and not at 0
            self.standing = last_standing(self.version.path(self._lake), self._topic)
            raise
        if at.step:
            at = close(feed, at)
        self.standing, self._feed, self._closed_at = at, feed, time.monotonic()

    def _take(self, batch: int, rows: NewRows) -> None:
        if self._feed is None or self.standing.position != batch - 1 or self._barred(batch):
            self.signal(batch)
            return
        self._step(batch, rows)

    def _step(self, to: int, rows: NewRows | None = None) -> None:
        assert self._feed is not None
        began = time.monotonic()
        try:
            self.standing = advance(self._feed, self.standing, to, rows)
        except Exception as error:
            self._blame(error, to)
            raise
        self._retry_s = RETRY_FIRST_S
        self._events.step(self, time.monotonic() - began)
        self._serve_waiters()
        lasted = time.monotonic() - self._closed_at
        if self.standing.steps_open >= STEPS_PER_SEGMENT and lasted >= SEGMENT_S:
            self._close(self._feed)
            self._on_closed(self)

    def _close(self, feed: MaintainedVersion) -> None:
        self.standing, self._closed_at = close(feed, self.standing), time.monotonic()

    def _blame(self, error: Exception, to: int) -> None:
        """Raise what names the record and the expression behind the error of a step, where there are such.

        They are looked for once: for the same batches they are the same.
        """
        at = self.standing.position
        if self._feed is None or not is_of_data(error):
            return
        if self._blamed is None or self._blamed[0] != (at, to):
            try:
                self._blamed = ((at, to), failing_record(self._feed.definition, self._feed.log.rows(at, to)))
            except Exception:
                self._journal.exception("what a step failed on was not found", batch=at)
                return
        if self._blamed[1] is not None:
            raise self._blamed[1].stalls(self.version, at) from error

    def _catch_up(self) -> None:
        with self._lock:
            self._queued = False
        self._guarded(self._catch_up_one)

    def _catch_up_one(self) -> None:
        """One step towards the log's end; then the mailbox has its turn: nobody waits for the whole way."""
        if self._feed is None:
            self._open_now()
            assert self._feed is not None
        at, target = self.standing.position, self._target
        self._serve_waiters()
        barrier = self._barrier()
        limit = target if barrier is None else min(target, barrier)
        if limit <= at:
            return
        if limit - at > 1:
            self._planned = [cut for cut in self._planned if cut > at] or cuts(
                self.log, at, limit, self._long_records
            )
            limit = min(limit, self._planned[0])
        self._step(limit)
        if self.standing.position < self._target:
            self.signal(self._target)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do it; an error stalls this version only, and a later try starts from what Delta says."""
        try:
            work()
        except Exception as error:
            self._stall(error)
            return
        with self._lock:
            was_stalled, self.error = self.error is not None, None
        if was_stalled and self.standing.position < self._target:
            self.signal(self._target)  # one that came while the error stood was not taken

    def _stall(self, error: Exception) -> None:
        try:
            known = self._known(error)
        except Exception:  # whatever happens, a version that stands still says so
            self._journal.exception("the error was not explained")
            known = None
        known = known or (error if isinstance(error, TwinlakeError) else StalledVersionError(
            f"{self.version} does not advance from batch {self.standing.position}",
            first_lines(error),
            "fix what the error names; the version is tried again by itself and catches up",
        ))  # fmt: skip
        self._journal.error("stalled", batch=self.standing.position, exc_info=error)
        with self._lock:
            self.error, self._feed, self._planned = known, None, []
            self.failures += 1
            self._events.failure(self)
            self._timer = threading.Timer(self._retry_s, self._try_again)
            self._timer.daemon = True
            self._timer.start()
        self._retry_s = min(RETRY_LAST_S, self._retry_s * 2)

    def _known(self, error: Exception) -> TwinlakeError | None:
        """What is known of the disks and files behind an error."""
        if damage := damage_in(error, self._lake):
            self._damages.note(damage)
        return store.no_room(self._lake, error, scratch_folder(self.log.spark)) or damage

    def _try_again(self) -> None:
        with self._lock:
            self._queued = True
        self._ask_quietly(self._catch_up)

    def _ask_quietly(self, action: Callable[[], None]) -> None:
        try:
            self._mailbox.ask(action)
        except ClosedMailboxError:
            self._journal.info("a signal came after the end")

    def _barred(self, batch: int) -> bool:
        barrier = self._barrier()
        return barrier is not None and batch > barrier

    def _barrier(self) -> int | None:
        """The nearest position at which somebody wants the owner to stop; it is there already if paused."""
        with self._lock:
            self._waiters = [waiter for waiter in self._waiters if not waiter.future.cancelled()]
            exact = [waiter.batch for waiter in self._waiters if waiter.exact]
        return min([*exact, *([self.standing.position] if self.paused() else [])], default=None)

    def _serve_waiters(self) -> None:
        """Answer everybody whose position is reached; refuse an exact one that has been passed."""
        at = self.standing.position
        with self._lock:
            due = [waiter for waiter in self._waiters if waiter.batch <= at]
            self._waiters = [waiter for waiter in self._waiters if waiter.batch > at]
        for waiter in due:
            if not waiter.future.set_running_or_notify_cancel():
                continue
            if waiter.exact and waiter.batch < at:
                waiter.future.set_exception(PassedError(self.version, waiter.batch, at))
                continue
            try:
                waiter.future.set_result(self._pin())
            except Exception as error:
                waiter.future.set_exception(error)
        if due and at < self._target:
            self.signal(self._target)

    def _pin(self) -> Pin:
        if self._feed is None:
            raise self.error or StalledVersionError(f"{self.version} is stalled")
        at = self.standing
        return Pin(
            version=self.version,
            delta_version=delta.newest_version(self._feed.path),
            position={self._topic: at.position},
            watermarks={self._topic: at.watermark},
            clocks={self._topic: at.clocks},
            step=at.step,
            segment=at.segment,
        )

    def _close_for_batch(self) -> Closed:
        if self._feed is None:
            raise self.error or StalledVersionError(f"{self.version} is stalled")
        if self.standing.steps_open:
            try:
                self._close(self._feed)
            except Exception as error:
                self._stall(error)
                raise
        return Closed(pin=self._pin(), through=self.standing.segment - 1, records=self.standing.records)


class PassedError(TwinlakeError):
    def __init__(self, version: Version, batch: int, at: int) -> None:
        self.at = at
        super().__init__(
            f"{version} is at batch {at}, beyond {batch}",
            "a version never goes back",
            "ask for a later position",
        )

"""Versions: the living versions of the lake, by table and name; the owners of those that store rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import structlog

from jobs.errors import (
    BusyError,
    NotFoundError,
    StalledVersionError,
    TimedOutError,
    TwinlakeError,
)
from jobs.lake.feed import Feed, LogView, Opened, open_version, stores_rows
from jobs.lake.fresh_rows import NewRows
from jobs.lake.log import Log
from jobs.lake.segments import Closed
from jobs.lake.version import Health, Pin, Version, stored_versions
from jobs.run import Run
from jobs.speed.advance import SMALL_RECORDS
from jobs.speed.hold import Held
from jobs.speed.lags import Lags
from jobs.speed.owner import Owner, PassedError
from jobs.waiting import answer, wait_for

T = TypeVar("T")

TAKERS_WAIT_S = 30.0
"""A batch waits so long for the versions that take it from memory; a slower one goes on alone."""
OPEN_WAIT_S = 120.0
ANSWER_WAIT_S = 600.0
"""An owner answers between two steps; a longer silence ends whoever waits for it."""
STILL_S = 1800.0
"""A version on its way to a position may stand so long at one; its longest steps take some minutes."""
FAILURES_BORNE = 3
"""So many failed tries of a version end a wait for its position."""
POLL_S = 0.5

journal = structlog.get_logger(__name__)


class Versions:
    """Implements `lake.open_lake.LivingVersions`, whose docstrings say what the answers promise.

    `merge(feed, open_segment)` is called after a segment was closed, in the lane of its version.
    """

    def __init__(self, lake: Path, logs: Mapping[str, Log], merge: Callable[[Feed, int], object]) -> None:
        self._lake = lake
        self._logs = logs
        self._merge_small = merge
        self.lags = Lags(logs)
        self._owners: dict[tuple[str, str], Owner] = {}
        self._views: dict[tuple[str, str], LogView] = {}
        self._unreadable: dict[tuple[str, str], tuple[Version, TwinlakeError]] = {}
        """Living versions whose definition or topic cannot be read; they are stalled and stop nobody."""
        self._takers: dict[str, list[Future[Any]]] = {}
        self._lock = threading.Lock()
        self._merging = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="merge", initializer=self._prepare
        )

    # -- life

    def load(self) -> None:
        """Open every living version; each closes its open segment and catches up by itself.

        Returns when each knows where it stands, so that nobody is shown a position that goes back.
        """
        for version in stored_versions(self._lake):
            if version.state == "living":
                try:
                    self._open(version)
                except TwinlakeError as error:
                    with self._lock:
                        self._unreadable[_key(version)] = (version, error)
                    said = journal.bind(table=version.table, version=version.name)
                    said.error("the version cannot be opened", why=str(error))
        wait([owner.opened for owner in self._all_owners()], timeout=OPEN_WAIT_S)

    def start(self, version: Version) -> None:
        with self._lock:
            known = any(_key(version) in held for held in (self._owners, self._views, self._unreadable))
        if not known:
            version.save(self._lake)
            self._open(version)

    def stop(self) -> None:
        self._merging.shutdown(wait=False, cancel_futures=True)
        with ThreadPoolExecutor(max_workers=8) as stopping:
            list(stopping.map(Owner.stop, self._all_owners()))
        self._merging.shutdown(wait=True)

    def offer(self, topic: str, metadata: Mapping[str, Any], rows: NewRows | None) -> None:
        """Tell every version of the topic that the log has a new batch; return when its takers have finished.

        A large batch is a backlog's: its takers may go on beside the next one, which waits for them here.
        """
        self.lags.heard(topic, metadata)
        batch = self.lags.end(topic).batch
        wait(self._takers.pop(topic, []), timeout=TAKERS_WAIT_S)
        taken = []
        for owner in self._all_owners():
            if topic in owner.version.topics:
                if rows is None:
                    owner.signal(batch)
                elif (future := owner.offer(batch, rows)) is not None:
                    taken.append(future)
        if metadata.get("records", 0) > SMALL_RECORDS:
            self._takers[topic] = taken
        else:
            wait(taken, timeout=TAKERS_WAIT_S)

    # -- what LivingVersions promises

    def living(self) -> list[Version]:
        with self._lock:
            found = [owner.version for owner in self._owners.values()]
            found += [view.version for view in self._views.values()]
            found += [version for version, _ in self._unreadable.values()]
        return sorted(found, key=lambda version: (version.table, version.build, version.name))

    def get(self, table: str, name: str) -> Version:
        known = [version for version in self.living() if version.table == table]
        for version in known:
            if version.name == name:
                return version
        names = ", ".join(version.name for version in known) or "none"
        raise NotFoundError(
            f"table {table} has no living version {name}", f"living: {names}", "see `twinlake status`"
        )

    def newest(self, table: str) -> Version | None:
        return max((v for v in self.living() if v.table == table), key=lambda v: v.build, default=None)

    def retire(self, version: Version, at: str) -> None:
        self.get(version.table, version.name)
        with self._lock:
            owner = self._owners.get(_key(version))
        with self.lane(version) if owner else nullcontext():
            version.retired(at).save(self._lake)
            with self._lock:
                for held in (self._views, self._unreadable, self._owners):
                    held.pop(_key(version), None)  # type: ignore[attr-defined]
            if owner:
                owner.stop()

    def opened(self, version: Version) -> Opened:
        view = self._view(version)
        return view if view else self.owner(version).feed()

    def position(self, version: Version) -> dict[str, int]:
        if self._view(version):
            return {topic: self.lags.end(topic).batch for topic in version.topics}
        (topic,) = version.topics
        return {topic: self.owner(version).standing.position}

    def pin(self, version: Version, run: Run | None = None) -> Pin:
        if self._view(version):
            return self._pin_view(version, self.position(version))
        return self._answer(version, self.owner(version).pin(), run)

    def pin_together(self, versions: Sequence[Version], run: Run, tries: int = 5) -> list[Pin]:
        while True:
            tries -= 1
            ends = {topic: self.lags.end(topic).batch for version in versions for topic in version.topics}
            for version in versions:
                for topic, batch in self.position(version).items():
                    ends[topic] = max(ends[topic], batch)
            owners = {_key(one): self.owner(one) for one in versions if not self._view(one)}
            waiting = {key: owner.pin_at(ends[owner.version.topics[0]]) for key, owner in owners.items()}
            try:
                return [
                    self._await(owners[_key(one)], waiting[_key(one)], run)
                    if _key(one) in owners
                    else self._pin_view(one, {topic: ends[topic] for topic in one.topics})
                    for one in versions
                ]
            except PassedError:
                if tries <= 0:
                    raise
            finally:
                for future in waiting.values():
                    future.cancel()

    def advance_to(self, version: Version, position: Mapping[str, int], run: Run) -> Pin:
        if self._view(version):
            return self.pin(version)
        (topic,) = version.topics
        owner = self.owner(version)
        return self._await(owner, owner.pin_at(position.get(topic, 0), exact=False), run)

    @contextmanager
    def hold(self, versions: Iterable[Version], limit_s: float, run: Run) -> Iterator[Held]:
        versions, holds = list(versions), []
        try:
            for version in versions:
                if not self._view(version):
                    holds.append((version, self.owner(version).hold(limit_s)))
            for version, hold in holds:
                self._answer(version, hold.at, run)
            yield Held([self.position(version) for version in versions], [hold for _, hold in holds])
        finally:
            for _, hold in holds:
                hold.give_back()

    @contextmanager
    def lane(self, version: Version, wait_s: float = 0, run: Run | None = None) -> Iterator[None]:
        lane = self.owner(version).lane

        def take() -> bool | None:
            if run:
                run.say("waiting for the batch lane")
                run.check_cancelled()
            return lane.acquire(timeout=min(POLL_S, max(wait_s, 0.01))) or None

        try:
            wait_for(f"the batch lane of {version}", take, wait_s, run, every_s=0)
        except TimedOutError as error:
            raise BusyError(
                f"the batch lane of {version} is busy",
                "a rebuild, a merge or the clean-up of the same version is running",
                "wait for it (`twinlake jobs list`) and start again",
            ) from error
        try:
            yield
        finally:
            lane.release()

    def close_segment(self, version: Version, run: Run | None = None) -> Closed:
        return self._answer(version, self.owner(version).close_segment(), run)

    def open_segment(self, version: Version) -> int:
        return self.owner(version).standing.segment

    def health(self) -> list[Health]:
        found = []
        for version in self.living():
            with suppress(NotFoundError):  # retired in this moment
                found.append(self._health(version))
        return found

    # -- below: how

    def owner(self, version: Version) -> Owner:
        """The owner of a stored version; NotFoundError where it is not living."""
        with self._lock:
            owner = self._owners.get(_key(version))
            unreadable = self._unreadable.get(_key(version))
        if unreadable:
            raise unreadable[1]
        if owner is None:
            self.get(version.table, version.name)
            raise NotFoundError(f"{version} stores no rows", "its kind is a view", "")
        return owner

    def _open(self, version: Version) -> None:
        if missing := [topic for topic in version.topics if topic not in self._logs]:
            raise NotFoundError(
                f"{version} reads topic {missing[0]}, which is not open",
                "its contract or schema is gone or wrong", "see `twinlake check`, then start again",
            )  # fmt: skip
        if not stores_rows(version):
            view = open_version(self._lake, version, self._logs)
            assert isinstance(view, LogView)
            with self._lock:
                self._views[_key(version)] = view
            return
        (topic,) = version.topics
        owner = Owner(self._lake, version, self._logs[topic], self._segment_closed)
        with self._lock:
            self._owners[_key(version)] = owner
        owner.signal(self.lags.end(topic).batch)

    def _prepare(self) -> None:
        """Large merges, which Spark's scheduler does, yield to the stream."""
        for log in self._logs.values():
            log.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "batch")

    def _segment_closed(self, owner: Owner) -> None:
        self._merging.submit(self._merge, owner)

    def _merge(self, owner: Owner) -> None:
        """Merge small closed segments; whoever holds the lane now leaves fewer of them behind anyway."""
        version, said = owner.version, journal.bind(table=owner.version.table, version=owner.version.name)
        try:
            with self.lane(version):
                self._merge_small(owner.feed(), owner.standing.segment)
        except BusyError:
            said.info("no merge: the lane is busy")
        except Exception:
            said.exception("the segments were not merged")

    def _await(self, owner: Owner, future: Future[T], run: Run) -> T:
        """Wait, show how far it is, and give up when the version fails again and again meanwhile."""
        first, failures = owner.standing.records, owner.failures
        moved_at, position = time.monotonic(), owner.standing.position
        total = max(1, self.lags.end(owner.version.topics[0]).records - first)

        def reached() -> Future[T] | None:
            nonlocal moved_at, position
            wait([future], timeout=POLL_S)
            if future.done():
                return future
            if position != owner.standing.position:
                moved_at, position = time.monotonic(), owner.standing.position
            if time.monotonic() - moved_at > STILL_S:
                raise TimedOutError(
                    f"{owner.version} has stood at batch {position} for {STILL_S:g} s",
                    "its step takes longer, somebody holds it, or its log does not reach the position",
                    "see `twinlake status` and `twinlake logs lake`, then start again",
                )
            run.progress(owner.standing.records - first, total, "records", f"advancing {owner.version}")
            if owner.failures - failures < FAILURES_BORNE:
                return None
            raise StalledVersionError(
                f"{owner.version} does not advance from batch {owner.standing.position}",
                str(owner.error),
                "mend what the error names, then start again",
            )

        try:
            return wait_for(f"a position of {owner.version}", reached, None, run, every_s=0).result()
        finally:
            future.cancel()

    def _answer(self, version: Version, asked: Future[T], run: Run | None) -> T:
        at = self.owner(version).standing.position
        return answer(asked, f"{version}, which is busy after batch {at}", ANSWER_WAIT_S, run)

    def _pin_view(self, version: Version, position: dict[str, int]) -> Pin:
        watermarks = {topic: self.lags.end(topic).watermark for topic in version.topics}
        return Pin(version=version, position=position, watermarks=watermarks)

    def _health(self, version: Version) -> Health:
        if self._view(version):
            return Health(table=version.table, version=version.name, position=self.position(version))
        if unreadable := self._unreadable.get(_key(version)):
            return Health(
                table=version.table, version=version.name, position={}, stalled=True,
                error=unreadable[1].to_json(),
            )  # fmt: skip
        owner, (topic,) = self.owner(version), version.topics
        at, end = owner.standing, self.lags.end(topic)
        behind = at.position < end.batch
        return Health(
            table=version.table,
            version=version.name,
            position={topic: at.position},
            lag_records=max(0, end.records - at.records) if behind else 0,
            lag_seconds=round(self.lags.waiting_s(topic, at.position), 3) if behind else 0.0,
            step=at.step,
            segment=at.segment,
            stalled=owner.error is not None,
            error=owner.error.to_json() if owner.error else None,
            watermark=at.watermark,
        )

    def _all_owners(self) -> list[Owner]:
        with self._lock:
            return list(self._owners.values())

    def _view(self, version: Version) -> LogView | None:
        with self._lock:
            return self._views.get(_key(version))


def _key(version: Version) -> tuple[str, str]:
    return version.table, version.name

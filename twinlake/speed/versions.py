"""Versions: the living versions of the lake, by table and name; the owners of those that store rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from twinlake.base.errors import BusyError, NotFoundError, TimedOutError, TwinlakeError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.base.waiting import answer, wait_for
from twinlake.lake.catalog.maintained_version import MaintainedVersion, Opened, open_version, stores_rows
from twinlake.lake.catalog.paused import Pauses
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Health, Pin, Version, read_versions
from twinlake.lake.delta.damages import Damages
from twinlake.lake.log.fresh_rows import NewRows
from twinlake.lake.log.log import Log
from twinlake.speed import health
from twinlake.speed.advance import SMALL_RECORDS
from twinlake.speed.lags import End, Lags
from twinlake.speed.merging import Merging
from twinlake.speed.owner import Events, Owner, PassedError
from twinlake.speed.pause import Held
from twinlake.speed.wait_progress import POLL_S, awaited

T = TypeVar("T")

TAKERS_WAIT_S = 30.0
"""A batch waits so long for the versions that take it from memory; a slower one goes on alone."""
OPEN_WAIT_S = 120.0
NONE_BROKEN: Mapping[str, TwinlakeError] = {}
ANSWER_WAIT_S = 600.0
"""An owner answers between two steps; a longer silence ends whoever waits for it."""

journal = structlog.get_logger(__name__)


class Versions:
    """Implements `lake.open_lake.LivingVersions`, whose docstrings say what the answers promise.

    `broken` says why a topic is not among the logs.
    `merge(feed, open_segment)` is called after a segment was closed, under the lock of its version.
    """

    def __init__(
        self,
        lake: Location,
        logs: Mapping[str, Log],
        merge: Callable[[MaintainedVersion, int], object],
        damages: Damages | None = None,
        broken: Mapping[str, TwinlakeError] = NONE_BROKEN,
        pauses: Pauses | None = None,
        events: Events = Events(),
    ) -> None:
        self._lake, self._events = lake, events
        self._logs = logs
        self.damages = damages or Damages()
        self._pauses = pauses or Pauses(lake)
        self._broken = broken
        self.lags = Lags(logs)
        self._owners: dict[tuple[str, str], Owner] = {}
        self._views: dict[tuple[str, str], Version] = {}
        """They hold nothing open: what they read is asked for when they are."""
        self._unreadable: dict[tuple[str, str], tuple[Version, TwinlakeError]] = {}
        """Living versions whose definition or topic cannot be read; they are stalled and stop nobody."""
        self._takers: dict[str, list[Future[Any]]] = {}
        self._lock = threading.Lock()
        self._merging = Merging(lake, merge, self.batch_lock, self.damages, self._prepare)

    # -- life

    def load(self) -> None:
        """Open every living version; each closes its open segment and catches up by itself.

        Returns when each knows where it stands, so that nobody is shown a position that goes back.
        """
        found, torn = read_versions(self._lake)
        for error in torn:
            self.damages.note(error)
        for version in found:
            if version.state == "living":
                self._open_or_tell(version)
        wait([owner.opened for owner in self._all_owners()], timeout=OPEN_WAIT_S)

    def start(self, version: Version) -> None:
        with self._lock:
            known = any(_key(version) in held for held in (self._owners, self._views, self._unreadable))
        if not known:
            version.save(self._lake)
            self._open(version)

    def stop(self) -> None:
        self._merging.refuse_more()
        with ThreadPoolExecutor(max_workers=8) as stopping:
            list(stopping.map(Owner.stop, self._all_owners()))
        self._merging.end()

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
            found += self._views.values()
            found += [version for version, _ in self._unreadable.values()]
        return sorted(found, key=lambda version: (version.table, version.build, version.name))

    def get(self, table: str, name: str) -> Version:
        known = [version for version in self.living() if version.table == table]
        for version in known:
            if version.name == name:
                return version
        for damage in self.damages.all():
            if (damage.facts.get("table"), damage.facts.get("version")) == (table, name):
                raise damage  # its file is torn
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
        with self.batch_lock(version) if owner else nullcontext():
            version.retired(at).save(self._lake)
            with self._lock:
                for held in (self._views, self._unreadable, self._owners):
                    held.pop(_key(version), None)  # type: ignore[attr-defined]
            if owner:
                owner.stop()

    def opened(self, version: Version) -> Opened:
        if not self._is_view(version):
            return self.owner(version).feed()
        reads = {table: self.opened(read) for table, read in self._reads(version).items()}
        return open_version(self._lake, version, self._logs, reads)

    def position(self, version: Version) -> dict[str, int]:
        if not self._is_view(version):
            (topic,) = version.topics
            at = self.owner(version).standing.position
            return {topic: min(at, self.lags.end(topic).batch)}
        found = {topic: self.lags.end(topic).batch for topic in version.topics}
        for read in self._reads(version).values():  # no further than any of what it reads
            for topic, batch in self.position(read).items():
                found[topic] = min(found[topic], batch)
        return found

    def pin(self, version: Version, run: Run | None = None) -> Pin:
        if not self._is_view(version):
            return self._answer(version, self.owner(version).pin(), run)
        if version.reads:  # stored versions, each at another step: they meet at one position
            return self.pin_together([version], run or Run(id="pin"))[0]
        return self._pin_view(version, self._ends([version]), {})

    def pin_together(self, versions: Sequence[Version], run: Run, tries: int = 5) -> list[Pin]:
        while True:
            tries -= 1
            ends, owners = self._ends(versions), [self.owner(one) for one in self._stored(versions)]
            for owner in owners:
                (topic,) = owner.version.topics
                ends[topic] = replace(ends[topic], batch=max(ends[topic].batch, owner.standing.position))
            waiting = {owner: owner.pin_at(ends[owner.version.topics[0]].batch) for owner in owners}
            try:
                pins = {
                    _key(owner.version): self._await(owner, asked, run) for owner, asked in waiting.items()
                }
                return [self._pin_view(one, ends, pins) for one in versions]
            except PassedError:
                if tries <= 0:
                    raise
            finally:
                for future in waiting.values():
                    future.cancel()

    def advance_to(self, version: Version, position: Mapping[str, int], run: Run) -> dict[str, int]:
        for one in self._stored([version]):
            owner, batch = self.owner(one), position.get(one.topics[0], 0)
            if not owner.has_reached(batch):  # who is held answers nobody, not even that it is there
                self._await(owner, owner.pin_at(batch, exact=False), run)
        return self.position(version)

    @contextmanager
    def hold(self, versions: Iterable[Version], limit_s: float, run: Run) -> Iterator[Held]:
        versions, holds = list(versions), []
        try:
            for version in self._stored(versions):
                holds.append((version, self.owner(version).hold(limit_s)))
            for version, hold in holds:
                self._answer(version, hold.at, run)
            yield Held([self.position(version) for version in versions], [hold for _, hold in holds])
        finally:
            for _, hold in holds:
                hold.give_back()

    @contextmanager
    def batch_lock(self, version: Version, wait_s: float = 0, run: Run | None = None) -> Iterator[None]:
        lock = self.owner(version).batch_lock

        def take() -> bool | None:
            if run:
                run.say("waiting for the batch lock")
                run.check_cancelled()
            return lock.acquire(timeout=min(POLL_S, max(wait_s, 0.01))) or None

        try:
            wait_for(f"the batch lock of {version}", take, wait_s, run, every_s=0)
        except TimedOutError as error:
            raise BusyError(
                f"the batch lock of {version} is taken",
                "a rebuild, a merge or the clean-up of the same version is running",
                "wait for it (`twinlake jobs list`) and start again",
            ) from error
        try:
            yield
        finally:
            lock.release()

    def close_segment(self, version: Version, run: Run | None = None) -> Closed:
        return self._answer(version, self.owner(version).close_segment(), run)

    def open_segment(self, version: Version) -> int:
        return self.owner(version).standing.segment

    def stand_still(self, version: Version, run: Run | None = None) -> dict[str, int]:
        owner = self.owner(version)
        return {owner.log.topic.name: self._answer(version, owner.between_steps(), run)}

    def read_by(self, log: Log) -> None:
        """The log of its topic is this one: what reads it is opened over it, and what lacked it, too."""
        self.lags.heard(log.topic.name, log.metadata())
        owners = [owner for owner in self._all_owners() if log.topic.name == owner.log.topic.name]
        with self._lock:
            lacking, self._unreadable = self._unreadable, {}
        for version, _ in lacking.values():
            self._open_or_tell(version)
        wait([owner.read_by(log) for owner in owners], timeout=OPEN_WAIT_S)

    def go_on(self, table: str) -> None:
        for owner in self._all_owners():
            if owner.version.table == table:
                owner.signal(self.lags.end(owner.log.topic.name).batch)

    def usable(self) -> list[Version]:
        lost = {(one.table, one.version) for one in self.health() if one.lost}
        return [version for version in self.living() if _key(version) not in lost]

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

    def _open_or_tell(self, version: Version) -> None:
        try:
            self._open(version)
        except TwinlakeError as error:
            with self._lock:
                self._unreadable[_key(version)] = (version, error)
            said = journal.bind(table=version.table, version=version.name)
            said.error("the version cannot be opened", why=str(error))

    def _open(self, version: Version) -> None:
        if missing := [topic for topic in version.topics if topic not in self._logs]:
            why, remedy = "its contract or schema is gone or wrong", "`twinlake check`; `twinlake reload`"
            if cause := self._broken.get(missing[0]):
                why, remedy = cause.what, cause.remedy or remedy
            raise NotFoundError(f"{version} reads topic {missing[0]}, which is not open", why, remedy)
        if not stores_rows(version):
            with self._lock:
                self._views[_key(version)] = version
            return
        (topic,) = version.topics
        owner = Owner(
            self._lake, version, self._logs[topic], self._merging.after_close, damages=self.damages,
            paused=lambda: self._pauses.of_version(version), events=self._events,
        )  # fmt: skip
        with self._lock:
            self._owners[_key(version)] = owner
        owner.signal(self.lags.end(topic).batch)

    def _prepare(self) -> None:
        """Large merges, which Spark's scheduler does, yield to the stream."""
        for log in list(self._logs.values()):
            log.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "batch")

    def _await(self, owner: Owner, future: Future[T], run: Run) -> T:
        return awaited(owner, future, self.lags.end(owner.version.topics[0]).records, run)

    def _answer(self, version: Version, asked: Future[T], run: Run | None) -> T:
        at = self.owner(version).standing.position
        return answer(asked, f"{version}, which is busy after batch {at}", ANSWER_WAIT_S, run)

    def _ends(self, versions: Iterable[Version]) -> dict[str, End]:
        """Where the logs of these versions end, looked up once: what is compared is of one moment."""
        return {topic: self.lags.end(topic) for version in versions for topic in version.topics}

    def _pin_view(
        self, version: Version, ends: Mapping[str, End], stored: Mapping[tuple[str, str], Pin]
    ) -> Pin:
        """The pin of any version there, where `stored` are those of the stored ones upstream."""
        if _key(version) in stored:
            return stored[_key(version)]
        position = {topic: ends[topic].batch for topic in version.topics}
        watermarks = {topic: ends[topic].watermark for topic in version.topics}
        clocks = {topic: ends[topic].clocks for topic in version.topics}
        reads = {  # all see the same watermarks, so that what they show of time is no difference
            table: replace(
                self._pin_view(read, ends, stored),
                watermarks={topic: watermarks[topic] for topic in read.topics},
                clocks={topic: clocks[topic] for topic in read.topics},
            )
            for table, read in self._reads(version).items()
        }
        return Pin(version=version, position=position, watermarks=watermarks, clocks=clocks, reads=reads)

    def _health(self, version: Version) -> Health:
        rows = version.path(self._lake)
        if unreadable := self._unreadable.get(_key(version)):
            return health.of_unreadable(version, unreadable[1], rows)
        if not self._is_view(version):
            return health.of_stored(self.owner(version), self.lags, rows, self.damages.below(rows))
        try:
            read = [self._health(one) for one in self._stored([version])]
            return health.of_view(version, self.position(version), read)
        except TwinlakeError as error:
            return health.of_unreadable(version, error, rows)

    def _all_owners(self) -> list[Owner]:
        with self._lock:
            return list(self._owners.values())

    def _is_view(self, version: Version) -> bool:
        with self._lock:
            return _key(version) in self._views

    def _reads(self, version: Version) -> dict[str, Version]:
        """By table, the living versions that it reads; NotFoundError where one is not."""
        return {table: self.get(table, name) for table, name in version.reads.items()}

    def _stored(self, versions: Iterable[Version]) -> list[Version]:
        """The stored ones of these versions and of all that they read, each once."""
        found: dict[tuple[str, str], Version] = {}
        for version in versions:
            if self._is_view(version):
                found |= {_key(one): one for one in self._stored(self._reads(version).values())}
            else:
                found[_key(version)] = version
        return list(found.values())


def _key(version: Version) -> tuple[str, str]:
    return version.table, version.name

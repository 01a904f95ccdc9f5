"""Versions: the living versions of the lake and their owners, by table and name."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jobs.batch.maintain import merge_small
from jobs.errors import BusyError, NotFoundError, StalledVersionError
from jobs.lake.log import Log
from jobs.lake.version import Health, Pin, Version, stored_versions
from jobs.run import Run
from jobs.speed.advance import COUNTED, SMALL_RECORDS, Feed
from jobs.speed.owner import Owner, PassedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)
T = TypeVar("T")

TAKERS_WAIT_S = 30.0
"""A batch waits so long for the versions that take it from memory; a slower one goes on alone."""
OPEN_WAIT_S = 120.0
FAILURES_BORNE = 3
"""So many failed tries of a version end a wait for its position."""
POLL_S = 0.5


class Feeds:
    """How far each topic's log is, as the server last heard, for lags without a look at the disk."""

    def __init__(self, logs: Mapping[str, Log]) -> None:
        self._lock = threading.Lock()
        self._end: dict[str, int] = {}
        self._records: dict[str, int] = {}
        self._seen: dict[str, deque[tuple[int, float]]] = {}
        for name, log in logs.items():
            self.heard(name, log.metadata())

    def heard(self, topic: str, metadata: Mapping[str, Any]) -> None:
        with self._lock:
            self._end[topic] = int(metadata.get("batch", 0))
            self._records[topic] = sum(metadata.get("counts", {}).get(verdict, 0) for verdict in COUNTED)
            self._seen.setdefault(topic, deque(maxlen=10_000)).append((self._end[topic], time.monotonic()))

    def end(self, topic: str) -> int:
        return self._end.get(topic, 0)

    def records(self, topic: str) -> int:
        return self._records.get(topic, 0)

    def waiting_s(self, topic: str, position: int) -> float:
        """How long the first batch after the position has been in the log, as far back as this process
        saw."""
        with self._lock:
            seen = list(self._seen.get(topic, ()))
        heard = next((at for batch, at in seen if batch > position), None)
        return 0.0 if heard is None else time.monotonic() - heard


class Versions:
    def __init__(self, lake: Path, logs: Mapping[str, Log]) -> None:
        self._lake = lake
        self._logs = logs
        self.feeds = Feeds(logs)
        self._owners: dict[tuple[str, str], Owner] = {}
        self._takers: dict[str, list[Future[Any]]] = {}
        self._lock = threading.Lock()
        self._merging = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="merge", initializer=self._prepare
        )

    def load(self) -> None:
        """Open every living version; each closes its open segment and catches up by itself.

        Returns when each knows where it stands, so that nobody is shown a position that goes back.
        """
        for version in stored_versions(self._lake):
            if version.state == "living" and version.topic in self._logs:
                self._own(version)
        wait([owner.opened for owner in self._all()], timeout=OPEN_WAIT_S)

    def start(self, version: Version) -> None:
        """Make a version living: its JSON first, then its table and its feed. Starting it twice changes
        nothing."""
        if (version.table, version.name) not in self._owners:
            version.save(self._lake)
            self._own(version)

    def retire(self, version: Version) -> None:
        """Feed it no more. Its files stay."""
        owner = self._owner(version)
        version.retired().save(self._lake)
        with self._lock:
            del self._owners[(version.table, version.name)]
        owner.stop()

    def living(self) -> list[Version]:
        return [owner.version for owner in self._all()]

    def get(self, table: str, name: str) -> Version:
        return self._find(table, name).version

    def newest(self, table: str) -> Version | None:
        """The living version of the table that was built last."""
        return max((v for v in self.living() if v.table == table), key=lambda v: v.build, default=None)

    def feed(self, version: Version) -> Feed:
        return self._owner(version).feed()

    def owner(self, version: Version) -> Owner:
        return self._owner(version)

    def offer(self, topic: str, metadata: Mapping[str, Any], rows: DataFrame | None) -> None:
        """Tell every version of the topic that the log has a new batch; return when its takers have finished.

        A large batch is a backlog's: its takers may go on beside the next one, which waits for them here.
        """
        self.feeds.heard(topic, metadata)
        batch = self.feeds.end(topic)
        wait(self._takers.pop(topic, []), timeout=TAKERS_WAIT_S)
        taken = []
        for owner in self._all():
            if owner.version.topic == topic:
                if rows is None:
                    owner.signal(batch)
                elif (future := owner.offer(batch, rows)) is not None:
                    taken.append(future)
        if metadata.get("records", 0) > SMALL_RECORDS:
            self._takers[topic] = taken
        else:
            wait(taken, timeout=TAKERS_WAIT_S)

    def advance_to(self, version: Version, batch: int, run: Run | None = None) -> Pin:
        """Wait until the version is at the position or beyond."""
        return self._await(self._owner(version), self._owner(version).pin_at(batch, exact=False), batch, run)

    def pin(self, version: Version) -> Pin:
        """The version between two of its steps: what everybody may read as one state."""
        return self._owner(version).pin().result(600)

    def pin_together(self, versions: Sequence[Version], run: Run | None = None, tries: int = 5) -> list[Pin]:
        """All versions (of one topic) at exactly the same position: the log's end, or a later one."""
        topic = versions[0].topic
        while True:
            tries -= 1
            batch = max(
                self.feeds.end(topic), *(self._owner(version).standing.position for version in versions)
            )
            waiting = [(self._owner(version), self._owner(version).pin_at(batch)) for version in versions]
            try:
                return [self._await(owner, future, batch, run) for owner, future in waiting]
            except PassedError:
                if tries <= 0:
                    raise
            finally:
                for _, future in waiting:
                    future.cancel()

    @contextmanager
    def lane(self, version: Version, wait_s: float = 0, run: Run | None = None) -> Iterator[None]:
        """Hold the version's batch lane; BusyError when somebody else holds it all the time."""
        lane = self._owner(version).lane
        until = time.monotonic() + wait_s
        while not lane.acquire(timeout=max(0.01, min(POLL_S, until - time.monotonic()))):
            if run:
                run.check_cancelled()
                run.progress(0, 0, "", "waiting for the batch lane")
            if time.monotonic() >= until:
                raise BusyError(
                    f"the batch lane of {version.table} {version.name} is busy",
                    "a rebuild, a merge or the clean-up of the same version is running",
                    "wait for it (`twinlake jobs list`) and start again",
                )
        try:
            yield
        finally:
            lane.release()

    def health(self) -> list[Health]:
        """What is known of every living version, from memory."""
        return [self._health(owner) for owner in self._all()]

    def stop(self) -> None:
        self._merging.shutdown(wait=False, cancel_futures=True)
        with ThreadPoolExecutor(max_workers=8) as stopping:
            list(stopping.map(Owner.stop, self._all()))
        self._merging.shutdown(wait=True)

    def _own(self, version: Version) -> None:
        log = self._logs.get(version.topic)
        if log is None:
            raise NotFoundError(
                f"{version.table} {version.name} reads topic {version.topic}, which this lake has not",
                "its contract or schema is gone", "put the files of the topic back",
            )  # fmt: skip
        owner = Owner(self._lake, version, log, self._segment_closed)
        with self._lock:
            self._owners[(version.table, version.name)] = owner
        owner.signal(self.feeds.end(version.topic))

    def _prepare(self) -> None:
        """Merges yield to the stream."""
        for log in self._logs.values():
            log.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "batch")

    def _segment_closed(self, owner: Owner) -> None:
        self._merging.submit(self._merge, owner)

    def _merge(self, owner: Owner) -> None:
        """Merge small closed segments; whoever holds the lane now leaves fewer of them behind anyway."""
        version = owner.version
        try:
            with self.lane(version):
                merge_small(owner.feed(), owner.standing.segment)
        except BusyError:
            logger.info("no merge of %s %s: its lane is busy", version.table, version.name)
        except Exception:
            logger.exception("the segments of %s %s were not merged", version.table, version.name)

    def _await(self, owner: Owner, future: Future[T], batch: int, run: Run | None) -> T:
        """Wait, show how far it is, and give up when the version fails again and again meanwhile."""
        started_at, first, failures = time.monotonic(), owner.standing.records, owner.failures
        total = max(1, self.feeds.records(owner.version.topic) - first)
        while True:
            done, _ = wait([future], timeout=POLL_S)
            if done:
                return future.result()
            if run:
                if run.cancelled.is_set():
                    future.cancel()
                    run.check_cancelled()
                run.progress(
                    owner.standing.records - first,
                    total,
                    "records",
                    f"{owner.version.table} to batch {batch}",
                )
            if owner.failures - failures >= FAILURES_BORNE:
                future.cancel()
                raise StalledVersionError(
                    f"{owner.version.table} {owner.version.name} does not come to batch {batch}",
                    str(owner.error),
                    "mend what the error names, then start again",
                )
            if run is None and time.monotonic() - started_at > 600:
                future.cancel()
                raise BusyError(
                    f"{owner.version.table} {owner.version.name} is far from batch {batch}", "", "wait"
                )

    def _health(self, owner: Owner) -> Health:
        at, topic = owner.standing, owner.version.topic
        behind = at.position < self.feeds.end(topic)
        return Health(
            table=owner.version.table,
            version=owner.version.name,
            topic=topic,
            position=at.position,
            lag_records=max(0, self.feeds.records(topic) - at.records) if behind else 0,
            lag_seconds=round(self.feeds.waiting_s(topic, at.position), 3) if behind else 0.0,
            step=at.step,
            segment=at.segment,
            stalled=owner.error is not None,
            error=owner.error.to_json() if owner.error else None,
            watermark=at.watermark,
        )

    def _all(self) -> list[Owner]:
        with self._lock:
            return list(self._owners.values())

    def _owner(self, version: Version) -> Owner:
        return self._find(version.table, version.name)

    def _find(self, table: str, name: str) -> Owner:
        with self._lock:
            owner = self._owners.get((table, name))
        if owner is None:
            known = ", ".join(sorted(v for t, v in self._owners if t == table)) or "none"
            raise NotFoundError(
                f"table {table} has no living version {name}", f"living: {known}", "see `twinlake status`"
            )
        return owner

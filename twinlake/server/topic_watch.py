"""TopicWatch: what is wrong around a topic and stops no batch: its configuration, clocks that have jumped.

The topic is read on: what has come is right. `twinlake status` says what is wrong for as long as it is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import structlog

from twinlake.base.errors import TwinlakeError
from twinlake.base.times import EPOCH, Clock, format_duration, format_moment, from_micros
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.grid import micros
from twinlake.lake.log.log_clock import CLOCKS_APART
from twinlake.topics.kafka import LOG_APPEND_TIME, POLICY, RETENTION, TIMESTAMPS

SETTINGS_S = 60.0
NEAR = 0.75
"""An unread record that is older than this share of its topic's retention is warned of."""
LATE_COMMIT = timedelta(minutes=20)
"""A record may be appended so long before it can be read: the longest transaction that brokers allow by
default takes 15 minutes."""
_CLOCKS = (
    "set the clock that is wrong right (NTP; `timedatectl` shows this machine's). What was read while it was "
    "wrong keeps its times; verdicts go by Kafka's"
)
MOST_UNREAD = 1_000
journal = structlog.get_logger(__name__)


class TopicWatch:
    """Its `look` is called every second, by one thread; `warnings` may be read from any."""

    def __init__(self, topic: str, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.warnings: tuple[TwinlakeError, ...] = ()
        self.behind: TwinlakeError | None = None
        """Of Kafka's clock, behind this machine's, until a record says otherwise."""
        self._topic = topic
        self._clock, self._monotonic = clock, monotonic
        self._settings: tuple[TwinlakeError, ...] = ()
        self._asked_at: float | None = None
        self._before: tuple[datetime, Mapping[int, int]] | None = None
        self.lag_s: float | None = None
        """How long the oldest record that the log lacks has been seen at the broker; None before a look."""
        self._unread: deque[tuple[float, Mapping[int, int]]] = deque()
        """When the broker was seen to have how much, from the first look on that the log has not reached."""

    def look(
        self,
        end: LogEnd,
        ends: Mapping[int, int],
        settings: Callable[[], Mapping[str, str]],
        since: Callable[[int], Mapping[int, int]],
    ) -> None:
        """`ends` are the broker's, asked just now, `end` is the log's; `settings` asks for the topic's,
        `since` for the first offsets of a time or later (in microseconds; -1 where there are none)."""
        now = self._clock()
        self.lag_s = self._lag(end, ends)
        if self._asked_at is None or self._monotonic() - self._asked_at >= SETTINGS_S:
            self._asked_at = self._monotonic()
            try:
                kafka_settings = settings()
                aging = self._aging(end, ends, kafka_settings, since, now)
                self._settings = (*_unfit(self._topic, kafka_settings), *aging)
            except TwinlakeError as error:  # what was found before may be so still
                journal.warning("the topic's settings are unknown", topic=self._topic, why=str(error))
        self._compare_new_record(end)
        # where the log has more than the broker, it is of a topic that was there before
        self._before = now, {one: had for one, had in ends.items() if had >= end.offsets.get(one, 0)}
        behind = (self.behind,) if self.behind else ()
        found = (*self._settings, *_ahead(self._topic, end, now), *behind)
        for warning in found:
            if warning.what not in {one.what for one in self.warnings}:
                journal.warning(warning.what, topic=self._topic, why=warning.why, remedy=warning.remedy)
        self.warnings = found

    def _lag(self, end: LogEnd, ends: Mapping[int, int]) -> float:
        now = self._monotonic()
        if not self._unread or self._unread[-1][1] != ends:
            self._unread.append((now, dict(ends)))
        while self._unread and _has(end, self._unread[0][1]):
            self._unread.popleft()
        if len(self._unread) > MOST_UNREAD:  # every second one: the first stays, and so does the newest
            kept = list(self._unread)
            self._unread = deque([*kept[:-1:2], kept[-1]])
        return now - self._unread[0][0] if self._unread else 0.0

    def _aging(
        self,
        end: LogEnd,
        ends: Mapping[int, int],
        settings: Mapping[str, str],
        since: Callable[[int], Mapping[int, int]],
        now: datetime,
    ) -> Iterator[TwinlakeError]:
        """Records that are not read, and that Kafka is about to delete: of a paused topic, or a slow one."""
        kept_ms = int(settings.get(RETENTION, -1))
        unread = {number: at for number, to in ends.items() if (at := end.offsets.get(number, 0)) < to}
        if kept_ms <= 0 or not unread:
            return
        limit = now - timedelta(milliseconds=kept_ms) * NEAR
        first = since(micros(limit - EPOCH))
        if any(number in first and not 0 <= first[number] <= at for number, at in unread.items()):
            alter = f"kafka-configs.sh --alter --entity-type topics --entity-name {self._topic} --add-config"
            yield TwinlakeError(
                f"Kafka will soon delete records of topic {self._topic} that are not read yet",
                f"the oldest was appended before {format_moment(limit)}, and the topic keeps its records for "
                f"{format_duration(timedelta(milliseconds=kept_ms))} ({RETENTION}={kept_ms})",
                f"have it read (`twinlake resume {self._topic} --topic` where it is paused), or kept longer: "
                f"{alter} {RETENTION}=... (with the cluster's --bootstrap-server)",
            )

    def _compare_new_record(self, end: LogEnd) -> None:
        """A record that the broker had not at the last look was appended since: its time is about now."""
        if self._before is None:
            return
        asked_at, ends = self._before
        times = [
            end.seen[partition]
            for partition, had in ends.items()
            if end.offsets.get(partition, 0) > had and partition in end.seen
        ]
        if not times:
            return
        newest = from_micros(max(times))
        self.behind = None if newest >= asked_at - LATE_COMMIT else TwinlakeError(
            f"Kafka's clock is behind this machine's, by the records of topic {self._topic}",
            f"the newest was appended after {format_moment(asked_at)} by this machine's clock, and has the "
            f"time {format_moment(newest)}: one of the two has jumped",
            _CLOCKS,
        )  # fmt: skip


def aging_error(watches: Iterable[TopicWatch | None]) -> TwinlakeError | None:
    """Of a clock by which records seem older than they are: Kafka's is behind, or this machine's is ahead."""
    return next((one.behind for one in watches if one and one.behind), None)


def _has(end: LogEnd, ends: Mapping[int, int]) -> bool:
    """Whether the log has all that the broker had then."""
    return all(end.offsets.get(partition, 0) >= to for partition, to in ends.items())


def _ahead(topic: str, end: LogEnd, now: datetime) -> Iterator[TwinlakeError]:
    newest = from_micros(max(end.seen.values())) if end.seen else now
    if newest > now + CLOCKS_APART:
        yield TwinlakeError(
            f"Kafka's clock is ahead of this machine's, by the records of topic {topic}",
            f"the newest has the time {format_moment(newest)}, and this machine's clock says "
            f"{format_moment(now)}: one of the two has jumped",
            _CLOCKS,
        )
    added = from_micros(end.ingested_at) if end.ingested_at is not None else now
    if added > now + CLOCKS_APART:
        yield TwinlakeError(
            f"the log of topic {topic} was written by a clock that was ahead of this machine's",
            f"its newest batch was added at {format_moment(added)}, and the clock says {format_moment(now)}: "
            "until then all batches have that time, windows by processing time stand still, and AS OF a time "
            "in between is refused",
            "see that this machine's clock is right (`timedatectl`); if it is, name positions in AS OF until "
            "that time has come",
        )


def _unfit(topic: str, settings: Mapping[str, str]) -> Iterator[TwinlakeError]:
    alter = f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config"
    if "compact" in (policy := settings.get(POLICY, "")):
        yield TwinlakeError(
            f"topic {topic} is compacted ({POLICY}={policy})",
            "Kafka removes records that have a newer one of their key, read or not, and nobody can say later "
            "that there were any",
            f"{alter} {POLICY}=delete (with the cluster's --bootstrap-server)",
        )
    if (kind := settings.get(TIMESTAMPS, LOG_APPEND_TIME)) != LOG_APPEND_TIME:
        yield TwinlakeError(
            f"topic {topic} has timestamps that producers set ({TIMESTAMPS}={kind})",
            "lateness and watermark are measured by the broker's clock: the topic stops at the next record",
            f"{alter} {TIMESTAMPS}={LOG_APPEND_TIME} (with the cluster's --bootstrap-server)",
        )

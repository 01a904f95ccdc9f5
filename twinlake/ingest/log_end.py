"""Where a log stands in its Kafka topic, as its newest commit says, and when going on would mean guessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from twinlake.base.errors import StoppedTopicError, TwinlakeError, UnreachableError
from twinlake.base.times import EPOCH
from twinlake.ingest.decide import Decision
from twinlake.ingest.writer_schema import Writer, field_names, schema_hash
from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME, advance_watermark
from twinlake.kinds.grid import micros
from twinlake.lake.invariants import LogState
from twinlake.lake.log.log import BATCH
from twinlake.lake.log.log_fields import names_kept
from twinlake.lake.self_check import refuse_broken_log
from twinlake.topics import kafka
from twinlake.topics.verdict import IGNORED, LATE, REPLAYED, VERDICTS

COUNTED = tuple(name for name in (*VERDICTS, LATE) if name != IGNORED)
"""What the commits of every log tell; how many are ignored those of one that has some."""

NO_FIELDS: Mapping[str, str] = {}
NO_FEWER: Mapping[int, int] = {}
Spans = dict[int, tuple[int, int]]
"""By partition, offsets (from, to): the last one is the one before `to`."""


@dataclass(frozen=True, kw_only=True)
class LogEnd:
    """The end of a log. Offsets are the next ones to read; times in microseconds."""

    topic: str
    batch: int = 0
    epoch: int = 0
    topic_id: str = ""  # "" before the first batch
    topics: dict[int, str] = field(default_factory=dict)
    ends: dict[int, dict[int, int]] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    event_times: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)  # as `seen`, of records that count for event_times
    watermark: int | None = None
    appended_at: int | None = None  # what Kafka appended before is in the log, but for idle partitions
    ingested_at: int | None = None  # when the newest batch was added
    counts: dict[str, int] = field(default_factory=dict)
    schemas: dict[int, list[str]] = field(default_factory=dict)
    schema_hashes: dict[int, str] = field(default_factory=dict)
    met_by: dict[int, int] = field(default_factory=dict)
    """By schema id, the number of the topic's schema that was active when the log met it."""
    unreadable: dict[int, int] = field(default_factory=dict)
    """By schema id, how many records are in quarantine because no active schema could read them."""
    gaps: dict[int, dict[int, list[tuple[int, int]]]] = field(default_factory=dict)
    """By epoch and partition, the offsets (from, to) that Kafka had lost before they were read: accepted."""

    @classmethod
    def of(cls, topic: str, metadata: dict[str, Any]) -> LogEnd:
        """The end that a log commit's metadata tells; that of an empty log for {}."""
        if not metadata:
            return cls(topic=topic, counts=dict.fromkeys(COUNTED, 0))
        return cls(
            topic=topic,
            batch=metadata["batch"],
            epoch=metadata["epoch"],
            topic_id=metadata["topic_id"],
            topics=_by_number(metadata["topics"]),
            ends={epoch: _by_number(ends) for epoch, ends in _by_number(metadata["ends"]).items()},
            seen=_by_number(metadata["seen"]),
            event_times=_by_number(metadata["event_times"]),
            counted=_by_number(metadata.get("counted", metadata["seen"])),
            watermark=metadata["watermark"],
            appended_at=metadata.get("clocks", {}).get(LOG_APPEND_TIME),
            ingested_at=metadata.get("clocks", {}).get(PROCESSING_TIME),
            counts=metadata["counts"],
            schemas=_by_number(metadata["schemas"]),
            schema_hashes=_by_number(metadata["schema_hashes"]),
            met_by=_by_number(metadata.get("met_by", {})),
            unreadable=_by_number(metadata.get("unreadable", {})),
            gaps={
                epoch: {number: [(a, b) for a, b in spans] for number, spans in _by_number(gaps).items()}
                for epoch, gaps in _by_number(metadata.get("gaps", {})).items()
            },
        )

    def metadata(self, kind: str, records: int) -> dict[str, Any]:
        """What the commit that ends here says."""
        return {
            "kind": kind,
            "batch": self.batch,
            "epoch": self.epoch,
            "topic_id": self.topic_id,
            "topics": self.topics,
            "ends": self.ends,
            "seen": self.seen,
            "event_times": self.event_times,
            "counted": self.counted,
            "watermark": self.watermark,
            "clocks": {LOG_APPEND_TIME: self.appended_at, PROCESSING_TIME: self.ingested_at},
            "counts": self.counts,
            "records": records,
            "schemas": self.schemas,
            "schema_hashes": self.schema_hashes,
            "met_by": self.met_by,
            "unreadable": self.unreadable,
            "gaps": self.gaps,
        }

    def state(self, kind: str = BATCH, added: int | None = None) -> LogState:
        """What the invariants go by; `added` as many rows as the batch that ends here has in memory."""
        return LogState(
            topic=self.topic, batch=self.batch, kind=kind, added=added, watermark=self.watermark,
            ends={(epoch, p): end for epoch, ends in self.ends.items() for p, end in ends.items()},
            counts={name: self.counts[name] for name in VERDICTS if name in self.counts},
            copies=self.counts.get(REPLAYED, 0),
        )  # fmt: skip

    @property
    def offsets(self) -> dict[int, int]:
        """The next offset of each partition in the epoch that is read now."""
        return self.ends.get(self.epoch, {})

    def starts(self, begins: dict[int, int]) -> dict[int, int]:
        """Where reading starts; a partition that the log does not know yet from its first record."""
        return {partition: self.offsets.get(partition, begin) for partition, begin in begins.items()}

    def at(self, now: datetime) -> LogEnd:
        """The same end, for a batch that is added now, by a clock that never goes back."""
        at_us = micros(now - EPOCH)
        return replace(self, ingested_at=max(at_us, self.ingested_at or at_us))

    def past(self, ends: dict[int, int], topic_id: str) -> LogEnd:
        """The end after a batch that has read up to these offsets, and says nothing of records."""
        return replace(
            self,
            batch=self.batch + 1,
            topic_id=topic_id,
            topics={**self.topics, self.epoch: topic_id},
            ends={**self.ends, self.epoch: _newest(self.offsets, ends)},
        )

    def after(
        self,
        decision: Decision,
        topic_id: str,
        writers: Collection[Writer],
        event: Mapping[str, str] = NO_FIELDS,
    ) -> LogEnd:
        """The end after one more batch; `writers` are those whose records are in it, `event` the log's fields
        that these are kept in, with their types."""
        seen = {**self.seen, **decision.seen}  # not the newest ever: a clock that was ahead goes back
        event_times = _newest(self.event_times, decision.event_times)
        counted = {**self.counted, **decision.counted}
        more = {name: self.counts.get(name, 0) + n for name, n in decision.counts.items()}
        kept = {w.id: names_kept(event, w.stored, w.names) for w in writers}
        return replace(
            self.past(decision.ends, topic_id),
            seen=seen,
            event_times=event_times,
            counted=counted,
            watermark=advance_watermark(self.watermark, counted, event_times),
            appended_at=advance_watermark(self.appended_at, seen, seen),
            counts={**self.counts, **more},
            schemas={**self.schemas, **kept},
            schema_hashes={**self.schema_hashes, **{w.id: schema_hash(w.avro) for w in writers}},
            met_by={**{w.id: w.read_by for w in writers}, **self.met_by},
            unreadable=_counted(self.unreadable, decision.unreadable),
        )

    def judged_again(
        self,
        decision: Decision,
        epoch: int,
        before: Mapping[str, int],
        unreadable: Mapping[int, int],
        copies: int,
        writers: Collection[Writer],
        event: Mapping[str, str] = NO_FIELDS,
    ) -> LogEnd:
        """The end after a batch of so many copies of records of that epoch, which were counted as `before`,
        and by schema as `unreadable`.

        Kafka's offsets stay. A valid record's event time counts for the watermark as if it had been valid at
        first: it may go on by it, never back.
        """
        kept = {w.id: names_kept(event, w.stored, w.names) for w in writers}
        here = epoch == self.epoch
        event_times = _newest(self.event_times, decision.event_times if here else {})
        counted = _newest(self.counted, decision.counted if here else {})
        counts = Counter(self.counts)
        counts.update(decision.counts)
        counts.subtract(before)
        counts[REPLAYED] += copies
        return replace(
            self,
            batch=self.batch + 1,
            event_times=event_times,
            counted=counted,
            watermark=advance_watermark(self.watermark, counted, event_times),
            counts=dict(counts),
            schemas={**self.schemas, **kept},
            schema_hashes={**self.schema_hashes, **{w.id: schema_hash(w.avro) for w in writers}},
            met_by={**{w.id: w.read_by for w in writers}, **self.met_by},
            unreadable=_counted(self.unreadable, decision.unreadable, unreadable),
        )

    def refuse_broken(self, new: LogEnd, kind: str, rows: int) -> None:
        """StoppedTopicError where a batch of so many rows that ends at `new` would break what must hold."""
        refuse_broken_log(self.state(), new.state(kind, rows))

    def check(self, found: kafka.KafkaTopic | None, topic_id: str) -> None:
        """Raises what stops the topic when it is not there, or was made again since reading it began."""
        if found is None:
            raise missing(self.topic, self)
        if found.id != topic_id:
            stopped = self.refuse(found.id, {}, {}, kafka.LOG_APPEND_TIME)
            raise stopped or UnreachableError(f"topic {self.topic} was made again", "", "wait")

    def refuse(
        self, topic_id: str, begins: dict[int, int], ends: dict[int, int], timestamp_type: str
    ) -> StoppedTopicError | None:
        """The error that stops the topic, None where the log can go on from here."""
        accept = f"if that is right, run `twinlake topic accept {self.topic}`"
        if timestamp_type != kafka.LOG_APPEND_TIME:
            return producer_time(self.topic)
        if self.topic_id and topic_id != self.topic_id:
            return StoppedTopicError(
                what=f"topic {self.topic} is not the one that the log has read",
                why=f"its id is {topic_id}, the log's is {self.topic_id}: it was deleted and made again",
                remedy=f"{accept}: its records become epoch {self.epoch + 1}, nothing that was read is lost",
            )
        if not self.topic_id:
            return None
        lost = self.lost(begins)
        if lost:
            spans = spans_text(lost)
            return StoppedTopicError(
                what=f"records of topic {self.topic} are gone that were never read: {spans}",
                why="Kafka's retention (or a delete of records) removed them before the log had them",
                remedy=f"restore them, or {accept}: the log goes on after the gap and keeps a note of it",
            )
        ahead = {p: (end, ends[p]) for p, end in self.offsets.items() if end > ends.get(p, end)}
        ahead |= {p: (end, 0) for p, end in self.offsets.items() if p not in ends and end}
        if ahead:
            spans = ", ".join(f"partition {p}: log {a}, broker {b}" for p, (a, b) in sorted(ahead.items()))
            return StoppedTopicError(
                what=f"the log of topic {self.topic} is ahead of the broker: {spans}",
                why="the broker was restored to an earlier state, or it is another one with the same topic",
                remedy=f"connect the right broker; {accept}: epoch {self.epoch + 1} begins, in these "
                "partitions with what is written from then on, in the others with what was not read yet",
            )
        return None

    def refuse_schema(self, schema_id: int, avro: dict[str, Any]) -> StoppedTopicError | None:
        """The error for an id that meant another schema when the log met it; `avro` as `meant` leaves it."""
        known, now = self.schema_hashes.get(schema_id), schema_hash(avro)
        if known is None or known == now:
            return None
        return StoppedTopicError(
            what=f"schema {schema_id} of topic {self.topic} is not the one that the log has read",
            why=f"the log has read the fields {', '.join(self.schemas[schema_id])} (hash {known}), the "
            f"registry now says {', '.join(field_names(avro))} (hash {now}): it was restored, or refilled",
            remedy=f"restore the registry so that {schema_id} is that schema again, with what came since "
            "under other ids, and start the lake server again; records sent under the id's new meaning must "
            f"be sent again: make the topic again first, and run `twinlake topic accept {self.topic}`",
        )

    def refuse_missing(self, schema_ids: Collection[int]) -> StoppedTopicError | None:
        """The error for schema ids that the registry has forgotten, of records that are still to be read."""
        gone = sorted(set(schema_ids) & set(self.schemas))
        if not gone:
            return None
        ids = ", ".join(map(str, gone))
        return StoppedTopicError(
            what=f"the registry has no schema {ids} any more, and topic {self.topic} has more records of it",
            why="the log has read such records; without the schema the new ones would be invalid for ever",
            remedy=f"restore the registry with schema {ids}, and start the lake server again",
        )

    def lost(self, begins: dict[int, int]) -> Spans:
        """Offsets (from, to) per partition that Kafka no longer has and the log never had."""
        found = {p: (self.offsets.get(p, 0), begin) for p, begin in begins.items()}
        return {p: span for p, span in found.items() if span[0] < span[1]}


def spans_text(lost: Spans) -> str:
    return ", ".join(f"partition {number} offsets {a} to {b - 1}" for number, (a, b) in sorted(lost.items()))


def missing(topic: str, end: LogEnd) -> TwinlakeError:
    """The error for a topic that the broker does not have."""
    if end.topic_id:
        return StoppedTopicError(
            what=f"topic {topic} does not exist any more",
            why=f"the log has read it up to batch {end.batch}",
            remedy=f"make it again and run `twinlake topic accept {topic}`",
        )
    return UnreachableError(f"there is no topic {topic} yet", "the broker has none", "run `twinlake up`")


def producer_time(topic: str) -> StoppedTopicError:
    """The error for a topic whose timestamps producers set."""
    return StoppedTopicError(
        what=f"topic {topic} has timestamps that producers set (CreateTime)",
        why="lateness and watermark are measured against the broker's clock; a producer's could be anything",
        remedy="set message.timestamp.type=LogAppendTime and start the lake server again (`twinlake down`, "
        "`twinlake up`); if such records are in the topic already, make the topic again before that, and "
        f"where its log has records run `twinlake topic accept {topic}`",
    )


def _by_number(found: dict[str, Any]) -> dict[int, Any]:
    return {int(number): value for number, value in found.items()}


def _counted(
    before: Mapping[int, int], more: Mapping[int, int], less: Mapping[int, int] = NO_FEWER
) -> dict[int, int]:
    found = Counter(before)
    found.update(more)
    found.subtract(less)
    return {number: count for number, count in sorted(found.items()) if count > 0}


def _newest(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    return {**before, **{p: max(time, before.get(p, time)) for p, time in now.items()}}

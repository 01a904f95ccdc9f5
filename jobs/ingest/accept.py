"""Accepting what stopped a topic: a recreated one as the next epoch, a gap as a gap; the log notes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from jobs.errors import NotFoundError, UsageError
from jobs.ingest.log_end import LogEnd, producer_time
from jobs.lake.log import ACCEPT, Log
from jobs.settings import Settings
from jobs.topics.kafka import LOG_APPEND_TIME, Kafka

Change = Literal["recreated", "behind", "lost"]


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """From where ingest goes on, and why.

    `recreated`: the next epoch, from its first record. `behind`: the broker had less than the log; the next
    epoch, from what is written from now on. `lost`: the same epoch, after the gap, which `lost` names as
    offsets (from, to) by partition.
    """

    topic: str
    epoch: int
    batch: int
    topic_id: str
    change: Change
    lost: dict[int, tuple[int, int]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def accept(settings: Settings, log: Log, kafka: Kafka | None = None) -> Accepted:
    """Commits an empty batch from which ingest can go on; what is in the log stays as it is.

    Call it while the topic's ingest is stopped. Raises NotFoundError without such a topic, UsageError when
    nothing is to be accepted, StoppedTopicError when producers set its timestamps.
    """
    name, app_id = log.topic.name, "log:" + log.open()
    change, accepted, lost = acceptable(settings, log, kafka)
    metadata = {**accepted.metadata(ACCEPT, 0), "change": change, "lost": lost}
    log.appender.commit([], app_id, accepted.batch, metadata)
    return Accepted(
        topic=name, epoch=accepted.epoch, batch=accepted.batch, topic_id=accepted.topic_id, change=change,
        lost=lost,
    )  # fmt: skip


def acceptable(
    settings: Settings, log: Log, kafka: Kafka | None = None
) -> tuple[Change, LogEnd, dict[int, tuple[int, int]]]:
    """What is to be accepted, as `accept` would; the same errors, and nothing is changed."""
    name = log.topic.name
    kafka = kafka or Kafka(settings.services().kafka("ingest"))
    found = kafka.topic(name)
    if found is None:
        raise NotFoundError(f"Kafka has no topic {name}", "there is nothing to accept", "make it first")
    if kafka.timestamp_type(name) != LOG_APPEND_TIME:
        raise producer_time(name)
    end = LogEnd.of(name, log.metadata())  # before the broker's: ingest may be running
    begins, ends = kafka.begins(name, found.partitions), kafka.ends(name, found.partitions)
    return _accepted(end, found.id, begins, ends)


def _accepted(
    end: LogEnd, topic_id: str, begins: dict[int, int], ends: dict[int, int]
) -> tuple[Change, LogEnd, dict[int, tuple[int, int]]]:
    change: Change
    epoch = end.epoch
    lost: dict[int, tuple[int, int]] = {}
    if end.topic_id and topic_id != end.topic_id:
        change, epoch, offsets = "recreated", end.epoch + 1, begins
    elif end.topic_id and any(at > ends.get(partition, 0) for partition, at in end.offsets.items()):
        change, epoch, offsets = "behind", end.epoch + 1, ends
    elif end.topic_id and end.lost(begins):
        change, lost = "lost", end.lost(begins)
        offsets = {**end.offsets, **{partition: to for partition, (_, to) in lost.items()}}
    else:
        raise UsageError(
            f"there is nothing to accept for topic {end.topic}",
            "the topic is the one that the log reads, and no record is missing",
            "see `twinlake status` for what stopped it",
        )
    accepted = replace(
        end,
        batch=end.batch + 1,
        epoch=epoch,
        topic_id=topic_id,
        topics={**end.topics, epoch: topic_id},
        ends={**end.ends, epoch: offsets},
        # an epoch of its own has partitions of its own: none of them is active yet
        seen=end.seen if epoch == end.epoch else {},
        event_times=end.event_times if epoch == end.epoch else {},
        counted=end.counted if epoch == end.epoch else {},
    )
    return change, accepted, lost

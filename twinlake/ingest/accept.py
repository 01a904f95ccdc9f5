"""Accepting what stopped a topic: a recreated one as the next epoch, a gap as a gap; the log notes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.config.settings import Settings
from twinlake.ingest.log_end import LogEnd, Spans, producer_time
from twinlake.lake.log.log import ACCEPT, Log
from twinlake.topics.kafka import LOG_APPEND_TIME, Kafka

Change = Literal["recreated", "behind", "lost"]


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """From where ingest goes on, and why.

    `recreated`: the next epoch, from its first record. `behind`: the broker had less than the log in some
    partitions; the next epoch, in those from what is written from now on, in the others from where the log
    was. `lost`: the same epoch, after the gap. `lost` names every gap as offsets (from, to) by partition.
    """

    topic: str
    epoch: int
    batch: int
    topic_id: str
    change: Change
    lost: Spans

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
) -> tuple[Change, LogEnd, Spans]:
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
) -> tuple[Change, LogEnd, Spans]:
    change: Change
    epoch, lost = end.epoch, end.lost(begins)
    after_gaps = {**end.starts(begins), **{partition: to for partition, (_, to) in lost.items()}}
    if end.topic_id and topic_id != end.topic_id:
        change, epoch, offsets = "recreated", end.epoch + 1, begins
        lost = {partition: (0, begin) for partition, begin in begins.items() if begin}
    elif end.topic_id and any(at > ends.get(partition, 0) for partition, at in end.offsets.items()):
        # one partition's broker was restored: what the others have and nobody read must not go with it
        change, epoch = "behind", end.epoch + 1
        offsets = {partition: min(at, ends[partition]) for partition, at in after_gaps.items()}
    elif end.topic_id and lost:
        change, offsets = "lost", {**end.offsets, **after_gaps}
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
        gaps={**end.gaps, epoch: _with(end.gaps.get(epoch, {}), lost)} if lost else end.gaps,
        # an epoch of its own has partitions of its own: none of them is active yet
        seen=end.seen if epoch == end.epoch else {},
        event_times=end.event_times if epoch == end.epoch else {},
        counted=end.counted if epoch == end.epoch else {},
    )
    return change, accepted, lost


def _with(gaps: dict[int, list[tuple[int, int]]], lost: Spans) -> dict[int, list[tuple[int, int]]]:
    return {**gaps, **{partition: [*gaps.get(partition, []), span] for partition, span in lost.items()}}

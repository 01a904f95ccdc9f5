"""Accepting what stopped a topic: a recreated one as the next epoch, a gap as a gap; the log notes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.errors import NotFoundError, UsageError
from jobs.ingest.log_end import Place, producer_time
from jobs.lake import delta
from jobs.lake.log import ACCEPT, Log
from jobs.settings import Settings
from jobs.topics.kafka import LOG_APPEND_TIME, Kafka


def accept(settings: Settings, log: Log, kafka: Kafka | None = None) -> dict[str, Any]:
    """Commits an empty batch from which ingest can go on; what is in the log stays as it is.

    Call it while the topic's ingest is stopped. Returns topic, epoch, batch, topic_id and what changed:
    `recreated` (next epoch, from its first record), `lost` (same epoch, after the gap) or `behind` (the
    broker had less than the log: next epoch, from what is written from now on).
    """
    name = log.topic.name
    kafka = kafka or Kafka(settings.services().bootstrap_servers)
    found = kafka.topic(name)
    if found is None:
        raise NotFoundError(f"Kafka has no topic {name}", "there is nothing to accept", "make it first")
    if kafka.timestamp_type(name) != LOG_APPEND_TIME:
        raise producer_time(name)
    app_id = "log:" + log.open()
    place = Place.of(name, log.metadata())
    begins, ends = kafka.begins(name, found.partitions), kafka.ends(name, found.partitions)
    change, accepted, lost = _accepted(place, found.id, begins, ends)
    metadata = {**accepted.metadata(ACCEPT, 0), "change": change, "lost": lost}
    nothing = log.spark.createDataFrame([], log.ddl)
    delta.append(nothing, log.path, app_id, accepted.batch, metadata)
    return {
        "topic": name, "epoch": accepted.epoch, "batch": accepted.batch, "topic_id": found.id,
        "change": change, "lost": lost,
    }  # fmt: skip


def _accepted(
    place: Place, topic_id: str, begins: dict[int, int], ends: dict[int, int]
) -> tuple[str, Place, dict[int, tuple[int, int]]]:
    change, epoch, offsets = "", place.epoch, {}
    lost: dict[int, tuple[int, int]] = {}
    if place.topic_id and topic_id != place.topic_id:
        change, epoch, offsets = "recreated", place.epoch + 1, begins
    elif place.topic_id and any(end > ends.get(partition, 0) for partition, end in place.offsets.items()):
        change, epoch, offsets = "behind", place.epoch + 1, ends
    elif place.topic_id and place.lost(begins):
        change, lost = "lost", place.lost(begins)
        offsets = {**place.offsets, **{partition: to for partition, (_, to) in lost.items()}}
    else:
        raise UsageError(
            f"there is nothing to accept for topic {place.topic}",
            "the topic is the one that the log reads, and no record is missing",
            "see `twinlake status` for what stopped it",
        )
    accepted = replace(
        place,
        batch=place.batch + 1,
        epoch=epoch,
        topic_id=topic_id,
        topics={**place.topics, epoch: topic_id},
        ends={**place.ends, epoch: offsets},
        # an epoch of its own has partitions of its own: none of them is active yet
        seen=place.seen if epoch == place.epoch else {},
        event_times=place.event_times if epoch == place.epoch else {},
    )
    return change, accepted, lost

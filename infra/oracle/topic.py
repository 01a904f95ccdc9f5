"""Reads a topic from its beginning to pinned end offsets, committed records only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

ANSWER_SECONDS = 20.0
SILENCE_SECONDS = 60.0
PATIENCE_SECONDS = 0.5
AT_ONCE = 20_000


class TopicError(Exception):
    """The topic cannot be read to the pinned end."""


@dataclass(kw_only=True)
class Records:
    """Columns of equal length; the order is the order within each partition."""

    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)


def end_offsets(bootstrap_servers: str, topic: str) -> dict[int, int]:
    """The offset after the newest committed record of each partition, now."""
    consumer = _consumer(bootstrap_servers)
    try:
        return _ends(consumer, topic)
    finally:
        consumer.close()


def read(
    bootstrap_servers: str, topic: str, ends: dict[int, int] | None = None
) -> tuple[Records, dict[int, int]]:
    """All records below `ends` (None: the end as it is now), and the ends."""
    consumer = _consumer(bootstrap_servers)
    try:
        ends = _ends(consumer, topic) if ends is None else ends
        open_partitions = {partition for partition, end in ends.items() if end > 0}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in open_partitions])
        records, heard = Records(), time.monotonic()
        while open_partitions:
            messages = consumer.consume(AT_ONCE, timeout=PATIENCE_SECONDS)  # returns late if it gets fewer
            heard = time.monotonic() if messages else heard
            if time.monotonic() - heard > SILENCE_SECONDS:
                raise TopicError(f"{topic}: silent for {SILENCE_SECONDS:.0f} s, partitions {open_partitions}")
            for message in messages:
                if message.error() is not None:
                    raise KafkaException(message.error())
                partition, offset = message.partition() or 0, message.offset() or 0
                if offset < ends[partition]:
                    records.partitions.append(partition)
                    records.offsets.append(offset)
                    records.timestamps_ms.append(message.timestamp()[1])
                    records.keys.append(message.key())
                    records.values.append(message.value())
            for place in consumer.position([TopicPartition(topic, p) for p in open_partitions]):
                if place.offset >= ends[place.partition]:
                    open_partitions.discard(place.partition)
        return records, ends
    finally:
        consumer.close()


def _consumer(bootstrap_servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "twinlake-oracle",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.message.max.bytes": 4_000_000,
            "queued.max.messages.kbytes": 200_000,
            "log_level": 2,
        }
    )


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    found = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
    if found.error is not None:
        raise TopicError(f"topic {topic}: {found.error.str()}")
    return {
        partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_SECONDS)[1]
        for partition in sorted(found.partitions)
    }

"""Reads a topic from its beginning to pinned end offsets, committed records only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

ANSWER_SECONDS = 20.0
SILENCE_SECONDS = 60.0
PATIENCE_SECONDS = 0.5
AT_ONCE = 20_000
_OPTIONS = {
    "security.protocol": "security", "sasl.mechanism": "mechanism", "sasl.username": "username",
    "sasl.password": "password", "ssl.ca.location": "ca_file", "ssl.key.location": "key_file",
    "ssl.certificate.location": "certificate_file", "ssl.key.password": "key_password",
}  # fmt: skip


Client = Mapping[str, str]
"""The options by which librdkafka gets into the cluster."""


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


def end_offsets(kafka: Client, topic: str) -> dict[int, int]:
    """The offset after the newest committed record of each partition, now."""
    consumer = _consumer(kafka)
    try:
        return _ends(consumer, topic)
    finally:
        consumer.close()


def read(kafka: Client, topic: str, ends: dict[int, int] | None = None) -> tuple[Records, dict[int, int]]:
    """All records below `ends` (None: the end as it is now), and the ends."""
    consumer = _consumer(kafka)
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


def client_of(services: Mapping[str, Any]) -> dict[str, str]:
    """What services.json says of those who read topics."""
    found = {"bootstrap.servers": services["bootstrap_servers"]}
    shown = services.get("kafka_access", {}).get("ingest", {})
    for option, name in _OPTIONS.items():
        if file := shown.get(f"{name}_file"):
            found[option] = Path(file).read_text().rstrip("\r\n")
        elif shown.get(name):
            found[option] = shown[name]
    return found


def _consumer(kafka: Client) -> Consumer:
    return Consumer(
        {
            **kafka,
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

"""Reads some records of a topic, the newest ones of each partition, and leaves no trace at the broker."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from twinlake.topics.kafka import Kafka, KafkaTopic
from twinlake.topics.refusal import QUIET, ErrorCollector, refusal, unusable

GROUP = "twinlake-ingest-sample"
"""Nothing is committed to it; a locked broker lets the login of ingest use groups that begin so."""
ANSWER_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One record; `timestamp_ms` is Kafka's."""

    value: bytes | None
    timestamp_ms: int


def newest_records(kafka: Kafka, topic: KafkaTopic, most: int) -> list[Sampled]:
    """At most so many committed records, as equal shares of the partitions as there are.

    UnreachableError where the broker does not answer, DeniedError where it lets nobody read.
    """
    begins, ends = kafka.begins(topic.name, topic.partitions), kafka.ends(topic.name, topic.partitions)
    lengths = {one: ends[one] - begins[one] for one in topic.partitions if ends[one] > begins[one]}
    starts = {one: ends[one] - length for one, length in _shares(lengths, most).items()}
    if not starts:
        return []
    doing, rights = f"read topic {topic.name!r}", f"READ on topic {topic.name} and on group {GROUP}"
    collector = ErrorCollector(kafka.login, doing, rights)
    options = {
        **QUIET, **kafka.login.client(), "group.id": GROUP, "enable.auto.commit": False,
        "isolation.level": "read_committed", "enable.partition.eof": True, "error_cb": collector,
    }  # fmt: skip
    try:
        consumer = Consumer(options)
    except KafkaException as error:
        raise unusable(error, kafka.login) from error
    found: list[Sampled] = []
    try:
        consumer.assign([TopicPartition(topic.name, one, offset) for one, offset in starts.items()])
        left, until = set(starts), time.monotonic() + ANSWER_S
        while left:
            message = consumer.poll(0.5)
            if message is None:
                collector.refuse(time_is_up=time.monotonic() > until)
                if time.monotonic() > until:
                    raise kafka.unreachable(f"no record in {ANSWER_S:g} s: {collector.last}")
                continue
            until = time.monotonic() + ANSWER_S
            failed = message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            if failed is None:
                assert offset is not None
                if offset < ends[partition]:
                    found.append(Sampled(value=message.value(), timestamp_ms=message.timestamp()[1]))
                if offset >= ends[partition] - 1:
                    left.discard(partition)
            elif failed.code() == KafkaError._PARTITION_EOF:
                left.discard(partition)
            else:
                raise refusal(failed, kafka.login, doing, rights) or kafka.unreachable(failed.str())
    finally:
        consumer.close()
    return found[:most]


def _shares(lengths: dict[int, int], most: int) -> dict[int, int]:
    """How many records of each partition: small ones whole, the others alike."""
    shares: dict[int, int] = {}
    for done, (partition, length) in enumerate(sorted(lengths.items(), key=lambda item: item[1])):
        fair = -(-(most - sum(shares.values())) // (len(lengths) - done))
        shares[partition] = min(length, fair)
    return shares

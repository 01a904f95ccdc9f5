"""A reader of a changelog who knows nothing but Kafka, Avro and the two topics: it builds the table back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from twinlake.config.login import Login
from twinlake.topics.registry import Registry

Row = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """One committed record."""

    key: tuple[Any, ...]
    row: Row | None
    release: int
    position: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One committed event."""

    topic: str
    partition: int
    key: Any
    value: Any
    headers: dict[str, str]

    @property
    def id(self) -> tuple[int, int, int]:
        """The record id of its source."""
        epoch, partition, offset = (int(self.headers[name]) for name in ("epoch", "partition", "offset"))
        return epoch, partition, offset


class Reader:
    def __init__(self, login: Login, registry_url: str, topic: str) -> None:
        self._login, self._registry, self._topic = login, Registry(registry_url), topic
        self._schemas: dict[int, Any] = {}

    def records(self) -> list[Told]:
        """All committed records, each partition in its order."""
        return [
            Told(
                tuple(self._decoded(message.key()).values()), self._decoded(message.value()),
                int(headers["release"]), json.loads(headers["position"]),
            )
            for message in self._read(self._topic)
            if (headers := dict(message.headers() or ()))
        ]  # fmt: skip

    def events(self, is_json: bool = False) -> list[Event]:
        """All committed records of a topic of events, each partition in its order."""

        def decoded(data: bytes | None) -> Any:
            return json.loads(data) if is_json and data is not None else self._decoded(data)

        return [
            Event(
                topic=self._topic, partition=message.partition(), key=decoded(message.key()),
                value=decoded(message.value()),
                headers={name: text.decode() for name, text in message.headers() or ()},
            )
            for message in self._read(self._topic)
        ]  # fmt: skip

    def positions(self) -> list[dict[str, Any]]:
        """What the position topic has told, oldest first."""
        return [json.loads(message.value()) for message in self._read(f"{self._topic}.position")]

    def table(self) -> dict[tuple[Any, ...], Row]:
        """The table that all records make."""
        return table_of(self.records())

    def _read(self, topic: str) -> list[Message]:
        consumer = Consumer(
            {
                **self._login.client(), "group.id": "twinlake-reader", "log_level": 0,
                "isolation.level": "read_committed", "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )  # fmt: skip
        try:
            partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            left = set(partitions)
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            found = []
            while left:
                message = consumer.poll(60)
                assert message is not None, f"{topic} does not answer"
                if (error := message.error()) is None:
                    found.append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(message.partition())
            return found
        finally:
            consumer.close()

    def _decoded(self, framed: bytes | None) -> Any:
        if framed is None:
            return None
        assert framed[0] == 0
        schema_id = int.from_bytes(framed[1:5], "big")
        if schema_id not in self._schemas:
            self._schemas[schema_id] = fastavro.parse_schema(dict(self._registry.schema(schema_id) or {}))
        return fastavro.schemaless_reader(io.BytesIO(framed[5:]), self._schemas[schema_id], None)


def table_of(records: Iterable[Told]) -> dict[tuple[Any, ...], Row]:
    """The table that records make; one that deletes must find what it deletes."""
    held: dict[tuple[Any, ...], Row] = {}
    for one in records:
        if one.row is None:
            del held[one.key]
        else:
            held[one.key] = one.row
    return held

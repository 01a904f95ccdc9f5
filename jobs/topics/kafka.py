"""The edge to Kafka's administration: who a topic is, how far it reaches, and making one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from jobs.errors import UnreachableError

LOG_APPEND_TIME = "LogAppendTime"
TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class KafkaTopic:
    """What the broker says a topic is now."""

    name: str
    id: str
    partitions: tuple[int, ...]


class Kafka:
    """One connection to one cluster. Every call raises UnreachableError when the broker does not answer."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = AdminClient(
            {
                "bootstrap.servers": bootstrap_servers,
                "socket.timeout.ms": int(TIMEOUT_S * 1000),
                "client.id": "twinlake",
                "log_level": 0,
            }
        )

    def cluster_id(self) -> str:
        """The cluster's own id; another broker on the same port has another one."""
        try:
            return str(self._admin.list_topics(timeout=TIMEOUT_S).cluster_id)
        except KafkaException as error:
            raise self._unreachable(error) from error

    def topic(self, name: str) -> KafkaTopic | None:
        """The topic as it is now, None where there is none of that name."""
        (future,) = self._admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S).values()
        try:
            found = future.result()
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                return None
            raise self._unreachable(error) from error
        return KafkaTopic(
            name=name,
            id=str(found.topic_id),
            partitions=tuple(sorted(partition.id for partition in found.partitions)),
        )

    def begins(self, name: str, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that each partition still has."""
        return self._offsets(name, partitions, OffsetSpec.earliest())

    def ends(self, name: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after the last committed record of each partition."""
        return self._offsets(name, partitions, OffsetSpec.latest())

    def _offsets(self, name: str, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(name, partition): spec for partition in partitions}
        if not asked:
            return {}
        found = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S
        )
        try:
            return {place.partition: int(future.result().offset) for place, future in found.items()}
        except KafkaException as error:
            raise self._unreachable(error) from error

    def timestamp_type(self, name: str) -> str:
        """`LogAppendTime` or `CreateTime`: who sets the timestamps of the topic's records."""
        return self.setting(name, "message.timestamp.type")

    def setting(self, name: str, key: str) -> str:
        """What a topic's configuration says of a key."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        (future,) = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
        try:
            config: dict[str, Any] = future.result()
        except KafkaException as error:
            raise self._unreachable(error) from error
        return str(config[key].value)

    def create(self, name: str, partitions: int = 4, config: dict[str, str] | None = None) -> bool:
        """Creates the topic with LogAppendTime; False where it exists already (and is left as it is)."""
        settings = {"message.timestamp.type": LOG_APPEND_TIME, **(config or {})}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        (future,) = self._admin.create_topics([new], request_timeout=TIMEOUT_S).values()
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return False
            raise self._unreachable(error) from error
        return True

    def _unreachable(self, error: KafkaException) -> UnreachableError:
        return UnreachableError(
            what=f"Kafka at {self.bootstrap_servers} did not answer",
            why=str(error.args[0]),
            remedy="see `twinlake status` and `twinlake logs broker`",
        )

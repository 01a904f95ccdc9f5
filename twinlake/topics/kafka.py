"""The edge to Kafka's administration: who a topic is, how far it reaches, and making one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.config.login import Login
from twinlake.topics.refusal import ASK_S, QUIET, ErrorCollector, metadata, refusal, unusable

LOG_APPEND_TIME = "LogAppendTime"
TIMESTAMPS, POLICY, RETENTION = "message.timestamp.type", "cleanup.policy", "retention.ms"
TIMEOUT_S = 10.0
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class KafkaTopic:
    """What the broker says a topic is now."""

    name: str
    id: str
    partitions: tuple[int, ...]


class Kafka:
    """One connection to one cluster.

    Every call raises UnreachableError when the broker does not answer, DeniedError when it refuses.
    """

    def __init__(self, login: Login) -> None:
        self.login = login
        self._collector = ErrorCollector(login)
        options: dict[str, Any] = {
            **QUIET, **login.client(), "socket.timeout.ms": int(TIMEOUT_S * 1000), "client.id": "twinlake",
            "error_cb": self._collector,
        }  # fmt: skip
        try:
            self._admin = AdminClient(options)
        except KafkaException as error:
            raise unusable(error, login) from error

    def cluster_id(self) -> str:
        """The cluster's own id; another broker on the same port has another one."""
        try:
            return str(metadata(self._admin, self._collector, None, TIMEOUT_S).cluster_id)
        except KafkaException as error:
            raise self._failed(error) from error

    def topic(self, name: str) -> KafkaTopic | None:
        """The topic as it is now, None where there is none of that name."""
        (future,) = self._admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S).values()
        try:
            found = self._answer(future)
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                return None
            raise self._failed(error, f"describe topic {name!r}", f"DESCRIBE on topic {name}") from error
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

    def since(self, name: str, partitions: Iterable[int], micros: int) -> dict[int, int]:
        """The offset of each partition's first record that was appended then or later; -1 without one."""
        return self._offsets(name, partitions, OffsetSpec.for_timestamp(micros // 1000))

    def _offsets(self, name: str, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        asked = {TopicPartition(name, partition): spec for partition in partitions}
        if not asked:
            return {}
        found = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S
        )
        try:
            return {place.partition: int(self._answer(one).offset) for place, one in found.items()}
        except KafkaException as error:
            doing, rights = f"list the offsets of topic {name!r}", f"DESCRIBE on topic {name}"
            raise self._failed(error, doing, rights) from error

    def timestamp_type(self, name: str) -> str:
        """`LogAppendTime` or `CreateTime`: who sets the timestamps of the topic's records."""
        return self.setting(name, TIMESTAMPS)

    def setting(self, name: str, key: str) -> str:
        """What a topic's configuration says of a key."""
        return self.settings(name)[key]

    def settings(self, name: str) -> dict[str, str]:
        """A topic's configuration, what is the cluster's included."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        (future,) = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
        try:
            config = self._answer(future)
        except KafkaException as error:
            doing, rights = f"read the settings of topic {name!r}", f"DESCRIBE_CONFIGS on topic {name}"
            raise self._failed(error, doing, rights) from error
        return {key: str(entry.value) for key, entry in config.items()}

    def create(self, name: str, partitions: int = 4, config: dict[str, str] | None = None) -> bool:
        """Creates the topic with LogAppendTime; False where it exists already (and is left as it is)."""
        settings = {"message.timestamp.type": LOG_APPEND_TIME, **(config or {})}
        return self._create(name, partitions, settings)

    def try_to_create(self, name: str, partitions: int = 4) -> bool:
        """The same without making it: whether it would be made, or why not."""
        return self._create(name, partitions, {"message.timestamp.type": LOG_APPEND_TIME}, validate_only=True)

    def _create(self, name: str, partitions: int, config: dict[str, str], **more: Any) -> bool:
        # as many replicas as the cluster makes by default: 1 is no safe choice where there are more brokers
        new = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        (future,) = self._admin.create_topics([new], request_timeout=TIMEOUT_S, **more).values()
        try:
            self._answer(future)
        except KafkaException as error:
            if error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                return False
            raise self._failed(error, f"make topic {name!r}", f"CREATE on topic {name}") from error
        return True

    def rights(self, name: str) -> set[str]:
        """What this client may do with the topic: READ, WRITE, DESCRIBE, ...; all where nobody asks."""
        (future,) = self._admin.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=TIMEOUT_S
        ).values()
        try:
            return {one.name for one in self._answer(future).authorized_operations or ()}
        except KafkaException as error:
            raise self._failed(error, f"describe topic {name!r}", f"DESCRIBE on topic {name}") from error

    def newest(self, name: str, partitions: Iterable[int]) -> int | None:
        """The newest timestamp of the topic's records, in milliseconds; None where there are none."""
        asked = {TopicPartition(name, partition): OffsetSpec.max_timestamp() for partition in partitions}
        found = self._admin.list_offsets(asked, request_timeout=TIMEOUT_S)
        try:
            times = [int(self._answer(one).timestamp) for one in found.values()]
        except KafkaException as error:
            doing, rights = f"list the offsets of topic {name!r}", f"DESCRIBE on topic {name}"
            raise self._failed(error, doing, rights) from error
        return max((time for time in times if time >= 0), default=None)

    def _answer(self, future: Future[Answer]) -> Answer:
        """Waits no longer than it takes the broker to refuse this client."""
        until = time.monotonic() + 2 * TIMEOUT_S  # the client's own limit comes first
        while True:
            try:
                found = future.result(ASK_S)
            except TimeoutError:
                self._admin.poll(0)
                self._collector.refuse()
                if time.monotonic() > until:
                    raise self.unreachable(f"no answer in {2 * TIMEOUT_S:g} s") from None
            else:
                self._collector.forget()
                return found

    def _failed(self, error: KafkaException, doing: str = "", rights: str = "") -> TwinlakeError:
        self._admin.poll(0)
        said, collected = error.args[0], self._collector
        refused = refusal(said, self.login, doing, rights) or collected.refusal(time_is_up=True)
        return refused or self.unreachable("; ".join(filter(None, (str(said), collected.last))))

    def unreachable(self, why: str) -> UnreachableError:
        """What to raise where it did not answer."""
        return UnreachableError(
            what=f"Kafka at {self.login.bootstrap_servers} did not answer",
            why=why,
            remedy="see `twinlake status` and `twinlake logs broker`; for one of your own, see to it, or "
            "fix [kafka] in twinlake.toml",
        )

"""A stage for ingest tests: one fresh topic on the real broker, a lake of its own, and records to play."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.apicurio import Apicurio
from tests.broker import Broker
from tests.project import OURS
from tests.registry import FakeRegistry
from twinlake.base.errors import TimedOutError, UnreachableError
from twinlake.base.times import Clock, utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.ingest.accept import Accepted, accept
from twinlake.ingest.ingest import RUNNING, Ingest
from twinlake.lake.log.fresh_rows import NewRows
from twinlake.lake.log.log import Log
from twinlake.topics.kafka import Kafka
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic, load_topic

LONG = timedelta(seconds=60)


def order(event_id: str, **changes: Any) -> dict[str, Any]:
    """A valid order."""
    return {
        "event_id": event_id,
        "order_id": 1,
        "customer": "anna",
        "region": "north",
        "status": "paid",
        "amount": Decimal("12.50"),
        "ordered_at": datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1),
        **changes,
    }


def body(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    """Avro without a header."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas={}), record)
    return out.getvalue()


def frame(schema_id: int, schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    """Confluent's frame."""
    return b"\0" + schema_id.to_bytes(4, "big") + body(schema, record)


class Stage:
    """What one test needs; every part is real, the registry where the test asks for that."""

    def __init__(
        self, spark: SparkSession, broker: Broker, registry: FakeRegistry | Apicurio, home: Path, name: str
    ) -> None:
        self.spark, self.broker, self.registry = spark, broker, registry
        self.settings = Settings(home=home, in_project=OURS)
        self.lake_of(home)
        self.topic: Topic = replace(load_topic("orders", OURS), name=name)
        self.schema = dict(self.topic.newest.avro)
        self.kafka = Kafka(broker.login)
        self.subject = f"{name}-value"
        if isinstance(registry, FakeRegistry):
            registry.add(self.subject, 7, self.schema)
        self.schema_id = registry.register(self.subject, self.schema)
        self.clock: Clock = utc_now
        self.ingests: list[Ingest] = []
        self.batches: list[int] = []

    def lake_of(self, home: Path) -> Settings:
        """Another state folder that knows the same services."""
        services = Services(bootstrap_servers=self.broker.bootstrap, registry_url=self.registry.url)
        services.save(home / "services.json")
        return Settings(home=home, in_project=OURS)

    def create(self, partitions: int = 2, config: dict[str, str] | None = None) -> None:
        """The topic, waited for: a broker may answer before it knows."""
        name = self.topic.name
        wait_for("the topic", lambda: self.kafka.create(name, partitions, config) or None, 30, every_s=0)

        def whole() -> bool | None:
            found = self.kafka.topic(name)
            return True if found is not None and len(found.partitions) >= partitions else None

        wait_for("the topic's partitions", whole, 30, every_s=0)

        def led() -> bool | None:
            with suppress(UnreachableError):  # a partition is known before its leader knows of it
                return bool(self.kafka.ends(name, range(partitions)))
            return None

        wait_for("the partitions' leaders", led, 30, every_s=0)

    def adopt(self, schema: dict[str, Any]) -> None:
        """The project's next schema file; the next ingest reads with it."""
        number = self.topic.newest.number + 1
        next_one = parse_schema(schema, topic=self.topic.name, number=number, file=f"orders.v{number}.avsc")
        self.topic = replace(self.topic, schemas=(*self.topic.schemas, next_one))

    def recreate(self, partitions: int = 2) -> None:
        """Delete and make again."""
        (deleted,) = self.kafka._admin.delete_topics([self.topic.name], request_timeout=10).values()
        deleted.result()
        gone = lambda: True if self.kafka.topic(self.topic.name) is None else None  # noqa: E731
        wait_for("the topic to be gone", gone, 30, every_s=0)
        self.create(partitions)

    def produce(self, *values: bytes | None, partition: int = 0, key: bytes | None = b"anna") -> None:
        """Records into one partition, in order."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5, "log_level": 0})
        failures: list[Any] = []
        for value in values:
            producer.produce(
                self.topic.name, value, key, partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )  # fmt: skip
        assert producer.flush(30) == 0 and not failures, failures

    def orders(self, *ids: str, partition: int = 0, **changes: Any) -> None:
        """Valid orders with these ids."""
        self.produce(*(self.framed(order(event_id, **changes)) for event_id in ids), partition=partition)

    def framed(self, record: dict[str, Any]) -> bytes:
        """The record as the project's newest schema writes it."""
        return frame(self.schema_id, self.schema, record)

    def ingest(
        self,
        settings: Settings | None = None,
        then: Callable[[Log, int, NewRows | None], None] | None = None,
        **options: Any,
    ) -> Ingest:
        """A started ingest, which calls `then` after each batch; the stage stops it in the end."""
        settings = settings or self.settings
        log = Log(self.spark, settings.lake, self.topic)

        def told(number: int, rows: NewRows | None) -> None:
            self.batches.append(number)
            if then is not None:
                then(log, number, rows)

        found = Ingest(self.spark, settings, self.topic, log, told, self.clock, first_wait_s=0.1, **options)
        self.ingests.append(found)
        found.start()
        return found

    def caught_up(self, ingest: Ingest) -> Ingest:
        """Waits until everything that is in Kafka now is in the log."""
        self.until(lambda: ingest.state == RUNNING and ingest.behind(ingest.broker_ends()) == 0, ingest)
        return ingest

    def until(self, reached: Any, ingest: Ingest) -> None:
        """Waits for a condition, at most a minute."""
        try:
            wait_for("the ingest", lambda: True if reached() else None, LONG.total_seconds(), every_s=0.05)
        except TimedOutError as error:
            raise AssertionError(ingest.state, str(ingest.error)) from error

    def run(self, settings: Settings | None = None, **options: Any) -> Log:
        """Ingests all there is, stops, and returns the log."""
        ingest = self.caught_up(self.ingest(settings, **options))
        ingest.stop()
        return ingest.log

    def stopped(self) -> Ingest:
        """Starts an ingest that is expected to refuse."""
        ingest = self.ingest()
        self.until(lambda: ingest.state == "stopped", ingest)
        return ingest

    def accept(self) -> Accepted:
        """`twinlake topic accept`."""
        return accept(self.settings, Log(self.spark, self.settings.lake, self.topic))

    def verdicts(self, log: Log) -> list[tuple[Any, ...]]:
        """(epoch, partition, offset, verdict, reasons) of all records, in order."""
        rows = log.all(0, log.end()).select("epoch", "partition", "offset", "verdict", "reasons").collect()
        return sorted((r.epoch, r.partition, r.offset, r.verdict, tuple(r.reasons)) for r in rows)

    def close(self) -> None:
        """Nothing reads on."""
        for ingest in self.ingests:
            ingest.stop()

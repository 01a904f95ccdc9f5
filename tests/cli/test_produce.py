"""`produce` against a real broker, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from tests.broker import Broker
from tests.project import PROJECT
from tests.registry import FakeRegistry
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.app import build_app
from twinlake.config.settings import Services, Settings
from twinlake.topics.kafka import Kafka

pytestmark = pytest.mark.services


def produce(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["produce", *arguments])


@pytest.fixture
def registry(home: Path) -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()


def test_every_record_that_is_told_is_in_the_topic(
    home: Path, registry: FakeRegistry, tmp_path: Path
) -> None:
    broker = Broker(tmp_path / "broker").start()
    try:
        Kafka(broker.login).create("orders")
        registry.add("orders-value", 3, json.loads((PROJECT / "schemas/orders.v1.avsc").read_text()))
        services = Services(bootstrap_servers=broker.bootstrap, registry_url=registry.url)
        services.save(Settings(home=home).services_file)

        told = produce("orders", "--count", "500", "--seed", "7", "--span", "2h", "--faults", "--json")
        said = produce("--count", "10", "--rate", "1000")

        assert told.exit_code == said.exit_code == 0, told.output + said.output
        summary = json.loads(told.stdout)
        assert (summary["topic"], summary["seed"], summary["acknowledged"]) == ("orders", 7, 500)
        assert said.stdout.startswith("10 records acknowledged in ")
        assert held(broker) == 510
    finally:
        broker.stop()


def held(broker: Broker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "count"})
    try:
        partitions = consumer.list_topics("orders", timeout=10).topics["orders"].partitions
        ends = (
            consumer.get_watermark_offsets(TopicPartition("orders", one), timeout=10) for one in partitions
        )
        return sum(end for _, end in ends)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("returns", "--count", "1"), "there are no samples for topic 'returns'"),
        (("orders",), "neither --count nor --rate is given"),
        (("orders", "--count", "1", "--span", "soon"), "'soon' is not a duration"),
    ],
)
def test_what_it_cannot_do_is_refused(home: Path, arguments: tuple[str, ...], what: str) -> None:
    done = produce(*arguments)

    assert isinstance(done.exception, UsageError) and done.exception.what == what


def test_without_its_schema_in_the_registry_it_says_how_it_gets_there(
    home: Path, registry: FakeRegistry
) -> None:
    Services(bootstrap_servers="none", registry_url=registry.url).save(Settings(home=home).services_file)

    done = produce("--count", "1")

    assert isinstance(done.exception, UnreachableError | UsageError) or done.exit_code
    assert "twinlake up" in str(done.exception)

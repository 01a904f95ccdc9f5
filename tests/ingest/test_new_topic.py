"""`twinlake new topic --from-kafka` against a real broker and a real registry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from confluent_kafka import Producer
from typer.testing import CliRunner

from tests.apicurio import Apicurio
from tests.broker import Broker
from tests.ingest.stage import frame
from tests.ingest.test_protobuf import THING, serializer_for
from tests.oracle.gallery.json_value import event
from tests.registry import FakeRegistry
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.config.settings import Services
from twinlake.topics.kafka import Kafka
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.some_records import newest_records
from twinlake.topics.topic import load_topic

pytestmark = pytest.mark.services
NUMBERS = itertools.count(1)
SCHEMA: dict[str, Any] = {
    "type": "record", "name": "Thing", "namespace": "test", "doc": "One thing.",
    "fields": [
        {"name": "event_id", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    (tmp_path / "twinlake.toml").write_text("[project]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TWINLAKE_HOME", raising=False)  # whoever runs the tests may have one
    yield Project.load(tmp_path)


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of three partitions, without a record."""
    name, kafka = f"seen_{next(NUMBERS)}", Kafka(broker.login)

    def led() -> bool | None:
        with suppress(UnreachableError):  # a partition is known before its leader knows of it
            found = kafka.topic(name)
            return (found is not None and len(kafka.ends(name, range(3))) == 3) or None
        return None

    kafka.create(name, 3)
    wait_for("the topic and its leaders", led, 30, every_s=0)
    return name


def send(broker: Broker, topic: str, values: Sequence[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 3)
    assert producer.flush(30) == 0


def known(project: Project, broker: Broker, registry_url: str) -> None:
    services = Services(bootstrap_servers=broker.bootstrap, registry_url=registry_url)
    services.save(project.data / "services.json")


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["new", "topic", *arguments])


def test_a_topic_in_json_gets_a_contract_by_which_what_is_in_it_is_valid(
    broker: Broker, project: Project, topic: str
) -> None:
    records = [
        {"event_id": f"e{n}", "at": "2025-01-31T12:00:00Z", "n": n / 2, "who": {"name": "a"}, "tags": ["x"]}
        for n in range(50)
    ]
    send(broker, topic, [*(json.dumps(one).encode() for one in records), None, b"{"])
    known(project, broker, "http://127.0.0.1:9")  # the registry is not asked

    done = asked(topic, "--from-kafka")

    assert done.exit_code == 0, done.output
    document = yaml.safe_load((project.contracts / f"{topic}.yaml").read_text())
    for record in records:
        event(json.dumps(record).encode(), document["schema"][0]["properties"])
    contract = load_topic(topic, project).contract
    assert (contract.event_time, contract.unique) == ("at", "event_id")
    assert contract.discard_after is not None and contract.discard_after.days > 500
    assert "2 of 52 records are no JSON objects, and were left out" in done.stderr


def test_a_topic_in_avro_gets_the_registry_s_newest_schema_and_its_contract(
    broker: Broker, apicurio: Apicurio, project: Project, topic: str
) -> None:
    older = {**SCHEMA, "fields": SCHEMA["fields"][:2]}
    newer = {**SCHEMA, "fields": [*older["fields"], SCHEMA["fields"][2]]}
    first, second = (apicurio.register(f"{topic}-value", one) for one in (older, newer))
    send(broker, topic, [frame(first, older, {"event_id": "a", "at": 0})])
    known(project, broker, apicurio.url)

    done = asked(topic, "--from-kafka")

    assert done.exit_code == 0, done.output
    written = json.loads((project.schemas / f"{topic}.v1.avsc").read_text())
    loaded = load_topic(topic, project)
    assert written == newer and apicurio.register(f"{topic}-value", written) == second
    assert [(one.name, one.type, one.required) for one in loaded.contract.columns] == [
        ("event_id", "string", True), ("at", "timestamp", True), ("note", "string", False),
    ]  # fmt: skip
    assert (loaded.contract.event_time, loaded.contract.unique) == ("at", "event_id")


def test_of_an_empty_topic_its_schema_is_enough(
    broker: Broker, apicurio: Apicurio, project: Project, topic: str
) -> None:
    apicurio.register(f"{topic}-value", SCHEMA)
    known(project, broker, apicurio.url)

    assert asked(topic, "--from-kafka").exit_code == 0
    assert load_topic(topic, project).newest.avro == SCHEMA


VISIT: dict[str, Any] = {
    "type": "object", "required": ["event_id", "at"], "additionalProperties": False,
    "properties": {
        "event_id": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
        "note": {"type": "string"},
    },
}  # fmt: skip


def test_a_topic_in_json_schema_gets_the_registry_s_newest_schema_and_its_contract(
    broker: Broker, apicurio: Apicurio, project: Project, topic: str
) -> None:
    apicurio.register(f"{topic}-value", {"schemaType": "JSON", "schema": VISIT})
    known(project, broker, apicurio.url)

    done = asked(topic, "--from-kafka")

    assert done.exit_code == 0, done.output
    assert json.loads((project.schemas / f"{topic}.v1.json").read_text()) == VISIT
    found = load_topic(topic, project)
    assert (found.contract.format, found.contract.event_time, found.contract.unique) == (
        "json_schema", "at", "event_id",
    )  # fmt: skip
    register(Registry(apicurio.url), found)
    assert len(Registry(apicurio.url).schemas(f"{topic}-value")) == 1


@pytest.mark.parametrize("how", ["text", "compiled"])
def test_a_topic_in_protobuf_gets_a_file_that_can_be_read_however_its_schema_is_registered(
    broker: Broker, apicurio: Apicurio, project: Project, topic: str, how: str
) -> None:
    if how == "compiled":
        serializer_for(apicurio.url, topic, THING)(text="x")
    else:
        apicurio.register(f"{topic}-value", {"schemaType": "PROTOBUF", "schema": THING})
    known(project, broker, apicurio.url)

    done = asked(topic, "--from-kafka")

    assert done.exit_code == 0, done.output
    text = (project.schemas / f"{topic}.v1.proto").read_text()
    assert "message Thing {" in text and "repeated Address others = 15;" in text
    found = load_topic(topic, project)
    assert (found.contract.format, found.newest.message, len(found.newest.fields)) == (
        "protobuf", "shop.Thing", 23,
    )  # fmt: skip
    register(Registry(apicurio.url), found)
    assert len(Registry(apicurio.url).schemas(f"{topic}-value")) == 1


def test_a_schema_that_no_file_by_itself_can_say_is_refused(
    broker: Broker, project: Project, topic: str
) -> None:
    registry = FakeRegistry()
    try:
        known(project, broker, registry.url)
        other = 'syntax = "proto3"; message Other { string city = 1; }'
        registry.add("other.proto", 1, {"schemaType": "PROTOBUF", "schema": other})
        thing = 'syntax = "proto3"; import "other.proto"; message Thing { Other other = 1; }'
        references = [{"name": "other.proto", "subject": "other.proto", "version": 1}]
        said = {"schemaType": "PROTOBUF", "schema": thing, "references": references}
        registry.add(f"{topic}-value", 2, said)
        refused = asked(topic, "--from-kafka").exception
        registry.add(f"{topic}-value", 3, {"schemaType": "XML", "schema": "<a/>"})
        foreign = asked(topic, "--from-kafka").exception
    finally:
        registry.close()

    assert isinstance(refused, UsageError) and "it imports other files than Google's" in refused.why
    assert f"schemas/{topic}.v1.proto" in refused.remedy
    assert isinstance(foreign, UsageError) and "a schema of type XML" in foreign.why
    assert not project.contracts.exists() and not project.schemas.exists()


def test_a_sample_is_bounded_and_has_the_newest_records_of_each_partition(broker: Broker, topic: str) -> None:
    send(broker, topic, [str(n).encode() for n in range(300)])
    kafka = Kafka(broker.login)
    found = kafka.topic(topic)
    assert found is not None

    values = {int(one.value or b"") for one in newest_records(kafka, found, 30)}

    assert values == set(range(270, 300))
    assert len(newest_records(kafka, found, 1000)) == 300


def test_an_external_kafka_of_twinlake_toml_is_asked_before_anything_was_started(
    broker: Broker, project: Project, topic: str
) -> None:
    send(broker, topic, [b'{"at": "2026-01-31T12:00:00Z"}'])
    project.data.mkdir()
    (project.data / "twinlake.toml").write_text(f'[kafka]\nbootstrap_servers = "{broker.bootstrap}"\n')

    assert asked(topic, "--from-kafka").exit_code == 0
    assert load_topic(topic, project).contract.event_time == "at"


def test_a_topic_of_which_nothing_can_be_known_is_refused_and_nothing_is_written(
    broker: Broker, project: Project, topic: str
) -> None:
    registry = FakeRegistry()
    try:
        known(project, broker, registry.url)
        empty = asked(topic, "--from-kafka").exception
        send(broker, topic, [b"\1", b"text"])
        neither = asked(topic, "--from-kafka").exception
        absent = asked("nowhere", "--from-kafka").exception
        union = {"name": "u", "type": ["int", "string"]}
        registry.add(f"{topic}-value", 1, {**SCHEMA, "fields": [*SCHEMA["fields"], union]})
        unsupported = asked(topic, "--from-kafka").exception
    finally:
        registry.close()

    assert isinstance(empty, UsageError) and "the topic is empty" in empty.why
    assert isinstance(neither, UsageError) and "none of 2 records is a JSON object" in neither.why
    assert isinstance(absent, UsageError) and "there is no topic nowhere in Kafka at" in absent.what
    assert (
        isinstance(unsupported, UsageError) and "a union must be null and one other type" in unsupported.why
    )
    assert not project.contracts.exists() and not project.schemas.exists()


def test_without_a_kafka_it_says_how_to_start_one(project: Project) -> None:
    refused = asked("things", "--from-kafka").exception

    assert isinstance(refused, UnreachableError) and "twinlake up" in refused.remedy

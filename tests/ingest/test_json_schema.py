"""A topic whose values are JSON behind Confluent's header: each is read as the schema of its id says."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Row, SparkSession

from tests.ingest import framed
from tests.ingest.asking import answered
from tests.ingest.framed import first_look, mutated, plain
from tests.ingest.json_cases import AT, BROKEN, SOUND
from tests.ingest.stage import Stage
from tests.registry import confluent_client
from twinlake.ingest.writer_schema import Writer
from twinlake.topics import registered
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import records_in
from twinlake.witness.answer import EQUAL

HEAD = b"\0\0\0\0\x07"
MOMENT = {"type": "string", "format": "date-time"}
THING: dict[str, Any] = {
    "at": MOMENT, "text": {"type": ["string", "null"]}, "small": {"type": "integer", "format": "int32"},
    "number": {"type": "integer"}, "price": {"type": "number", "format": "decimal(12,2)"},
    "share": {"type": "number", "format": "decimal(2,2)"}, "ratio": {"type": "number"},
    "flag": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "day": {"type": "string", "format": "date"},
    "raw": {"type": "string", "contentEncoding": "base64"}, "address": {"$ref": "#/$defs/address"},
    "items": {
        "type": "array",
        "items": {"type": "object", "properties": {"price": {"type": "number", "format": "decimal(9,2)"}}},
    },
    "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
}  # fmt: skip
ADDRESS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zip": {"type": "integer", "format": "int32"}},
}


def schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#", "title": "Thing", "type": "object",
        "properties": dict(properties), "required": ["at", *required], "additionalProperties": False,
        "$defs": {"address": ADDRESS},
    }  # fmt: skip


def read_by(name: str, *documents: Mapping[str, Any]) -> Topic:
    return framed.read_by(name, *(registered.of("JSON", one) for one in documents))


def learned(topic: Topic, spark: SparkSession) -> Writer:
    return framed.learned(topic, spark, registered.of("JSON", schema(THING)))


@pytest.fixture(scope="module")
def looked(spark: SparkSession) -> dict[bytes, Row]:
    """Every case as ingest's first look finds it, with the event that the log would have."""
    topic = read_by("things", schema(THING))
    writer = learned(topic, spark)
    values = [HEAD + text for text, _ in (*SOUND, *BROKEN)]
    return first_look(spark, topic, writer, values)


@pytest.mark.parametrize(("text", "fields"), SOUND)
def test_what_has_the_shape_is_an_event_with_exact_values(
    looked: dict[bytes, Row], text: bytes, fields: dict[str, Any]
) -> None:
    row = looked[text]

    assert row.reasons is None
    assert {name: plain(row.event[name]) for name in fields} == fields


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_what_has_not_the_shape_says_where(looked: dict[bytes, Row], text: bytes, reason: str) -> None:
    assert (looked[text].reasons, looked[text].event) == (reason, None)


def serializer(stage: Stage, document: Mapping[str, Any]) -> Callable[[Any], bytes]:
    """Confluent's own, which registers the schema."""
    client = confluent_client(stage.registry.url)
    made = JSONSerializer(json.dumps(document), client)
    context = SerializationContext(stage.topic.name, MessageField.VALUE)
    return lambda value: bytes(made(value, context) or b"")


def things(stage: Stage, *documents: Mapping[str, Any]) -> None:
    framed.things(stage, *(registered.of("JSON", one) for one in documents))


@pytest.mark.usefixtures("way")
def test_what_confluent_client_serializer_writes_is_read_and_what_nobody_wrote_is_in_quarantine(
    faked: Stage,
) -> None:
    document = schema(THING)
    things(faked, document)
    written = serializer(faked, document)
    thing = {
        "at": "2026-01-31T12:00:00.5Z", "text": "Krak\u00f3w", "small": -1, "number": 2**63 - 1,
        "price": 12.5, "ratio": 0.1, "flag": True, "day": "2026-01-31", "raw": "AP8=",
        "address": {"city": "Bonn", "zip": 53111},
        "items": [{"price": 1.25}, {}], "scores": {"a": 1},
    }  # fmt: skip
    good = written(thing)
    faked.produce(
        good, written({"at": "2026-01-31T12:00:00Z"}), good[5:], good[:-1], good + b"}", b"\0\0\0\0\x63{}",
        good[:5] + b'{"at": 1}', good[:5] + b'{"text": "x"}', b"", None, good[:5],
    )  # fmt: skip

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [
        ("valid", ()), ("valid", ()), ("invalid", ("bad_header",)), ("invalid", ("malformed_body",)),
        ("invalid", ("malformed_body",)), ("invalid", ("unknown_schema",)), ("invalid", ("wrong_type:at",)),
        ("invalid", ("missing:at",)), ("invalid", ("bad_header",)), ("invalid", ("null_value",)),
        ("invalid", ("malformed_body",)),
    ]  # fmt: skip
    first, second = log.rows(0, log.end()).orderBy("_offset").collect()
    assert {name: plain(first[name]) for name in THING} == {
        "at": datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC), "text": "Krak\u00f3w", "small": -1,
        "number": 2**63 - 1, "price": Decimal("12.50"), "share": None, "ratio": 0.1,
        "flag": True, "day": date(2026, 1, 31), "raw": b"\0\xff", "address": {"city": "Bonn", "zip": 53111},
        "items": [{"price": Decimal("1.25")}, {"price": None}], "scores": {"a": 1},
    }  # fmt: skip
    assert {second[name] for name in THING if name != "at"} == {None}
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences, answer.compared) == (EQUAL, (), 11)


FIRST = {
    "at": MOMENT,
    "count": {"type": "integer", "format": "int32"},
    "who": {"type": "string"},
    "gone": {"type": "string"},
}
SECOND = {
    "at": MOMENT, "count": {"type": "number"}, "customer": {"type": "string", "aliases": ["who"]},
    "rank": {"type": "integer", "default": 3},
    "price": {"type": "number", "format": "decimal(5,2)", "default": 1.5},
    "since": {**MOMENT, "default": "2026-01-01T00:00:00Z"},
    "tags": {"type": "array", "items": {"type": "string"}},
}  # fmt: skip


@pytest.mark.usefixtures("way")
def test_older_records_are_read_by_the_newest_schema_with_its_names_types_and_defaults(faked: Stage) -> None:
    things(faked, schema(FIRST, "count", "who"))
    old = serializer(faked, schema(FIRST, "count", "who"))
    early = old({"at": "2026-01-31T12:00:00Z", "count": 1, "who": "anna", "gone": "x"})
    faked.produce(early)
    faked.run()
    faked.topic = read_by(faked.topic.name, schema(FIRST, "count", "who"), schema(SECOND, "count"))
    register(Registry(faked.registry.url), faked.topic)
    new = serializer(faked, schema(SECOND, "count"))
    faked.produce(new({"at": "2026-01-31T12:00:00Z", "count": 0.5, "customer": "ben", "tags": ["a"]}), early)

    log = faked.run()

    shown = [row.asDict() for row in log.rows(0, log.end()).orderBy("_offset").collect()]
    names = ("count", "customer", "rank", "price", "since", "tags")
    since = datetime(2026, 1, 1, tzinfo=UTC)
    then = (1.0, "anna", 3, Decimal("1.50"), since, None)
    assert [tuple(plain(row[name]) for name in names) for row in shown] == [
        then, (0.5, "ben", None, None, None, ["a"]), then,
    ]  # fmt: skip
    answer = answered(faked, log)
    assert (answer.verdict, answer.differences) == (EQUAL, ())


def test_records_of_a_schema_that_cannot_be_read_wait(faked: Stage) -> None:
    things(faked, schema(FIRST, "count"))
    other = schema({**FIRST, "count": {"type": "string"}}, "count")
    open_ = schema({**FIRST, "count": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "count")
    harmless = schema({**FIRST, "more": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "count")
    at = "2026-01-31T12:00:00Z"
    faked.produce(
        serializer(faked, other)({"at": at, "count": "x"}), serializer(faked, open_)({"at": at, "count": 1}),
        serializer(faked, harmless)({"at": at, "count": 1, "more": "x"}),
    )  # fmt: skip
    avro = {"type": "record", "name": "Thing", "fields": [{"name": "at", "type": "long"}]}
    faked.produce(b"\0" + faked.registry.register(faked.subject, avro).to_bytes(4, "big") + b"\2")

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [
        ("invalid", ("unreadable_by_schema:count",)), ("invalid", ("unreadable_by_schema:count",)),
        ("valid", ()), ("invalid", ("unreadable_by_schema",)),
    ]  # fmt: skip
    assert answered(faked, log).verdict == EQUAL


def test_bytes_that_are_changed_at_random_are_what_python_reads_or_are_refused(
    faked: Stage, request: pytest.FixtureRequest
) -> None:
    drawn = random.Random(request.config.option.seed)
    things(faked, schema(THING))
    head = serializer(faked, schema(THING))({"at": "2026-01-31T12:00:00Z"})[:5]
    values = [head + drawn.choice(SOUND)[0] for _ in range(600)]
    faked.produce(*(mutated(one, drawn) for one in values))

    log = faked.run()

    assert records_in(log.metadata()["counts"]) == 600
    answer = answered(faked, log, drawn.randrange(1, 1 << 30))
    assert (answer.verdict, answer.differences) == (EQUAL, ())


def test_a_decimal_of_too_many_digits_is_named_so(spark: SparkSession) -> None:
    topic = read_by("things", schema(THING))
    writer = learned(topic, spark)
    long = b"{" + AT + b', "price": 1' + b"0" * 40 + b"}"

    (row,) = first_look(spark, topic, writer, [HEAD + long]).values()

    assert row.reasons == "decimal_out_of_range:price"

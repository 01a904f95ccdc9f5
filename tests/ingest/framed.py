"""Topics whose values name a schema of another language than Avro: made, learned, looked at, damaged."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row, SparkSession

from tests.ingest.fed import contract_of, renamed
from tests.ingest.stage import Stage
from tests.ingest.test_verdicts import KAFKA
from twinlake.ingest import first_pass
from twinlake.ingest.decode_avro import decoded_type
from twinlake.ingest.writer_schema import Writer, in_avro, learn
from twinlake.scaffold.contract_text import property_of
from twinlake.topics.contract import Column
from twinlake.topics.formats import ENDINGS, TYPES
from twinlake.topics.registered import schema_type
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.schema import registered_schema
from twinlake.topics.topic import Topic, with_earlier_names

MARK = b"\1\2\3\4\5\6\7\x08"
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def read_by(name: str, *said: Mapping[str, Any]) -> Topic:
    """A topic with these schemas, the newest last; its event time is `at`."""
    format_ = TYPES[schema_type(said[-1])]
    schemas = with_earlier_names([
        registered_schema(one, topic=name, number=number, file=f"{name}.v{number}.{ENDINGS[format_]}")
        for number, one in enumerate(said, start=1)
    ])  # fmt: skip
    columns = [
        Column(name=one.name, type=one.type, required=not one.nullable or one.name == "at")
        for one in schemas[-1].fields
    ]
    properties = [property_of(one, is_unique=False) for one in columns]
    return Topic(name=name, contract=contract_of(name, properties, format=format_), schemas=schemas)


def things(stage: Stage, *said: Mapping[str, Any]) -> None:
    """The stage's topic, in things of these schemas, which it registers."""
    stage.topic = read_by(renamed(stage), *said)
    stage.create(partitions=1)
    register(Registry(stage.registry.url), stage.topic)


def learned(topic: Topic, spark: SparkSession, said: Mapping[str, Any], number: int = 7) -> Writer:
    """What ingest learns of a schema that its records name."""
    avro, others = in_avro(topic, number, dict(said))
    found = learn(topic, number, avro, lambda text: decoded_type(spark, text), others)
    assert isinstance(found, Writer), found
    return found


def first_look(spark: SparkSession, topic: Topic, writer: Writer, values: list[bytes]) -> dict[bytes, Row]:
    """By what is behind the header, each value as ingest's first look finds it, with the log's event."""
    rows = [(None, value, "things", 0, at, NOW, 1, None) for at, value in enumerate(values)]
    found = spark.createDataFrame(rows, KAFKA)
    for expressions in first_pass.selections(topic, [writer], MARK, writer.stored, closely=True):
        found = found.selectExpr(*expressions)
    return {bytes(row.value)[5:]: row for row in found.collect()}


def plain(value: Any) -> Any:
    """What Spark shows, in Python's own types."""
    if isinstance(value, Row):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def mutated(value: bytes, drawn: random.Random) -> bytes:
    """One of the ways to damage bytes."""
    at, way = drawn.randrange(len(value)), drawn.randrange(5)
    if way == 0:
        return value[:at] + bytes([drawn.randrange(256)]) + value[at + 1 :]
    if way == 1:
        return value[:at] + bytes([value[at] ^ (1 << drawn.randrange(8))]) + value[at + 1 :]
    if way == 2:
        return value[:at]
    if way == 3:
        return value[:at] + drawn.randbytes(drawn.randrange(1, 5)) + value[at:]
    return value[:at] + value[at + drawn.randrange(1, 4) :]

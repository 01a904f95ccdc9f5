"""What Kafka and the registry say of a topic: its newest schema, or a sample of its JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from twinlake.base.errors import ContractError, UsageError
from twinlake.scaffold.proto_text import editable
from twinlake.scaffold.sample import JsonObject, record_of
from twinlake.topics import registered
from twinlake.topics.formats import PROTOBUF
from twinlake.topics.kafka import LOG_APPEND_TIME, TIMESTAMPS, Kafka
from twinlake.topics.registry import Registry
from twinlake.topics.schema import Schema, registered_schema
from twinlake.topics.some_records import Sampled, newest_records
from twinlake.topics.topic import refuse_defaults

_MAGIC, _HEADER = b"\0", 5


@dataclass(frozen=True, kw_only=True)
class JsonSample:
    """Records of a topic in JSON with Kafka's times of them."""

    records: tuple[JsonObject, ...]
    times_ms: tuple[int, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The newest schema of a topic whose records name one."""

    schema: Schema
    remarks: tuple[str, ...] = ()


def look(name: str, kafka: Kafka, registry: Callable[[], Registry], most: int) -> JsonSample | Registered:
    """What a topic's records are; the registry is asked only where they are not JSON.

    UsageError for a topic that is not there, has nothing to see, or has records of neither form.
    """
    topic = kafka.topic(name)
    if topic is None:
        raise UsageError(
            f"there is no topic {name} in Kafka at {kafka.login.bootstrap_servers}", "",
            "name one that is there; without --from-kafka the topic is made by `twinlake up` or `reload`",
        )  # fmt: skip
    sampled = newest_records(kafka, topic, most)
    remarks = _of_timestamps(name, kafka)
    read = [(record_of(one.value), one) for one in sampled if one.value is not None]
    json = [(record, one.timestamp_ms) for record, one in read if record is not None]
    if json and len(json) >= sum(map(_is_framed, sampled)):
        others = len(sampled) - len(json)
        passed = (f"{others:,} of {len(sampled):,} records are no JSON objects, and were left out",)
        return JsonSample(
            records=tuple(record for record, _ in json), times_ms=tuple(at for _, at in json),
            remarks=(*remarks, *(passed if others else ())),
        )  # fmt: skip
    subject = f"{name}-value"
    schemas = registry().schemas(subject)
    if not schemas:
        seen = f"none of {len(sampled):,} records is a JSON object" if sampled else "the topic is empty"
        raise UsageError(
            f"it is not known what the records of topic {name} are",
            f"{seen}, and the registry has no schema {subject}",
            "register its schema, or give a sample: --sample FILE",
        )  # fmt: skip
    return Registered(schema=_readable(name, [*schemas.values()][-1]), remarks=remarks)


def _is_framed(record: Sampled) -> bool:
    """Whether it may name a schema of the registry."""
    return record.value is not None and record.value[:1] == _MAGIC and len(record.value) >= _HEADER


def _readable(name: str, said: dict[str, Any]) -> Schema:
    try:
        schema = registered_schema(said, topic=name, number=1, file=f"{name}-value")
        refuse_defaults(schema)
        if schema.format == PROTOBUF:
            schema = _as_file(schema)
    except ContractError as error:
        raise UsageError(
            f"the schema {name}-value of the registry cannot be a topic's here",
            f"{error.path}: {error.why_text}".removeprefix(": "), error.remedy or "register one that can",
        ) from error  # fmt: skip
    return schema


def _as_file(schema: Schema) -> Schema:
    """The same by the text of a file; ContractError for what no file by itself can say."""
    text = editable(schema.registered)
    if text is None:
        why = "it imports other files than Google's, or is compiled and has what is not written out as text"
        steps = f"write schemas/{schema.topic}.v1.proto with all that its message has, without --from-kafka"
        raise ContractError(schema.file, "", why, steps)
    return replace(schema, source=registered.of(registered.PROTOBUF, text))


def _of_timestamps(name: str, kafka: Kafka) -> tuple[str, ...]:
    found = kafka.timestamp_type(name)
    if found == LOG_APPEND_TIME:
        return ()
    return (
        f"topic {name} has {TIMESTAMPS}={found}, and ingest needs {LOG_APPEND_TIME}: have that set with "
        f"kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config "
        f"{TIMESTAMPS}={LOG_APPEND_TIME}",
    )

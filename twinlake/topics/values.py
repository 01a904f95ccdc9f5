"""Owns the writing of an event's fields as a record's value, in the format that the topic's contract says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro

from twinlake.topics import protobuf_values
from twinlake.topics.formats import JSON, JSON_SCHEMA, PROTOBUF
from twinlake.topics.topic import Topic

ValueWriter = Callable[[Mapping[str, Any]], bytes]


def value_writer(topic: Topic, schema_id: int) -> ValueWriter:
    """Writes fields as values of the topic's newest schema, which the registry has under this id.

    ValueError, TypeError or KeyError for an event that the schema has no place for.
    """
    head = b"\0" + schema_id.to_bytes(4, "big")
    if topic.contract.format == JSON:
        return lambda event: dumps(event).encode()
    if topic.contract.format == JSON_SCHEMA:
        return lambda event: head + dumps(_without_nulls(event)).encode()
    if topic.contract.format == PROTOBUF:
        return protobuf_values.writer(topic.newest.registered, topic.newest.file, head)
    schema: Any = fastavro.parse_schema(dict(topic.newest.avro))

    def avro(event: Mapping[str, Any]) -> bytes:
        written = BytesIO()
        fastavro.schemaless_writer(written, schema, dict(event))
        return head + written.getvalue()

    return avro


def _without_nulls(value: Any) -> Any:
    """What is not there is left out: few JSON Schemas have null for it."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list | tuple) else value


def dumps(value: Any) -> str:
    """The value as JSON text on one line; TypeError for what JSON has no place for."""
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return json.dumps(value.astimezone(UTC).isoformat().replace("+00:00", "Z"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {dumps(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dumps, value)) + "]"
    raise TypeError(f"JSON has no place for {value!r}")

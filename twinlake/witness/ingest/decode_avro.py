"""Owns the reading of a value in Confluent's frame: its schema's id, its fields, and what no log can keep."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro

from twinlake.witness.ingest.avro_schema import Node, Schema
from twinlake.witness.ingest.record import Malformed, Unsure, Value
from twinlake.witness.types import EXACT

HEADER = 5
YEARS = {
    "date": (-719_162, 2_932_896),
    "timestamp-millis": (-62_135_596_800_000, 253_402_300_799_999),
    "timestamp-micros": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
"""The years 1 to 9999, in days, milliseconds and microseconds."""
_INT, _LONG = 1 << 31, 1 << 63


@dataclass(frozen=True)
class Decoded:
    """The fields that a topic may have, by the writer's names; what is wrong with them, as reasons."""

    values: Mapping[str, Value]
    wrong: tuple[str, ...]


def schema_id(value: bytes) -> int | None:
    """The id in a frame's header, None for one that no registry gives; Malformed for what is no frame."""
    if len(value) < HEADER or value[0] != 0:
        raise Malformed("bad_header")
    found = int.from_bytes(value[1:HEADER], "big")
    return found if found < _INT else None


def decode(value: bytes, schema: Schema) -> Decoded:
    """The body of a frame. Malformed where it is not one record of the schema to its last byte, Unsure where
    it is one, but not as the specification has it written."""
    body = value[HEADER:]
    raw = _read(body, schema)
    wrong: dict[str, None] = {}
    values = {
        name: _Field(name, wrong).value(raw[name], node)
        for name, node in schema.nodes.items()
        if node is not None
    }
    return Decoded(values, tuple(wrong))


def _read(body: bytes, schema: Schema) -> dict[str, Any]:
    stream = io.BytesIO(body)
    try:
        raw: Any = fastavro.schemaless_reader(
            stream, schema.physical, None, handle_unicode_errors="surrogateescape"
        )
    except (EOFError, IndexError, ValueError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise Malformed("malformed_body") from error
    if stream.tell() != len(body):
        raise Malformed("malformed_body")
    again = io.BytesIO()
    try:
        fastavro.schemaless_writer(again, schema.physical, raw)
    except UnicodeEncodeError:  # a map's key: it is named below
        return dict(raw)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unsure("it cannot be written again") from error
    if again.getvalue() != body:
        raise Unsure("it is not written as the specification says")
    return dict(raw)


class _Field:
    """One of the writer's fields: a reason names it, however deep what is wrong lies."""

    def __init__(self, name: str, wrong: dict[str, None]) -> None:
        self._name, self._wrong = name, wrong
        self._depth = 0

    def value(self, raw: Any, node: Node) -> Value:
        if raw is None:
            return None
        if node.inner:
            self._depth += 1
            try:
                return self._nested(raw, node)
            finally:
                self._depth -= 1
        if node.sent == "decimal":
            return self._decimal(raw, node)
        if node.sent in YEARS:
            return self._time(raw, node.sent)
        if node.sent == "string":
            return self._text(raw)
        if node.sent == "int" and not -_INT <= raw < _INT:
            raise Unsure("an int has more than 32 bits")
        return raw

    def _nested(self, raw: Any, node: Node) -> Value:
        if node.sent == "record":
            return {name: self.value(raw[name], inner) for name, inner in node.inner}
        inner = node.inner[0][1]
        if node.sent == "array":
            return [self.value(one, inner) for one in raw]
        if any("\ud800" <= sign <= "\udfff" for key in raw for sign in key):
            self._is_wrong("invalid_utf8")
        return {key: self.value(one, inner) for key, one in raw.items()}

    def _text(self, raw: Any) -> Value:
        if isinstance(raw, str):  # beside bytes in a union
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return self._is_wrong("invalid_utf8")

    def _decimal(self, raw: bytes, node: Node) -> Value:
        if not raw:
            raise Malformed("malformed_body")
        number = int.from_bytes(raw, "big", signed=True)
        if abs(number) >= 10**node.type.precision:
            return self._is_wrong("decimal_out_of_range")
        return Decimal(number).scaleb(-node.type.scale, EXACT)

    def _time(self, raw: int, sent: str) -> Value:
        micros = raw * 1000 if sent == "timestamp-millis" else raw
        if self._depth and not -_LONG <= micros < _LONG:
            raise Malformed("malformed_body")
        low, high = YEARS[sent]
        return micros if low <= raw <= high else self._is_wrong("time_out_of_range")

    def _is_wrong(self, code: str) -> None:
        self._wrong[f"{code}:{self._name}"] = None

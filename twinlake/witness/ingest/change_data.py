"""Owns change data: what an envelope of Debezium's must have, its time, what a redelivery has in common."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from twinlake.witness.ingest.decode_avro import YEARS
from twinlake.witness.ingest.record import Value

PLACES = {"postgresql": ("lsn", "txId"), "mysql": ("file", "pos", "row")}
"""By database, the fields of `source` that say where in its log a change was."""
_OPERATIONS = ("r", "c", "u", "d", "t")
_NEEDS = {"before": ("d",), "after": ("r", "c", "u")}
_UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_BYTES = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
_MAY_LACK = "txId"


def event_time(fields: Mapping[str, Value]) -> int | None:
    """When the database made the change, in microseconds."""
    millis = (fields["source"] or {}).get("ts_ms")
    low, high = YEARS["timestamp-millis"]
    return millis * 1000 if millis is not None and low <= millis <= high else None


def broken(database: str, fields: Mapping[str, Value]) -> Iterator[str]:
    """Reasons why it is no change, or lacks a row's values."""
    op, source = fields["op"], fields["source"] or {}
    if op is None:
        yield "missing:op"
    elif op not in _OPERATIONS:
        yield "not_allowed:op"
    for name in ("ts_ms", "snapshot", *PLACES[database]):
        if name != _MAY_LACK and source.get(name) is None:
            yield f"missing:source.{name}"
    if source.get("ts_ms") is not None and event_time(fields) is None:
        yield "time_out_of_range:source.ts_ms"
    for name, needing in _NEEDS.items():
        if op in needing and fields[name] is None:
            yield f"missing:{name}"
        if _is_unavailable(fields[name]):
            yield f"unavailable_value:{name}"


def _is_unavailable(value: Value) -> bool:
    """Whether a text or bytes in a row stand for a large value that the database did not log."""
    if isinstance(value, dict):
        return any(map(_is_unavailable, value.values()))
    if isinstance(value, list):
        return any(map(_is_unavailable, value))
    return value in (_UNAVAILABLE, _UNAVAILABLE_BYTES, _UNAVAILABLE.encode())


def identity(database: str, fields: Mapping[str, Value], key: bytes | None) -> str:
    """What two records share only where one is the other's redelivery."""
    op, source = fields["op"], fields["source"] or {}
    parts: list[Any] = ["change" if op in ("c", "u", "d") else op, source.get("snapshot")]
    parts += [source.get(name) for name in PLACES[database]]
    parts += [None if key is None else key.hex(), fields["before"], fields["after"]]
    return json.dumps(parts, default=repr)

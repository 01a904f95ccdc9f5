"""Judges a gallery topic's records as they came from the broker, by its schema and contract alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS

from tests.oracle.gallery import envelopes
from tests.oracle.gallery.json_value import NoEventError
from tests.oracle.gallery.json_value import event as json_event
from tests.oracle.gallery.schemas import Decode
from tests.oracle.topic import Records

Record = dict[str, Any]
"""The event's fields, and beside them `partition`, `offset` and `timestamp` (UTC)."""
Rows = dict[tuple[Any, ...], dict[str, Any]]
"""What a table shows: by the values of its keys, those of its other columns."""
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_HEADER_BYTES = 5


def valid(
    records: Records, schema: Mapping[str, Any] | Decode | None, contract: Mapping[str, Any]
) -> list[Record]:
    """The records that count: decodable, within every rule, in time, and of each id the first one.

    An id stays within one key, so a partition's order decides which is the first. `schema` is Avro's, None
    for a topic in JSON, of other languages what decodes a value. A record that deletes its key has None for
    every field but those of the key; of topics that show them, records have `_key` and `_tombstone` besides,
    of change data `source.ts_ms` as a moment.
    """
    parsed = fastavro.parse_schema(dict(schema)) if isinstance(schema, Mapping) else None
    decode = json_event if schema is None or isinstance(schema, Mapping) else schema
    custom = {one["property"]: one["value"] for one in contract["customProperties"]}
    properties = contract["schema"][0]["properties"]
    changes = "changeData" in custom
    unique = next((one["name"] for one in properties if one.get("unique")), "")
    seen: dict[str, datetime] = {}
    found = []
    for row in sorted(range(len(records)), key=lambda row: (records.partitions[row], records.offsets[row])):
        timestamp = _EPOCH + timedelta(milliseconds=records.timestamps_ms[row])
        place = {"partition": records.partitions[row], "offset": records.offsets[row]}
        value = records.values[row]
        try:
            key = _key(records.keys[row], custom.get("keyFormat", "bytes" if changes else None), properties)
        except NoEventError:
            continue
        if value is None:
            if custom.get("nullValues") == "delete" and records.keys[row] is not None:
                gone = _deleted(key["_key"], properties)
                found.append({**gone, **key, **place, "timestamp": timestamp, "_tombstone": True})
            continue
        event = _decoded(value, parsed) if parsed is not None else _by(decode, value, properties)
        if event is None or any(_is_broken(one, event[one["name"]]) for one in properties):
            continue
        if changes:
            if not envelopes.counts(event):
                continue
            event["source.ts_ms"] = envelopes.time(event)
        lag = timestamp - event[custom.get("eventTime", "source.ts_ms")]
        if -lag > _length(custom["futureTolerance"]):
            continue
        if not changes and lag > _length(custom["discardAfter"]):
            continue
        known = envelopes.identity(event, records.keys[row]) if changes else event[unique]
        before = seen.get(known)
        if before is not None and timestamp - before <= _length(custom["uniqueWithin"]):
            continue
        seen[known] = timestamp
        if custom.get("nullValues") == "delete":
            key = {**key, "_tombstone": False}
        found.append({**event, **key, **place, "timestamp": timestamp})
    return found


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _key(key: bytes | None, written: str | None, properties: Any) -> Record:
    """The pseudo-column of a topic that shows its keys; NoEventError for one that is not as it should be."""
    if written is None:
        return {}
    if key is None or written == "bytes":
        return {"_key": key}
    if written == "json":
        return {"_key": json_event(key, [one for one in properties if one.get("primaryKey")])}
    try:
        return {"_key": key.decode()}
    except UnicodeDecodeError as error:
        raise NoEventError(str(error)) from error


def _deleted(key: Any, properties: Any) -> Record:
    inside = (
        key if isinstance(key, dict) else {one["name"]: key for one in properties if one.get("primaryKey")}
    )
    return {one["name"]: inside.get(one["name"]) for one in properties}


def _by(decode: Decode, value: bytes, properties: Any) -> Record | None:
    try:
        return decode(value, properties)
    except NoEventError:
        return None


def _decoded(value: bytes, schema: Any) -> Record | None:
    if len(value) < _HEADER_BYTES or value[0] != 0:
        return None
    body = BytesIO(value[_HEADER_BYTES:])
    LOGICAL_READERS["bytes-decimal"] = LOGICAL_READERS["fixed-decimal"] = _decimal
    try:
        event = fastavro.schemaless_reader(body, schema, None)
    except (EOFError, IndexError, ValueError):  # cut short, no branch of a union, or no UTF-8
        return None
    assert isinstance(event, dict)
    return None if body.read(1) else event


def _decimal(sent: bytes, writer: Any, _: Any = None) -> Decimal:
    """fastavro takes no bytes for 0 and rounds what has too many digits."""
    unscaled = int.from_bytes(sent, "big", signed=True)
    if not sent or abs(unscaled) >= 10 ** writer["precision"]:
        raise ValueError("it is no decimal of its schema")
    return Decimal(unscaled).scaleb(-writer.get("scale", 0), Context(prec=writer["precision"]))


def _is_broken(rule: Mapping[str, Any], value: Any) -> bool:
    if value is None:
        return bool(rule.get("required"))
    options = rule.get("logicalTypeOptions", {})
    allowed = [one["value"] for one in rule.get("enum", [])]
    return (
        (options.get("minLength", 0) > 0 and value == "")
        or ("minimum" in options and value < options["minimum"])
        or bool(allowed and value not in allowed)
    )


def _length(text: str) -> timedelta:
    number, unit = text.split()
    return timedelta(seconds=int(number) * _UNITS[unit.removesuffix("s")])

"""The plain loop's decoder: Confluent frames of orders to columns, one fastavro call per record.

Two things make it about 1.5 times as fast as the obvious form: the logical types are left to polars (fastavro
would build a Decimal and a datetime for every record), and columns are built instead of a list of rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import polars as pl

HEADER_BYTES = 5
CENTS_LIMIT = 10**12  # decimal(12,2)
FIRST_MS, END_MS = -62_135_596_800_000, 253_402_300_800_000  # years 1 to 9999


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """The sound records as columns, and at which places of the input they were."""

    places: list[int]
    events: pl.DataFrame  # event_id, order_id, customer, region, status, cents, ordered_ms


def physical(schema: dict[str, Any]) -> Any:
    """The schema without its logical types: decimals stay bytes, times stay milliseconds."""
    plain = json.loads(json.dumps(schema))
    for field in plain["fields"]:
        if isinstance(field["type"], dict) and "logicalType" in field["type"]:
            field["type"] = field["type"]["type"]
    return fastavro.parse_schema(plain)


def load_schema(path: Path) -> Any:
    """The physical schema of the file `<topic>.v<N>.avsc`."""
    return physical(json.loads(path.read_text()))


def decode(values: Sequence[bytes | None], schema_id: int, schema: Any) -> Decoded:
    """Decode every value; one that is not an event of the schema, to its last byte, is left out."""
    header = b"\0" + schema_id.to_bytes(4, "big")
    read = fastavro.schemaless_reader
    places: list[int] = []
    found: list[dict[str, Any]] = []
    for place, value in enumerate(values):
        if value is None or not value.startswith(header):
            continue
        body = BytesIO(value)
        body.seek(HEADER_BYTES)
        try:
            event: Any = read(body, schema, None)
        except (EOFError, IndexError, ValueError, OverflowError, MemoryError, TypeError):
            continue
        if body.tell() == len(value):
            places.append(place)
            found.append(event)
    cents = [int.from_bytes(event["amount"], "big", signed=True) for event in found]
    times = [event["ordered_at"] for event in found]
    sound = [
        -CENTS_LIMIT < amount < CENTS_LIMIT and FIRST_MS <= moment < END_MS
        for amount, moment in zip(cents, times, strict=True)
    ]
    if not all(sound):
        places = [place for place, good in zip(places, sound, strict=True) if good]
        found = [event for event, good in zip(found, sound, strict=True) if good]
        cents = [amount for amount, good in zip(cents, sound, strict=True) if good]
        times = [moment for moment, good in zip(times, sound, strict=True) if good]
    columns: dict[str, pl.Series] = {
        "event_id": pl.Series([event["event_id"] for event in found], dtype=pl.String),
        "order_id": pl.Series([event["order_id"] for event in found], dtype=pl.Int64),
        "customer": pl.Series([event["customer"] for event in found], dtype=pl.String),
        "region": pl.Series([event["region"] for event in found], dtype=pl.String),
        "status": pl.Series([event["status"] for event in found], dtype=pl.String),
        "cents": pl.Series(cents, dtype=pl.Int64),
        "ordered_ms": pl.Series(times, dtype=pl.Int64),
    }
    return Decoded(places=places, events=pl.DataFrame(columns))

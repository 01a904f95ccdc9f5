"""Records that nobody should send: undecodable, of wrong schemas, without a value, with enormous values."""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from typing import Any

import fastavro

from records import FaultShares, Sample
from tests.project import PROJECT

SCHEMA_ID = 1
FAULTS = FaultShares(duplicate=0.05, undecodable=0.02, rule_broken=0.02, late=0.05, too_late=0.005)
HAND_MADE = 0.01
NOBODY = b"nobody"
"""Key of those that share the empty id. An id stays within a partition, or the log's order decides, which the
oracle, that reads Kafka alone, does not know."""
SPAN_MS = 3_600_000
Record = tuple[bytes | None, bytes | None]

_FIELDS: dict[str, Any] = json.loads((PROJECT / "schemas" / "orders.v1.avsc").read_text())
_PLAIN = fastavro.parse_schema({
    **_FIELDS,
    "fields": [
        {"name": one["name"], "type": "bytes" if one["type"] == "string" or one["name"] == "amount"
         else "long"} for one in _FIELDS["fields"]
    ],
})  # fmt: skip
"""The schema with every text and number as bytes, so that wrong ones can be written."""


def burst(seed: int, count: int) -> list[Record]:
    """So many records, around now; the ids are of this burst alone."""
    draw = random.Random(seed)
    sample = Sample(seed=seed, run=f"burst{seed}", schema_id=SCHEMA_ID, span_ms=SPAN_MS, faults=FAULTS)
    drawn = sample.draw(count, time.time_ns() // 1_000_000)
    records: list[Record] = list(zip(drawn.keys, drawn.values, strict=True))
    for number in range(count):
        if draw.random() < HAND_MADE:
            way = draw.choice(WAYS)
            key = draw.choice((None, b"", b"k", b"\xff\xfe", bytes(500)))
            records[number] = (NOBODY if way is _of_nobody else key, way(draw, f"{seed}-{number}"))
    return records


def _order(draw: random.Random, event_id: str, **more: Any) -> bytes:
    order = {
        "event_id": event_id.encode(), "order_id": draw.randrange(10**6), "customer": b"customer-000007",
        "region": b"tyrol", "status": b"paid", "amount": _amount(draw.randrange(10**6)),
        "ordered_at": time.time_ns() // 1_000_000 - draw.randrange(SPAN_MS), **more,
    }  # fmt: skip
    out = io.BytesIO(b"\x00" + SCHEMA_ID.to_bytes(4, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, _PLAIN, order)
    return out.getvalue()


def _of_nobody(draw: random.Random, name: str) -> bytes:
    return _order(draw, "", customer=NOBODY)


def _amount(cents: int) -> bytes:
    return cents.to_bytes(max(1, (cents.bit_length() + 8) // 8), "big", signed=True)


WAYS: tuple[Callable[[random.Random, str], bytes | None], ...] = (
    lambda draw, name: None,
    lambda draw, name: b"",
    lambda draw, name: draw.randbytes(draw.randrange(2_000)),
    lambda draw, name: b"\x00" + draw.randbytes(4) + draw.randbytes(60),
    lambda draw, name: b"\x00" + (2).to_bytes(4, "big") + _order(draw, name)[5:],
    lambda draw, name: _order(draw, name)[:-draw.randrange(1, 20)],
    lambda draw, name: _order(draw, name) + b"\x00",
    lambda draw, name: _order(draw, name, order_id=2**63 - 1),
    lambda draw, name: _order(draw, name, order_id=-(2**63)),
    lambda draw, name: _order(draw, name, amount=_amount(10**12 - 1)),
    lambda draw, name: _order(draw, name, amount=_amount(10**12)),
    lambda draw, name: _order(draw, name, amount=_amount(-(10**30))),
    lambda draw, name: _order(draw, name, amount=b""),
    lambda draw, name: _order(draw, name, amount=bytes(40) + b"\x07"),
    lambda draw, name: _order(draw, name, ordered_at=2**62),
    lambda draw, name: _order(draw, name, ordered_at=-(2**62)),
    lambda draw, name: _order(draw, name, ordered_at=0),
    lambda draw, name: _order(draw, name, customer=b"\xff\xfe"),
    lambda draw, name: _order(draw, name, customer="Łódź 🐘 ".encode() * 4_000),
    lambda draw, name: _order(draw, name, region=b"<script>'\"--;\x00", customer=name.encode()),
    lambda draw, name: _order(draw, name, status=b"refunded"),
    _of_nobody,
)  # fmt: skip

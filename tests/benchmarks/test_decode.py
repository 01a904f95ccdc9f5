"""The plain loop must not win by doing less: its decoder takes and refuses what fastavro does."""

from __future__ import annotations

import json
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import fastavro
import polars as pl
import pytest

from benchmarks.decode import decode, load_schema

PATH = Path(__file__).resolve().parents[2] / "schemas" / "orders.v1.avsc"
LOGICAL = fastavro.parse_schema(json.loads(PATH.read_text()))
HEADER = b"\0\0\0\0\x07"


def frame(**changed: object) -> bytes:
    order = {
        "event_id": "e-1", "order_id": 1, "customer": "c", "region": "île", "status": "paid",
        "amount": Decimal("12.34"), "ordered_at": 1_700_000_000_000,
    }  # fmt: skip
    body = BytesIO()
    fastavro.schemaless_writer(body, LOGICAL, {**order, **changed})
    return HEADER + body.getvalue()


def test_columns_hold_what_fastavro_reads_record_by_record() -> None:
    values = [
        frame(event_id=f"e{number}", order_id=number - 3, amount=Decimal(number - 2).scaleb(number % 3 - 2))
        for number in range(300)
    ]
    expected = [fastavro.schemaless_reader(BytesIO(value[5:]), LOGICAL, None) for value in values]

    found = decode(values, 7, load_schema(PATH))

    events = found.events.with_columns(
        amount=pl.col("cents").map_elements(lambda cents: Decimal(cents).scaleb(-2), return_dtype=pl.Object),
        ordered_at=pl.from_epoch("ordered_ms", time_unit="ms").dt.replace_time_zone("UTC"),
    ).drop("cents", "ordered_ms")
    assert found.places == list(range(300))
    assert events.to_dicts() == expected


@pytest.mark.parametrize(
    "value",
    [
        None, b"", b"\0\0\0", b'{"event_id": "e-1"}',
        b"\1" + frame()[1:], HEADER[:4] + b"\x08" + frame()[5:],  # magic byte, schema id
        frame()[:-1], frame() + b"\0", HEADER + b"\xff" * 9 + b"\x01",  # too short, too long, a huge length
        frame(event_id="e\0").replace(b"e\0", b"\xff\0"),  # no UTF-8
        frame(ordered_at=253_402_300_800_000),  # year 10000
    ],
)  # fmt: skip
def test_a_value_that_is_no_event_is_left_out_and_its_neighbours_are_not(value: bytes | None) -> None:
    found = decode([frame(event_id="before"), value, frame(event_id="after")], 7, load_schema(PATH))

    assert found.places == [0, 2]
    assert found.events["event_id"].to_list() == ["before", "after"]

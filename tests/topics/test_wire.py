"""The column-wise encoder writes the bytes that fastavro writes."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import FIELDS, Sample
from tests.project import PROJECT
from twinlake.topics.wire import HEADER_BYTES, decimals, frames, longs, texts

SCHEMA_FILE = Path(PROJECT) / "schemas" / "orders.v1.avsc"


def _bytes(column) -> list[bytes]:
    return [frame[HEADER_BYTES:] for frame in frames(1, [column])]


def _avro(schema: object, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_longs_are_encoded_as_fastavro_does(values: list[int]) -> None:
    assert _bytes(longs(np.array(values, dtype=np.int64))) == [_avro("long", value) for value in values]


@given(st.lists(st.integers(-(10**12) + 1, 10**12 - 1), min_size=1, max_size=20))
def test_decimals_take_the_shortest_form_and_read_back(values: list[int]) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    encoded = _bytes(decimals(np.array(values, dtype=np.int64)))

    parsed = fastavro.parse_schema(schema)
    read = [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in encoded]
    assert read == [Decimal(value).scaleb(-2) for value in values]
    assert [len(one) - 1 for one in encoded] == [
        max(1, ((value if value >= 0 else ~value).bit_length() + 8) // 8) for value in values
    ]


@pytest.mark.parametrize("longest", ["", "short", "x" * 63, "x" * 64, "é" * 80, "z" * 9_000])
def test_texts_of_any_length_share_a_column(longest: str) -> None:
    words = ["", "a", "île-de-france", longest]
    codes = np.array([3, 2, 1, 0, 3])

    assert _bytes(texts(words, codes)) == [_avro("string", words[code]) for code in codes]


def test_sampled_orders_are_what_fastavro_writes_for_the_published_schema() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    parsed = fastavro.parse_schema(schema)
    drawn = Sample(seed=7, run="test", schema_id=258).draw(500, now_ms=1_790_000_000_000)

    assert tuple(field["name"] for field in schema["fields"]) == FIELDS
    for value in drawn.values:
        assert value is not None and value[:HEADER_BYTES] == b"\x00\x00\x00\x01\x02"
        event = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), parsed, None)
        assert _avro(schema, event) == value[HEADER_BYTES:]


def test_the_key_is_the_customer_of_the_event() -> None:
    parsed = fastavro.parse_schema(json.loads(SCHEMA_FILE.read_text()))
    drawn = Sample(seed=7, run="test", schema_id=1).draw(200, now_ms=1_790_000_000_000)

    customers = [
        fastavro.schemaless_reader(io.BytesIO((value or b"")[HEADER_BYTES:]), parsed, None)["customer"]
        for value in drawn.values
    ]
    assert [key.decode() for key in drawn.keys] == customers

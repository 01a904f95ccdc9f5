"""Which of a gallery topic's records count, by examples at both sides of each bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from tests.oracle.gallery.records import _decoded, valid
from tests.oracle.topic import Records

NOW = datetime(2026, 2, 1, tzinfo=UTC)
MS, MINUTE = timedelta(milliseconds=1), timedelta(minutes=1)
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Seen",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "level", "type": ["null", "string"]},
        {"name": "amount", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
TIMES = {
    "eventTime": "at",
    "discardAfter": "2 hours",
    "futureTolerance": "5 minutes",
    "uniqueWithin": "1 minute",
}
CONTRACT: dict[str, Any] = {
    "customProperties": [{"property": name, "value": value} for name, value in TIMES.items()],
    "schema": [
        {
            "properties": [
                {"name": "id", "required": True, "unique": True},
                {"name": "who", "required": True, "logicalTypeOptions": {"minLength": 1}},
                {"name": "level", "enum": [{"value": "INFO"}]},
                {"name": "amount", "required": True, "logicalTypeOptions": {"minimum": 1}},
                {"name": "at", "required": True},
            ]
        }
    ],
}
GOOD: dict[str, Any] = {"id": "a", "who": "ann", "level": "INFO", "amount": 1, "at": NOW}


def _frame(event: dict[str, Any]) -> bytes:
    written = BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(SCHEMA), event)
    return b"\x00\x00\x00\x00\x07" + written.getvalue()


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"\x04\x04\xe2", Decimal("12.50")), (b"\x02\x00", Decimal("0.00")), (b"\x00", None),
        (b"\x06\x01\x86\xa0", None), (b"\x06\x01\x86\x9f", Decimal("999.99")),
        (b"\x06\xfe\x79\x61", Decimal("-999.99")), (b"\x06\xfe\x79\x60", None),
        (b"\x46" + b"\x7f" * 35, None), (b"\x46" + b"\x00" * 34 + b"\x01", Decimal("0.01")),
    ],
)  # fmt: skip
def test_a_decimal_has_bytes_and_no_more_digits_than_its_schema_says(
    sent: bytes, read: Decimal | None
) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    schema = {"type": "record", "name": "Priced", "fields": [{"name": "price", "type": price}]}

    found = _decoded(b"\x00\x00\x00\x00\x07" + sent, fastavro.parse_schema(schema))

    assert found == (None if read is None else {"price": read})


def _counting(*sent: tuple[bytes | None, datetime]) -> list[int]:
    """The offsets of those that count, of records sent to one partition."""
    records = Records(
        partitions=[0] * len(sent),
        offsets=list(range(len(sent))),
        timestamps_ms=[int(at.timestamp() * 1000) for _, at in sent],
        keys=[b""] * len(sent),
        values=[value for value, _ in sent],
    )
    return [record["offset"] for record in valid(records, SCHEMA, CONTRACT)]


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, True),
        ({"level": None}, True),
        ({"level": "LOUD"}, False),
        ({"who": None}, False),
        ({"who": ""}, False),
        ({"amount": 0}, False),
        ({"at": NOW - 120 * MINUTE}, True),
        ({"at": NOW - 120 * MINUTE - MS}, False),
        ({"at": NOW + 5 * MINUTE}, True),
        ({"at": NOW + 5 * MINUTE + MS}, False),
    ],
)
def test_a_record_counts_within_the_rules_and_in_time(changed: dict[str, Any], counts: bool) -> None:
    assert _counting((_frame(GOOD | changed), NOW)) == [0] * counts


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\x01" + _frame(GOOD)[1:], _frame(GOOD) + b"\x00", _frame(GOOD)[:-3], _frame(GOOD)[:9]],
)
def test_bytes_that_are_no_record_do_not_count(value: bytes | None) -> None:
    assert _counting((value, NOW)) == []


def test_an_id_counts_again_only_after_its_horizon() -> None:
    frame = _frame(GOOD)

    found = _counting(
        (frame, NOW), (frame, NOW + MINUTE), (frame, NOW + MINUTE + MS), (frame, NOW + MINUTE + 2 * MS)
    )

    assert found == [0, 2]


def test_an_invalid_record_does_not_take_an_id_from_the_valid_one() -> None:
    assert _counting((_frame(GOOD | {"amount": 0}), NOW), (_frame(GOOD), NOW)) == [1]

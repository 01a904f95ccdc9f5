"""What the oracle takes for an event in JSON; `tests/ingest/test_json.py` asks the platform the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ingest.json_cases import BROKEN, PROPERTIES, SOUND
from tests.oracle.gallery.json_value import NoEventError, event
from tests.oracle.gallery.records import valid
from tests.oracle.topic import Records


@pytest.mark.parametrize(("text", "fields"), SOUND)
def test_what_has_the_shape_is_read_exactly(text: bytes, fields: dict[str, Any]) -> None:
    found = event(text, PROPERTIES)

    assert {name: found[name] for name in fields} == fields


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_what_has_not_the_shape_is_no_event(text: bytes, reason: str) -> None:
    with pytest.raises(NoEventError):
        event(text, PROPERTIES)


def test_a_record_without_a_value_deletes_its_key_where_the_contract_says_so() -> None:
    records = Records(
        partitions=[0, 0, 0], offsets=[0, 1, 2], timestamps_ms=[1_700_000_000_000] * 3,
        keys=[b"a", b"a", None],
        values=[b'{"id": "1", "name": "a", "at": "2023-11-14T22:00:00Z"}', None, None],
    )  # fmt: skip
    text = {"logicalType": "string", "physicalType": "string"}
    contract = {
        "customProperties": [
            {"property": "eventTime", "value": "at"}, {"property": "discardAfter", "value": "1 day"},
            {"property": "futureTolerance", "value": "1 hour"},
            {"property": "uniqueWithin", "value": "1 hour"},
            {"property": "keyFormat", "value": "string"}, {"property": "nullValues", "value": "delete"},
        ],
        "schema": [{"properties": [
            {"name": "id", **text, "unique": True}, {"name": "name", **text, "primaryKey": True},
            {"name": "at", "logicalType": "timestamp", "physicalType": "timestamp", "required": True},
        ]}],
    }  # fmt: skip

    found = valid(records, None, contract)

    assert [(one["name"], one["_key"], one["_tombstone"], one["id"]) for one in found] == [
        ("a", "a", False, "1"), ("a", "a", True, None),
    ]  # fmt: skip

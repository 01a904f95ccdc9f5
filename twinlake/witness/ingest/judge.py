"""Owns the verdict on raw records by a contract: the fields that they have, and what becomes of each.

It needs no log, no file and no Spark; a few records take less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from twinlake.witness.ingest import change_data, decode_avro, decode_json
from twinlake.witness.ingest.contract import broken, is_after, is_bad_key, length
from twinlake.witness.ingest.reading import fields_of, unreadable
from twinlake.witness.ingest.record import (
    DUPLICATE,
    IGNORED,
    INVALID,
    NULL_VALUE,
    TOO_LATE,
    Judged,
    Malformed,
    Raw,
    Rules,
    Unsure,
    Value,
)
from twinlake.witness.ingest.written import Written, written
from twinlake.witness.types import Type

UNKNOWN_SCHEMA = "unknown_schema"


def judge(records: Iterable[Raw], rules: Rules) -> list[Judged]:
    """Fields, verdict and reasons of records in the order of their log, of which nothing came before.

    Refused for a contract with a type that the witness does not know.
    """
    judged, seen = Judge(rules), dict[object, list[int]]()
    window = length(rules.contract, "unique_within")
    found = []
    for record in records:
        one = judged.alone(record)
        if one.identity is not None and one.verdict == "valid" and window is not None:
            before = seen.setdefault(one.identity, [])
            if any(record.timestamp - time <= window for time in before):
                one = duplicate(one)
            else:
                before.append(record.timestamp)
        found.append(one)
    return found


def duplicate(judged: Judged) -> Judged:
    """The same record, where a valid one with its identity came before."""
    return replace(judged, verdict=DUPLICATE, reasons=("already_seen",), late=False)


@dataclass(frozen=True)
class _Read:
    """What could be read of a value."""

    event: Mapping[str, Value]
    fields: Mapping[str, Value]
    wrong: tuple[str, ...]


class Judge:
    """One contract; schemas are read once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._contract = rules.contract
        self._types = {field.name: Type.parse(field.type) for field in rules.fields}
        self._schemas: dict[int, Written | str] = {}

    def alone(self, record: Raw) -> Judged:
        """What becomes of a record that no other one has the identity of."""
        value = record.value
        try:
            return self._without_value(record) if value is None else self._of_value(record, value)
        except Unsure as error:
            return Judged(unsure=str(error))

    def _of_value(self, record: Raw, value: bytes) -> Judged:
        schema_id = None
        try:
            if not self._rules.is_json:
                schema_id = decode_avro.schema_id(value)
            found = self._read(value, schema_id)
        except Malformed as error:
            return Judged(verdict=INVALID, reasons=(str(error),), schema_id=schema_id)
        if found.wrong:
            return Judged(verdict=INVALID, reasons=found.wrong, schema_id=schema_id)
        return self._by_contract(record, Judged(schema_id=schema_id, event=found.event), found)

    def _without_value(self, record: Raw) -> Judged:
        means = self._contract.get("null_values")
        if means == "ignore":
            return Judged(verdict=IGNORED, reasons=(NULL_VALUE,))
        if means != "delete" or record.key is None:
            return Judged(verdict=INVALID, reasons=(NULL_VALUE,))
        bad = is_bad_key(record.key, self._rules)
        return Judged(verdict=INVALID, reasons=("bad_key",)) if bad else Judged()

    def _by_contract(self, record: Raw, judged: Judged, found: _Read) -> Judged:
        database = self._contract.get("change_data")
        if database:
            event_time = change_data.event_time(found.fields)
            identity: object = change_data.identity(database, found.fields, record.key)
        else:
            event_time = found.fields.get(self._contract["event_time"])
            identity = found.fields.get(self._contract.get("unique") or "")
        judged = replace(judged, fields=found.fields, identity=identity)
        reasons = dict.fromkeys(broken(self._contract, found.fields, event_time, record.timestamp))
        if is_bad_key(record.key, self._rules):
            reasons["bad_key"] = None
        if reasons:
            return replace(judged, verdict=INVALID, reasons=tuple(reasons))
        if is_after(self._contract, "discard_after", event_time, record.timestamp):
            return replace(judged, verdict=TOO_LATE, reasons=(TOO_LATE,))
        return replace(judged, late=is_after(self._contract, "late_after", event_time, record.timestamp))

    def _read(self, value: bytes, schema_id: int | None) -> _Read:
        if self._rules.is_json:
            found = decode_json.document(value)
            wrong: dict[str, None] = {}
            event = decode_json.members(self._unwrapped(found), self._types, wrong)
            return _Read(event, event, tuple(wrong))
        schema = self._schema(schema_id)
        if isinstance(schema, str):
            raise Malformed(schema)
        decoded = schema.decode(value)
        wrong = dict.fromkeys(decoded.wrong)
        fields = {} if wrong else fields_of(decoded.values, schema, self._rules.fields, wrong)
        return _Read(decoded.values, fields, tuple(wrong))

    def _unwrapped(self, found: Mapping[str, object]) -> Mapping[str, object]:
        """Kafka Connect may put a document beside its schema."""
        if not self._contract.get("change_data") or "payload" not in found:
            return found
        payload = found["payload"]
        return payload if isinstance(payload, dict) else {}

    def _schema(self, schema_id: int | None) -> Written | str:
        """The schema of an id, or the reason why its records are none."""
        if schema_id is None or schema_id not in self._known:
            return UNKNOWN_SCHEMA
        if schema_id not in self._schemas:
            schema = written(self._known[schema_id], str(self._contract.get("format", "avro")))
            why = None if isinstance(schema, str) else unreadable(schema, self._rules.fields)
            self._schemas[schema_id] = why or schema
        return self._schemas[schema_id]

    @cached_property
    def _known(self) -> Mapping[int, Mapping[str, object]]:
        return {int(number): avro for number, avro in self._rules.schemas.items()}

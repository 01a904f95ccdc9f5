"""Owns what a record of a test has in fields that the test does not name: valid values, the same each time.

A field that may be missing is: NULL, or its schema's default. One that is required gets the simplest value
that its type and the contract's rules allow; the id that must be unique, another one in each record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from twinlake.base.times import EPOCH
from twinlake.topics.contract import Rule
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, NOT_ALLOWED, TOO_LONG
from twinlake.witness.types import Type

_MILLISECOND = timedelta(milliseconds=1)
_NAMED = ("record", "enum", "fixed")
_OPERATIONS = (("after", "c"), ("before", "d"))
_SNAPSHOT, _FILE = "false", "binlog.000001"


class Filler:
    """Fills the records of one topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        contract = topic.contract
        self._types = {field.name: Type.parse(field.type) for field in topic.newest.fields}
        self._named = dict(_named(topic.newest.avro))
        self._required = {column.name for column in contract.columns if column.required}
        self._rules: dict[str, dict[str, Rule]] = {}
        for rule in contract.rules:
            self._rules.setdefault(rule.column, {})[rule.code] = rule

    def event(self, number: int, given: Mapping[str, Any], at: datetime) -> dict[str, Any]:
        """All fields of the record of this number, counted from 1; `at` is the time of what happened."""
        if self._topic.contract.change_data:
            given = _envelope(number, given, at)
        found = {}
        for field in self._topic.newest.fields:
            type_, name = self._types[field.name], field.name
            if name in given:
                found[name] = self._inside(given[name], type_, field.avro, number, at)
            elif name in self._required or not field.nullable:
                found[name] = self._new(name, type_, field.avro, number, at)
            else:
                found[name] = field.default if type_.name in ("string", "boolean", "int", "bigint") else None
        return found

    def _new(self, name: str, type_: Type, avro: Any, number: int, at: datetime) -> Any:
        rules = self._rules.get(name, {})
        if allowed := rules.get(NOT_ALLOWED):
            return allowed.value[0]  # type: ignore[index]
        if name == self._topic.contract.unique:
            return self._unique(name, type_, rules, number, avro, at)
        if type_.name == "string" and not self._symbols(avro):
            return _short(name, rules)
        if type_.is_number:
            return _number(1, type_, rules)
        return self._value(name, type_, avro, number, at)

    def _unique(
        self, name: str, type_: Type, rules: Mapping[str, Rule], number: int, avro: Any, at: datetime
    ) -> Any:
        if type_.name == "string":
            most = _most(rules)
            return f"{name}-{number}" if most is None or len(f"{name}-{number}") <= most else str(number)
        if type_.is_number:
            least = rules[BELOW_MINIMUM].value if BELOW_MINIMUM in rules else 0
            return _number(int(least) + number, type_, rules)  # type: ignore[arg-type]
        if type_.name == "binary":
            return self._sized(avro, str(number).encode())
        if type_.name == "timestamp":
            return at + timedelta(microseconds=number)
        return self._value(name, type_, avro, number, at)

    def _value(self, name: str, type_: Type, avro: Any, number: int, at: datetime) -> Any:
        """The simplest value of the type; of a record, of each field that cannot be missing."""
        if type_.name == "string":
            return (self._symbols(avro) or [name])[0]
        if type_.name == "timestamp":
            return at
        if type_.name == "date":
            return at.date()
        if type_.name == "boolean":
            return False
        if type_.name == "binary":
            return self._sized(avro, b"")
        if type_.is_number:
            return _number(1, type_, {})
        if type_.name == "struct":
            return self._inside({}, type_, avro, number, at)
        return {} if type_.name == "map" else []

    def _inside(self, given: Any, type_: Type, avro: Any, number: int, at: datetime) -> Any:
        """A given value, with what the records in it lack."""
        if given is None or not type_.is_nested:
            return given
        known = self._resolved(avro)
        if type_.name == "array":
            items = known.get("items")
            return [self._inside(one, type_.element, items, number, at) for one in given]
        if type_.name == "map":
            values = known.get("values")
            return {key: self._inside(one, type_.value, values, number, at) for key, one in given.items()}
        inner = {one["name"]: one["type"] for one in known.get("fields", ())}
        found = {}
        for name, field_type in type_.fields:
            if name in given:
                found[name] = self._inside(given[name], field_type, inner.get(name), number, at)
            elif name in inner and not _may_lack(inner[name]):
                found[name] = self._value(name, field_type, inner[name], number, at)
            else:
                found[name] = None
        return found

    def _resolved(self, avro: Any) -> dict[str, Any]:
        """What a type in Avro says of itself: without its union with null, by its name where that is all."""
        if isinstance(avro, list):
            avro = next((one for one in avro if one != "null"), None)
        if isinstance(avro, str):
            avro = self._named.get(avro.rpartition(".")[2])
        if isinstance(avro, dict) and isinstance(avro.get("type"), (dict, list)):
            return self._resolved(avro["type"])
        return avro if isinstance(avro, dict) else {}

    def _symbols(self, avro: Any) -> list[str]:
        found: list[str] = self._resolved(avro).get("symbols", [])
        return found

    def _sized(self, avro: Any, value: bytes) -> bytes:
        return value.rjust(int(self._resolved(avro).get("size", len(value))), b"\0")


def _named(avro: Any) -> Any:
    """Every named type of a schema."""
    if isinstance(avro, list):
        for one in avro:
            yield from _named(one)
    elif isinstance(avro, dict):
        if "name" in avro and isinstance(avro.get("type"), str) and avro["type"] in _NAMED:
            yield avro["name"].rpartition(".")[2], avro
        for key in ("type", "items", "values", "fields"):
            if isinstance(avro.get(key), (dict, list)):
                yield from _named(avro[key])


def _may_lack(avro: Any) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


def _most(rules: Mapping[str, Rule]) -> int | None:
    found = rules[TOO_LONG].value if TOO_LONG in rules else None
    return found if isinstance(found, int) else None


def _short(name: str, rules: Mapping[str, Rule]) -> str:
    return name[: _most(rules)]


def _number(wanted: int, type_: Type, rules: Mapping[str, Rule]) -> Any:
    """The number, or the nearest that the rules and the type allow."""
    found = Decimal(wanted)
    if BELOW_MINIMUM in rules:
        found = max(found, Decimal(str(rules[BELOW_MINIMUM].value)))
    if ABOVE_MAXIMUM in rules:
        found = min(found, Decimal(str(rules[ABOVE_MAXIMUM].value)))
    if type_.name == "decimal":
        most = Decimal(10**type_.precision - 1).scaleb(-type_.scale)
        return min(found, most).quantize(Decimal(1).scaleb(-type_.scale))
    return float(found) if type_.is_floating else int(found)


def _envelope(number: int, given: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """What Debezium says of a change besides its rows: the operation, and where and when it was."""
    found = dict(given)
    found.setdefault("op", next((op for row, op in _OPERATIONS if given.get(row) is not None), "t"))
    milliseconds = (at - EPOCH) // _MILLISECOND
    place = {
        "ts_ms": milliseconds,
        "snapshot": _SNAPSHOT,
        "lsn": number,
        "file": _FILE,
        "pos": number,
        "row": 0,
    }
    found["source"] = place | dict(given.get("source") or {})
    if given.get("ts_ms") is None:
        found["ts_ms"] = milliseconds
    return found

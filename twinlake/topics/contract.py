"""Owns a data contract (Open Data Contract Standard 3): columns, rules, lateness, uniqueness."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from twinlake.base import quote
from twinlake.base.times import format_duration, parse_duration
from twinlake.topics import formats
from twinlake.topics.schema import Schema
from twinlake.topics.verdict import (
    ABOVE_MAXIMUM,
    BELOW_MINIMUM,
    EMPTY,
    MISSING,
    NOT_ALLOWED,
    TOO_LONG,
    reason,
)

AVRO, JSON, FORMATS = formats.AVRO, formats.JSON, formats.FORMATS
INVALID, IGNORE, DELETE = "invalid", "ignore", "delete"
NULL_VALUES = (INVALID, IGNORE, DELETE)
"""What a record without a value is: a mistake, nothing at all, or the delete of its key."""
STRING, BYTES = "string", "bytes"
KEY_FORMATS = (STRING, JSON, BYTES)
"""What a topic's keys are written in; those of a topic that does not say are kept and not shown."""
QUARANTINE, STOP = "quarantine", "stop"
UNREADABLE = (QUARANTINE, STOP)
"""What is done with a record that the topic's newest schema cannot read."""
_DURATIONS = ("late_after", "discard_after", "future_tolerance", "unique_within")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column that the contract promises; `type` is a Spark SQL type such as decimal(12,2)."""

    name: str
    type: str
    required: bool = False
    key: bool = False


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that must hold for a column's value in every record."""

    column: str
    code: str
    """One of the rule codes of `topics/verdict.py`; NULL breaks only `missing`."""
    value: Decimal | int | tuple[str, ...] | None = None

    @property
    def reason(self) -> str:
        """What a record that breaks it is marked with, such as `below_minimum:amount`."""
        return reason(self.code, self.column)

    def broken_sql(self, column_sql: str) -> str:
        """Spark SQL that is TRUE where the rule is broken and FALSE otherwise, never NULL."""
        if self.code == MISSING:
            return f"({column_sql} IS NULL)"
        if self.code == EMPTY:
            test = f"{column_sql} = ''"
        elif self.code == BELOW_MINIMUM:
            test = f"{column_sql} < {self.value}"
        elif self.code == ABOVE_MAXIMUM:
            test = f"{column_sql} > {self.value}"
        elif self.code == TOO_LONG:
            test = f"char_length({column_sql}) > {self.value}"
        elif self.code == NOT_ALLOWED and isinstance(self.value, tuple):
            test = f"{column_sql} NOT IN ({', '.join(quote.string(value) for value in self.value)})"
        else:
            raise ValueError(f"no such rule: {self}")
        return f"coalesce({test}, false)"


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What producers promise about a topic, or we about a table."""

    name: str
    version: str
    file: str
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    event_time: str | None = None
    """Column with the event's own time (topics only; the next five too)."""
    late_after: timedelta | None = None
    discard_after: timedelta | None = None
    future_tolerance: timedelta | None = None
    unique: str | None = None
    """Column whose value identifies an event."""
    unique_within: timedelta | None = None
    format: str = AVRO
    """One of FORMATS (topics only; the next two too)."""
    null_values: str = INVALID
    """One of NULL_VALUES."""
    key_format: str | None = None
    """One of KEY_FORMATS; None shows no key."""
    change_data: str | None = None
    """The database whose changes the records are, in Debezium's envelopes; None for a topic of events."""
    retention: timedelta | None = None
    """How long the lake keeps the topic's records; None for ever. No part of what a row means."""
    unreadable_records: str = QUARANTINE
    """One of UNREADABLE; of change data STOP, unless the contract says otherwise: a change that is left out
    makes wrong rows."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return tuple(column.name for column in self.columns if column.key)

    @property
    def is_topic(self) -> bool:
        """A topic's contract says when a record is late; a table's does not."""
        return self.event_time is not None

    def column(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its exact inverse."""
        durations = {**self._durations, "retention": self.retention}
        lengths = {name: length and format_duration(length) for name, length in durations.items()}
        rules = [{**vars(rule), "value": _plain(rule.value)} for rule in self.rules]
        return {**asdict(self), **lengths, "rules": rules}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Contract:
        texts = {name: stored[name] for name in _DURATIONS} | {"retention": stored.get("retention")}
        lengths = {name: text and parse_duration(text) for name, text in texts.items()}
        columns = tuple(Column(**column) for column in stored["columns"])
        rules = tuple(Rule(**{**rule, "value": _exact(rule["value"])}) for rule in stored["rules"])
        return cls(**{**stored, **lengths, "columns": columns, "rules": rules})

    @property
    def _durations(self) -> dict[str, timedelta | None]:
        return {name: getattr(self, name) for name in _DURATIONS}

    def meaning(self) -> dict[str, Any]:
        """Everything that can change a verdict or a promise, as JSON data; words and versions do not."""
        return {
            "columns": [[c.name, c.type, c.required, c.key] for c in self.columns],
            "rules": [[r.column, r.code, _plain(r.value)] for r in self.rules],
            "event_time": self.event_time,
            "unique": self.unique,
            **{name: format_duration(value) if value else None for name, value in self._durations.items()},
            **self._unusual,
        }

    def of_rows(self) -> dict[str, Any]:
        """What a table's rows depend on beside the log, as JSON data. Rules are no part of it, nor what is
        unique or too late: the verdicts that they lead to are stored with the records, once."""
        shows_key = self.key_format == JSON or self.null_values == DELETE
        return {
            "columns": sorted([column.name, column.type] for column in self.columns),
            "keys": list(self.keys) if shows_key else [],
            "key_format": self.key_format,
            "null_values": self.null_values,
            "format": self.format,
            "change_data": self.change_data,
            "event_time": self.event_time,
            "late_after": self.late_after and format_duration(self.late_after),
        }

    @property
    def _unusual(self) -> dict[str, str]:
        """What was not to be said before; a contract that does not say it keeps the fingerprint it had."""
        usual = {
            "format": AVRO, "null_values": INVALID, "key_format": None, "change_data": None,
            "unreadable_records": unreadable_by_default(self.change_data),
        }  # fmt: skip
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}

    @property
    def fingerprint(self) -> str:
        """sha256 over the meaning."""
        return hashlib.sha256(json.dumps(self.meaning(), sort_keys=True).encode()).hexdigest()

    def disagreement(self, schema: Schema) -> tuple[str, str] | None:
        """(path, why) of the first place where a topic's contract and its schema disagree, if any."""
        for index, column in enumerate(self.columns):
            field, path = schema.field(column.name), f"schema[0].properties[{index}]"
            if field is None:
                return path, f"{column.name!r} is not a field of {schema.file}"
            if field.type != column.type:
                return f"{path}.physicalType", f"it is {column.type}, but {field.type} in {schema.file}"
            if not field.nullable and not column.required:
                return (
                    f"{path}.required",
                    f"{column.name!r} is never null in {schema.file}, so it has to be `required: true`",
                )
        named = {column.name for column in self.columns}
        for field in schema.fields:
            if field.name not in named:
                return "schema[0].properties", f"field {field.name!r} of {schema.file} is missing"
        return None


def unreadable_by_default(change_data: str | None) -> str:
    """What is done with an unreadable record where the contract does not say it."""
    return STOP if change_data else QUARANTINE


def _plain(value: Decimal | int | tuple[str, ...] | None) -> Any:
    """In JSON a list is the tuple of texts, a text the exact number."""
    return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Decimal) else value


def _exact(value: Any) -> Decimal | int | tuple[str, ...] | None:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return tuple(value)
    return Decimal(value) if isinstance(value, str) else value

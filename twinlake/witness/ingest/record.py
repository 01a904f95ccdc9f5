"""Owns what goes into the evaluator and what comes out of it: raw records, what holds for them, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlake.witness.question import Field

Value = Any
"""A value in a plain form: of a timestamp its microseconds since 1970, of a date its days, of a decimal a
Decimal, of bytes `bytes`, of a struct and a map a dict, of an array a list; None for NULL."""
VALID, INVALID, DUPLICATE, TOO_LATE, IGNORED = "valid", "invalid", "duplicate", "too_late", "ignored"
NULL_VALUE = "null_value"


class Malformed(Exception):
    """The bytes are no event; the reason's code."""


class Unsure(Exception):
    """Decoders of different makers read these bytes in their own ways: nothing is said of the record."""


@dataclass(frozen=True, kw_only=True)
class Raw:
    """A record as Kafka brought it. `timestamp` is Kafka's own, in microseconds since 1970."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    epoch: int = 0
    partition: int = 0
    offset: int = 0


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What holds for the records of a topic: its contract, and how it reads their fields."""

    contract: Mapping[str, Any]
    """As `Contract.to_json` writes it."""
    fields: tuple[Field, ...]
    """Those of the topic's newest schema; of a topic in JSON those of its contract."""
    schemas: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By id what the registry has for the topic's records, as Avro's JSON; none of a topic in JSON."""

    @property
    def is_json(self) -> bool:
        return self.contract.get("format") == "json"

    def columns(self, *, key: bool = False) -> list[Mapping[str, Any]]:
        """Of the contract; with `key` those of the primary key."""
        return [one for one in self.contract["columns"] if one["key"] or not key]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What becomes of a record."""

    verdict: str = VALID
    reasons: tuple[str, ...] = ()
    """In no order."""
    late: bool = False
    schema_id: int | None = None
    event: Mapping[str, Value] | None = None
    """By the names that the writer gives them, its fields; None of what is no event, or has no value."""
    fields: Mapping[str, Value] | None = None
    """The topic's fields, read from the writer's, with defaults."""
    identity: Any = None
    """What a duplicate has in common with the record before it; None for a record that has none."""
    unsure: str = ""
    """Why nothing is said of it; then nothing else holds."""

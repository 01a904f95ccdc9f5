"""Owns how a log keeps what was sent: in which field of `event`, as which type; when two values are one."""

from __future__ import annotations

from collections.abc import Mapping

from twinlake.witness.ingest.record import Value
from twinlake.witness.types import Type


def place_of(name: str, type_: Type, kept: Mapping[str, Type]) -> str | None:
    """The field of `event` that holds a field of this type: that of its name, or the one beside it that is
    called after the type."""
    for place in (name, f"{name}:{type_.spark}"):
        if place in kept and _covers(kept[place], type_):
            return place
    return None


def _covers(whole: Type, part: Type) -> bool:
    """Whether a record has all fields of another one, at any depth of records."""
    if whole.name == part.name == "struct":
        there = dict(whole.fields)
        return all(name in there and _covers(there[name], inner) for name, inner in part.fields)
    return whole == part


def widened(value: Value, kept: Type) -> Value:
    """The same record, with NULL in the fields that the log has of other records."""
    if isinstance(value, dict) and kept.name == "struct":
        return {name: widened(value.get(name), inner) for name, inner in kept.fields}
    return value


def projected(value: Value, promised: Type) -> Value:
    """The fields of a record that a contract names."""
    if isinstance(value, dict) and promised.name == "struct":
        return {name: projected(value.get(name), inner) for name, inner in promised.fields}
    return value


def is_same(one: Value, other: Value) -> bool:
    """Whether two plain values are one value; every NaN is the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    return type(one) is type(other) and bool(one == other)

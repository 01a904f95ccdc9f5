"""Owns what a sample says of a topic's columns: types by which every record of it is valid.

`twinlake/topics/json_sql.py` decides what is valid: nothing is read as what it is not. So a field in which
kinds are mixed has no type at all, not even text. It is left out of the contract, with the reason: what a
contract does not name is left alone, and the record's bytes are kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from twinlake.topics.avro_type import COLUMN_NAME
from twinlake.topics.contract import Column
from twinlake.topics.spark_type import Array, Map, Plain, Struct, Type, text

DEEPEST = 32
"""What is nested deeper is left out: no table wants it as columns."""
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]\d{2}:[0-5]\d)", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LARGEST_OFFSET = timedelta(hours=18)
"""Spark knows no other zones."""
_LONGEST_INTEGER = 38


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A field for which a contract has no type, and why."""

    path: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """The columns by which all records of a sample are valid."""

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...]


def inferred(records: Sequence[Mapping[str, Any]]) -> Inferred:
    """Columns in the order in which they were first seen; `required` are those that no record lacks."""
    left_out: list[LeftOut] = []
    fields = _fields(records, "", left_out, 0)
    filled = Counter(name for one in records for name, value in one.items() if value is not None)
    columns = tuple(
        Column(name=name, type=text(type_), required=filled[name] == len(records)) for name, type_ in fields
    )
    return Inferred(columns=columns, left_out=tuple(left_out))


def is_moment(value: str) -> bool:
    """Whether a text is read as a timestamp: ISO 8601 with an offset, in the years 1 to 9999 of UTC."""
    if not _MOMENT.fullmatch(value):
        return False
    try:
        found = datetime.fromisoformat(value)
        found.astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return abs(found.utcoffset() or timedelta(0)) <= _LARGEST_OFFSET


def is_day(value: str) -> bool:
    """Whether a text is read as a date."""
    try:
        return bool(_DAY.fullmatch(value) and date.fromisoformat(value))
    except ValueError:
        return False


def _type(values: Sequence[Any], path: str, left_out: list[LeftOut], depth: int) -> Type | None:
    """The type that holds all these values; None where there is none, which `left_out` then has."""
    there = [value for value in values if value is not None]
    kinds = sorted({_kind(value) for value in there})
    if not kinds:
        why = "only null was seen" if values else "only empty arrays were seen"
    elif len(kinds) > 1:
        why = f"it has {' and '.join(kinds)}, and a column has one of them"
    elif depth > DEEPEST:
        why = f"it is nested deeper than {DEEPEST} levels"
    elif kinds == ["objects"]:
        return _object(there, path, left_out, depth)
    elif kinds == ["arrays"]:
        inner = _type([one for value in there for one in value], f"{path}[]", left_out, depth + 1)
        return None if inner is None else Array(inner)
    elif kinds == ["numbers"]:
        if type_ := _number(there):
            return type_
        why = "a number in it is beyond those of a double"
    else:
        return Plain("boolean") if kinds == ["true or false"] else _text(there)
    left_out.append(LeftOut(path=path, why=why))
    return None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "texts", int: "numbers", float: "numbers", dict: "objects", list: "arrays"}
    return kinds[type(value)]


def _number(values: Sequence[int | float]) -> Type | None:
    """Whole numbers are bigint as long as they fit; one that is not makes all of them doubles."""
    if all(isinstance(value, int) for value in values):
        if all(-(1 << 63) <= value < 1 << 63 for value in values):
            return Plain("bigint")
        if all(abs(value) < 10**_LONGEST_INTEGER for value in values):
            return Plain(f"decimal({_LONGEST_INTEGER},0)")
    try:
        return Plain("double") if all(math.isfinite(float(value)) for value in values) else None
    except OverflowError:
        return None


def _text(values: Sequence[str]) -> Type:
    if all(map(is_moment, values)):
        return Plain("timestamp")
    return Plain("date") if all(map(is_day, values)) else Plain("string")


def _object(
    values: Sequence[Mapping[str, Any]], path: str, left_out: list[LeftOut], depth: int
) -> Type | None:
    """A record; a map where its names could not be those of fields, as of one that goes by a person's id."""
    if any(not COLUMN_NAME.fullmatch(name) for value in values for name in value):
        beside: list[LeftOut] = []
        every = [one for value in values for one in value.values()]
        inner = _type(every, f"{path}[]", beside, depth + 1)
        if inner is not None and not beside:
            return Map(inner)
    lacking: list[LeftOut] = []
    if fields := _fields(values, path, lacking, depth):
        left_out += lacking
        return Struct(fields)
    left_out.append(LeftOut(path=path, why="only objects without usable fields were seen"))
    return None


def _fields(
    values: Sequence[Mapping[str, Any]], path: str, left_out: list[LeftOut], depth: int
) -> tuple[tuple[str, Type], ...]:
    by_name: dict[str, list[Any]] = {}
    for value in values:
        for name, one in value.items():
            by_name.setdefault(name, []).append(one)
    alike: dict[str, str] = {}
    for name in sorted(by_name, key=lambda name: -len(by_name[name])):  # the first seen of those as frequent
        alike.setdefault(name.lower(), name)
    found = []
    for name, ones in by_name.items():
        where = f"{path}.{name}" if path else name
        if not COLUMN_NAME.fullmatch(name):
            why = "its name is not made of letters, digits and _, a letter first"
            left_out.append(LeftOut(path=where, why=why))
        elif (other := alike[name.lower()]) != name:
            left_out.append(LeftOut(path=where, why=f"its name differs from {other} in case alone"))
        elif (type_ := _type(ones, where, left_out, depth + 1)) is not None:
            found.append((name, type_))
    return tuple(found)

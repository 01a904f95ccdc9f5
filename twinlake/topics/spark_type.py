"""Owns the reading of a Spark SQL type's text, such as `array<struct<city:string>>`, as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\(\d+,\d+\))?|[<>,:]")


@dataclass(frozen=True)
class Plain:
    """A type without others inside, such as `decimal(12,2)`."""

    name: str

    @property
    def digits(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None."""
        found = re.fullmatch(r"decimal\((\d+),(\d+)\)", self.name)
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Array:
    element: Type


@dataclass(frozen=True)
class Map:
    """Its keys are text, as Avro's and JSON's are."""

    value: Type


Type = Plain | Struct | Array | Map
NOTHING = Plain("void")
"""The type of NULL alone."""


def is_nested(text: str) -> bool:
    """Whether values of the type have others inside."""
    return text.startswith(("struct<", "array<", "map<"))


def is_record(text: str) -> bool:
    """Whether values of the type have fields."""
    return text.startswith("struct<")


def parse(text: str) -> Type:
    """The tree of a type's text, as Spark writes it (no spaces); ValueError where it is none."""
    tokens = [found[0] for found in _TOKEN.finditer(text)]
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} is not a type of Spark SQL")
    stream = iter([*tokens, ""])
    try:
        parsed, after = _type(stream, next(stream))
    except StopIteration as error:
        raise ValueError(f"{text!r} ends too early") from error
    if after:
        raise ValueError(f"{text!r} goes on after its end")
    return parsed


def text(type_: Type) -> str:
    """A tree's text; `parse` is its exact inverse."""
    if isinstance(type_, Plain):
        return type_.name
    if isinstance(type_, Array):
        return f"array<{text(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<string,{text(type_.value)}>"
    return f"struct<{','.join(f'{name}:{text(inner)}' for name, inner in type_.fields)}>"


def covers(whole: Type, part: Type) -> bool:
    """Whether a record has all fields of another one, by name and type, at any depth of records."""
    if isinstance(whole, Struct) and isinstance(part, Struct):
        there = dict(whole.fields)
        return all(name in there and covers(there[name], inner) for name, inner in part.fields)
    return whole == part


def united(one: Type, other: Type) -> Type | None:
    """The first record, with those fields of the second that it lacks at its end; None where they have a
    field in common that has no such type, or whose names differ in case only."""
    if not (isinstance(one, Struct) and isinstance(other, Struct)):
        return one if one == other else None
    fields, named = dict(one.fields), {name.lower(): name for name, _ in one.fields}
    for name, inner in other.fields:
        if named.get(name.lower(), name) != name:
            return None
        found = united(fields[name], inner) if name in fields else inner
        if found is None:
            return None
        fields[name] = found
    return Struct(tuple(fields.items()))


def _type(stream: Iterator[str], head: str) -> tuple[Type, str]:
    """A type that begins with `head`, and the token after it."""
    if not head or head in "<>,:":
        raise ValueError(f"there is {head!r} where a type should be")
    after = next(stream)
    if after != "<":
        return Plain(head), after
    found: Type
    if head == "array":
        element, after = _type(stream, next(stream))
        found = Array(element)
    elif head == "map":
        if (next(stream), next(stream)) != ("string", ","):
            raise ValueError("a map's keys are strings")
        value, after = _type(stream, next(stream))
        found = Map(value)
    elif head == "struct":
        fields: list[tuple[str, Type]] = []
        after = ","
        while after == ",":
            name = next(stream)
            if next(stream) != ":":
                raise ValueError(f"field {name!r} has no type")
            type_, after = _type(stream, next(stream))
            fields.append((name, type_))
        found = Struct(tuple(fields))
    else:
        raise ValueError(f"{head!r} has no types inside")
    if after != ">":
        raise ValueError(f"a {head} is not closed")
    return found, next(stream)

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


def is_nested(text: str) -> bool:
    """Whether values of the type have others inside."""
    return text.startswith(("struct<", "array<", "map<"))


def parse(text: str) -> Type:
    """The tree of a type's text, as Spark writes it (no spaces); ValueError where it is none."""
    tokens = [found[0] for found in _TOKEN.finditer(text)]
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} is no type of Spark SQL")
    stream = iter([*tokens, ""])
    try:
        parsed, after = _type(stream, next(stream))
    except StopIteration as error:
        raise ValueError(f"{text!r} ends too early") from error
    if after:
        raise ValueError(f"{text!r} goes on after its end")
    return parsed


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

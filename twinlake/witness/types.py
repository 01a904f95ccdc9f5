"""Owns the types of columns: read from Spark's text, written for Spark and for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context

from twinlake.base import quote
from twinlake.witness.refused import Refused

_DUCKDB = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP", "void": "INTEGER",
}  # fmt: skip
"""Both timestamps are microseconds since 1970; Spark's `timestamp` is UTC. NULL's own type is any."""
_OTHER_NAMES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "bool": "boolean", "timestamp_ltz": "timestamp", "dec": "decimal", "numeric": "decimal", "null": "void",
}  # fmt: skip
INTEGERS = ("tinyint", "smallint", "int", "bigint")
UP_TO_INT = INTEGERS[:3]
"""What Spark takes for a place, a length or a number of days."""
FLOATING = ("float", "double")
SCALARS = ("boolean", *INTEGERS, *FLOATING, "decimal", "string", "date", "timestamp")
"""What both engines compare and order alike."""
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s<>(),:`]+|[<>(),:])")
_LARGEST_PRECISION = 38
EXACT = Context(prec=80)
"""For decimals, of which no digit is lost."""


@dataclass(frozen=True, kw_only=True)
class Type:
    """A Spark type. `name` is Spark's word; of a decimal `precision` and `scale` are set, of an array, a map
    and a struct `fields`: (element), (key, value), and the struct's, by name."""

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, Type], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Type:
        """From Spark's text, such as `struct<a:int,b:array<decimal(10,2)>>`; Refused for a type that the
        witness does not know."""
        tokens = _Tokens(text)
        found = _type(tokens)
        tokens.end()
        return found

    @property
    def spark(self) -> str:
        """As Spark writes it."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "struct":
            return f"struct<{','.join(f'{_shown(name)}:{type_.spark}' for name, type_ in self.fields)}>"
        inner = ",".join(type_.spark for _, type_ in self.fields)
        return f"{self.name}<{inner}>" if self.fields else self.name

    @property
    def duckdb(self) -> str:
        """As DuckDB's SQL writes it."""
        if self.name == "decimal":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "struct":
            return f"STRUCT({', '.join(f'{identifier(name)} {type_.duckdb}' for name, type_ in self.fields)})"
        if self.name == "map":
            return f"MAP({self.key.duckdb}, {self.value.duckdb})"
        return f"{self.element.duckdb}[]" if self.name == "array" else _DUCKDB[self.name]

    @property
    def element(self) -> Type:
        """Of an array."""
        return self.fields[0][1]

    @property
    def key(self) -> Type:
        """Of a map."""
        return self.fields[0][1]

    @property
    def value(self) -> Type:
        """Of a map."""
        return self.fields[1][1]

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_floating(self) -> bool:
        return self.name in FLOATING

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_floating or self.name == "decimal"

    @property
    def is_nested(self) -> bool:
        return self.name in ("array", "map", "struct")

    def field(self, name: str) -> tuple[str, Type] | None:
        """The struct's field of that name, whatever its case; None where there is none, or several."""
        found = [(own, type_) for own, type_ in self.fields if own.lower() == name.lower()]
        return found[0] if self.name == "struct" and len(found) == 1 else None


def simple(name: str) -> Type:
    """A type without parameters."""
    return Type(name=name)


def decimal(precision: int, scale: int) -> Type:
    return Type(name="decimal", precision=precision, scale=scale)


def array(element: Type) -> Type:
    return Type(name="array", fields=(("element", element),))


def struct(*fields: tuple[str, Type]) -> Type:
    return Type(name="struct", fields=fields)


def mapping(key: Type, value: Type) -> Type:
    return Type(name="map", fields=(("key", key), ("value", value)))


BOOLEAN, INT, BIGINT, DOUBLE = simple("boolean"), simple("int"), simple("bigint"), simple("double")
STRING, BINARY, DATE, TIMESTAMP = simple("string"), simple("binary"), simple("date"), simple("timestamp")
VOID = simple("void")


def identifier(name: str) -> str:
    """The name as DuckDB's SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A text as DuckDB's SQL writes it."""
    if "\0" in value:
        parts = (f"'{part}'" for part in value.replace("'", "''").split("\0"))
        return "(" + " || chr(0) || ".join(parts) + ")"
    return "'" + value.replace("'", "''") + "'"


class _Tokens:
    """The words and signs of a type's text, read one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = self._read()
        self.next = next(self._left, "")

    def _read(self) -> Iterator[str]:
        at = 0
        while at < len(self._text.rstrip()):
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self.refused()
            at = found.end()
            yield found[1]

    def take(self, wanted: str | None = None) -> str:
        found = self.next
        if not found or (wanted is not None and found != wanted):
            raise self.refused()
        self.next = next(self._left, "")
        return found

    def end(self) -> None:
        if self.next:
            raise self.refused()

    def refused(self) -> Refused:
        return Refused(f"type {self._text}", "the witness does not know this type")


def _type(tokens: _Tokens) -> Type:
    word = tokens.take().lower()
    name = _OTHER_NAMES.get(word, word)
    if name == "decimal":
        return _decimal(tokens)
    if name == "array":
        tokens.take("<")
        found = array(_type(tokens))
    elif name == "map":
        tokens.take("<")
        key = _type(tokens)
        tokens.take(",")
        found = mapping(key, _type(tokens))
    elif name == "struct":
        tokens.take("<")
        found = _struct(tokens)
    elif name in _DUCKDB:
        return simple(name)
    else:
        raise tokens.refused()
    tokens.take(">")
    return found


def _struct(tokens: _Tokens) -> Type:
    fields: list[tuple[str, Type]] = []
    while tokens.next != ">":
        if fields:
            tokens.take(",")
        name = tokens.take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if tokens.next == ":":
            tokens.take()
        if name.lower() in (other.lower() for other, _ in fields):
            raise tokens.refused()  # DuckDB has no two fields whose names differ by case alone
        fields.append((name, _type(tokens)))
    return struct(*fields)


def _decimal(tokens: _Tokens) -> Type:
    if tokens.next != "(":
        return decimal(10, 0)
    tokens.take("(")
    precision, scale = tokens.take(), "0"
    if tokens.next == ",":
        tokens.take()
        scale = tokens.take()
    tokens.take(")")
    if not (precision.isdecimal() and scale.isdecimal()):
        raise tokens.refused()
    if not 0 <= int(scale) <= int(precision) <= _LARGEST_PRECISION or precision == "0":
        raise tokens.refused()
    return decimal(int(precision), int(scale))


def _shown(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else quote.name(name)

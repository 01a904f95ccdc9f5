"""Owns values of Spark's types in tests: read from YAML, written as text for a person and as DuckDB's SQL."""

from __future__ import annotations

import base64
import binascii
import math
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from twinlake.base.errors import UsageError, near
from twinlake.base.times import EPOCH, format_moment, parse_moment
from twinlake.unit_tests.source import Part
from twinlake.witness.types import Type, identifier, text_literal

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_BOOLEANS = {"true": True, "false": False}
_INFINITE = {".nan": math.nan, ".inf": math.inf, "-.inf": -math.inf}
"""As YAML writes them."""
_MICROSECOND = timedelta(microseconds=1)


def read(part: Part, type_: Type, what: str) -> Any:
    """The value of this type, a struct as a dict with the fields that are written; TestMistake for none."""
    if part.is_null:
        return None
    if type_.name == "array":
        return [read(one, type_.element, what) for one in part.items(what)]
    if type_.name == "map":
        key = type_.key
        return {
            _scalar(one.key, key, what): read(one, type_.value, what) for one in part.mapping(what).values()
        }
    if type_.name == "struct":
        fields = dict(type_.fields)
        return {
            name: read(one, fields[name], f"{what}.{name}") for name, one in part.known(fields, what).items()
        }
    return _scalar(part, type_, what)


def _scalar(part: Part, type_: Type, what: str) -> Any:
    if not part.is_scalar:
        raise part.wrong(f"{what} is {part.kind}, and its type is {type_.spark}")
    text = part.text(what)
    try:
        return _parsed(part, text, type_)
    except UsageError as error:
        if error.remedy:
            raise part.wrong(f"{what}: {error.what}: {error.why}", error.remedy) from error
        raise
    except (ValueError, ArithmeticError, OverflowError) as error:
        raise part.wrong(f"{what} is {text!r}, which is no {type_.spark}") from error


def _parsed(part: Part, text: str, type_: Type) -> Any:
    if type_.name == "string":
        return text
    if type_.name == "boolean":
        return _BOOLEANS[text.lower()] if text.lower() in _BOOLEANS else _refused()
    if type_.is_integer:
        found = int(text)
        bits = _BITS[type_.name]
        return found if -(2 ** (bits - 1)) <= found < 2 ** (bits - 1) else _refused()
    if type_.is_floating:
        return _INFINITE[text.lower()] if text.lower() in _INFINITE else float(text)
    if type_.name == "decimal":
        return _decimal(text, type_)
    if type_.name in ("timestamp", "timestamp_ntz"):
        return parse_moment(text)
    if type_.name == "date":
        return date.fromisoformat(text)
    if type_.name == "binary":
        try:
            return base64.b64decode(text, validate=False) if part.is_binary else text.encode()
        except binascii.Error as error:
            raise ValueError(text) from error
    return _refused()


def _decimal(text: str, type_: Type) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not found.is_finite():
        _refused()
    unscaled = found.scaleb(type_.scale)
    whole = int(unscaled)
    if whole != unscaled or abs(whole) >= 10**type_.precision:
        _refused()
    return Decimal(whole).scaleb(-type_.scale)


def _refused() -> Any:
    raise ValueError


def literal(value: Any, type_: Type) -> str:
    """DuckDB's SQL of a value; a field of a struct that is not there is NULL."""
    return f"CAST({_literal(value, type_)} AS {_stored(type_)})"


def _stored(type_: Type) -> str:
    """The type in a file for both engines: Spark's timestamp is one with a zone."""
    return type_.duckdb.replace("TIMESTAMP", "TIMESTAMPTZ")


def _literal(value: Any, type_: Type) -> str:
    if value is None:
        return "NULL"
    if type_.name == "array":
        return f"[{', '.join(literal(one, type_.element) for one in value)}]"
    if type_.name == "map":
        keys = ", ".join(literal(one, type_.key) for one in value)
        return f"MAP([{keys}], [{', '.join(literal(one, type_.value) for one in value.values())}])"
    if type_.name == "struct":
        parts = (f"{identifier(name)} := {literal(value.get(name), inner)}" for name, inner in type_.fields)
        return f"struct_pack({', '.join(parts)})"
    if type_.name in ("timestamp", "timestamp_ntz"):
        return f"make_timestamptz({micros(value)}::BIGINT)"
    if type_.name == "date":
        return f"DATE '1970-01-01' + {(value - EPOCH.date()).days}"
    if type_.name == "binary":
        return f"unhex('{value.hex()}')"
    if type_.name == "boolean":
        return "true" if value else "false"
    if type_.name == "decimal":
        return text_literal(f"{value:f}")
    return text_literal(value if isinstance(value, str) else repr(value))


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def shown(value: Any) -> str:
    """A value for a person, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_moment(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(one)}" for key, one in value.items()) + "}"
    return str(value)


def known(name: str, types: dict[str, Type], part: Part, what: str) -> Type:
    """The type of a column of this name; TestMistake where there is none."""
    if name not in types:
        raise part.wrong(f"{what} has no column {name!r}{near(name, types)}")
    return types[name]

"""Reads a JSON record as a contract says its shape, in plain Python; shares no code with the platform."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_INTEGERS = {"int": 31, "bigint": 63}


class NoEventError(ValueError):
    """The bytes are no object of the contract's shape."""


def event(value: bytes, properties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The object's promised fields, None where it has none; NoEventError says why it is no event."""
    try:
        found = json.loads(
            value.decode(), parse_float=_number, parse_constant=_refuse, object_pairs_hook=_once
        )
        json.dumps(found, default=str, ensure_ascii=False).encode()  # half a character is none
    except ValueError as error:
        raise NoEventError(str(error)) from error
    if not isinstance(found, dict):
        raise NoEventError("it is no object")
    return _members(found, properties, "")


class _Exponent(float):
    """A number that is not written out: exact for no decimal."""


def _number(text: str) -> Decimal | _Exponent:
    return (
        _Exponent(text)
        if "e" in text.lower() or len(text.lstrip("-0.").replace(".", "")) > 38
        else Decimal(text)
    )


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _members(found: Mapping[str, Any], properties: Iterable[Mapping[str, Any]], path: str) -> dict[str, Any]:
    return {one["name"]: _read(found.get(one["name"]), one, f"{path}{one['name']}") for one in properties}


def _read(value: Any, promised: Mapping[str, Any], path: str) -> Any:
    if value is None:
        return None
    logical, physical = promised["logicalType"], promised["physicalType"].replace(" ", "").lower()
    try:
        if logical == "object":
            return _members(_of(value, dict), promised["properties"], f"{path}.")
        if logical == "array":
            return [_read(one, promised["items"], f"{path}[]") for one in _of(value, list)]
        if logical == "map":
            inner = promised["map"]["value"]
            return {name: _read(one, inner, f"{path}[]") for name, one in _of(value, dict).items()}
        return _plain(value, physical)
    except NoEventError:
        raise
    except (ValueError, TypeError, ArithmeticError, binascii.Error) as error:
        raise NoEventError(f"{path}: {error}") from error


def _plain(value: Any, physical: str) -> Any:
    if physical == "string":
        return _of(value, str)
    if physical == "boolean":
        return _of(value, bool)
    if physical in _INTEGERS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("it is no integer")
        if not -(1 << _INTEGERS[physical]) <= value < 1 << _INTEGERS[physical]:
            raise ValueError("it is too large")
        return value
    if physical.startswith("decimal("):
        return _decimal(value, *map(int, physical[8:-1].split(",")))
    if physical in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise ValueError("it is no number")
        return (
            struct.unpack("<f", struct.pack("<f", value))[0] if physical == "float" else _finite(float(value))
        )
    if physical == "timestamp":
        if not _MOMENT.fullmatch(_of(value, str)):
            raise ValueError("it is no moment with an offset")
        return datetime.fromisoformat(value).astimezone(UTC)
    if physical == "date":
        if not _DAY.fullmatch(_of(value, str)):
            raise ValueError("it is no day")
        return date.fromisoformat(value)
    return base64.b64decode(_of(value, str), validate=True)


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("it is no number that is written out")
    whole, _, fraction = f"{Decimal(value):f}".lstrip("-").partition(".")
    if len(whole.lstrip("0")) > precision - scale or len(fraction.rstrip("0")) > scale:
        raise ValueError("it has too many digits")
    return Decimal(value)


def _finite(value: float) -> float:
    if value in (float("inf"), float("-inf")):
        raise ValueError("it is too large")
    return value


def _of(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"it is no {kind.__name__}")
    return value

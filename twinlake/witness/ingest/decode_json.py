"""Owns the reading of a value in JSON: one object, read by the types that the contract says.

Nothing is read as what it is not: a number in quotes is text, a decimal has no exponent, a moment is ISO 8601
with an offset. Numbers stay as they are written until a type says what they are.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import sys
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from twinlake.witness.ingest.decode_avro import HEADER, YEARS, Decoded
from twinlake.witness.ingest.json_schema import JsonSchema
from twinlake.witness.ingest.record import Malformed, Unsure, Value
from twinlake.witness.types import EXACT, Type

DEEPEST = 999
"""Levels of nesting in a document."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_MOMENT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_DIGITS = 38
_LONG, _INT = 1 << 63, 1 << 31
_LONGEST_NUMBER, _LONGEST_TEXT = 1_000, 15_000_000
_BEYOND_DECIMALS = 1e38
MISSING = object()
"""A member that is not there; None is JSON's null."""


class Number(str):
    """A number as it is written."""

    @property
    def exact(self) -> Decimal | None:
        """None for one that is kept as a double: it has an exponent, or more than 38 digits."""
        if "e" in self.lower():
            return None
        found = Decimal(self)
        digits, scale = found.as_tuple().digits, -int(found.as_tuple().exponent)
        return found if len(digits) <= _DIGITS and scale <= _DIGITS else None

    @property
    def whole(self) -> int | None:
        """None for one that is written with a fraction, or has more than 64 bits."""
        if not re.fullmatch(r"-?\d+", self) or len(self) > _DIGITS:
            return None
        found = int(self)
        return found if -_LONG <= found < _LONG else None


def document(value: bytes) -> dict[str, Any]:
    """The object that the bytes are; Malformed for anything else."""
    if len(value) > _LONGEST_TEXT:
        raise Unsure("it is longer than parsers take")
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise Malformed("invalid_utf8") from error
    found = parsed(text)
    if not isinstance(found, dict):
        raise Malformed("malformed_body")
    return found


def parsed(text: str) -> Any:
    """Any JSON; Malformed for what is none, names something twice, or has half of a character."""
    depth = _depth(text)
    if depth > DEEPEST:
        raise Malformed("malformed_body")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * DEEPEST))
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=_refused
        )
    except (ValueError, RecursionError) as error:
        raise Malformed("malformed_body") from error


def _depth(text: str) -> int:
    deepest = depth = 0
    for found in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name is there twice")
    for name, value in pairs:
        _refuse_halves(name)
        _refuse_halves(value)
    return made


def _refuse_halves(value: Any) -> None:
    for one in value if isinstance(value, list) else (value,):
        if isinstance(one, list):
            _refuse_halves(one)
        elif isinstance(one, str) and any("\ud800" <= sign <= "\udfff" for sign in one):
            raise ValueError("half of a character")


def _number(text: str) -> Number:
    if len(text) > _LONGEST_NUMBER:
        raise Unsure("a number is longer than parsers take")
    return Number(text)


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def read(found: Any, type_: Type, path: str, wrong: dict[str, None]) -> Value:
    """What a type makes of JSON; None and a reason more in `wrong` where it is none of the type's values."""
    if found is None or found is MISSING:
        return None
    if type_.name == "struct":
        if not isinstance(found, dict):
            return _wrong("wrong_type", path, wrong)
        inner = {name: f"{path}.{name}" if path else name for name, _ in type_.fields}
        return {name: read(found.get(name, MISSING), one, inner[name], wrong) for name, one in type_.fields}
    if type_.name == "array":
        if not isinstance(found, list):
            return _wrong("wrong_type", path, wrong)
        return [read(one, type_.element, f"{path}[]", wrong) for one in found]
    if type_.name == "map":
        if not isinstance(found, dict):
            return _wrong("wrong_type", path, wrong)
        return {name: read(one, type_.value, f"{path}[]", wrong) for name, one in found.items()}
    return _plain(found, type_, path, wrong)


def _plain(found: Any, type_: Type, path: str, wrong: dict[str, None]) -> Value:
    name = type_.name
    if isinstance(found, Number):
        return _of_number(found, type_, path, wrong)
    if name == "boolean" and isinstance(found, bool):
        return found
    if isinstance(found, str):
        if name == "string":
            return found
        if name in ("date", "timestamp"):
            return _time(found, name, path, wrong)
        if name == "binary":
            value = _bytes(found)
            return _wrong("wrong_type", path, wrong) if value is None else value
    return _wrong("wrong_type", path, wrong)


def _of_number(found: Number, type_: Type, path: str, wrong: dict[str, None]) -> Value:
    if type_.is_integer:
        end, whole = (_INT if type_.name == "int" else _LONG), found.whole
        return whole if whole is not None and -end <= whole < end else _wrong("wrong_type", path, wrong)
    if type_.is_floating:
        if type_.name == "float" and _is_near_half(found):
            raise Unsure("a float lies beside the middle of two")
        return _floating(float(found), type_, path, wrong)
    if type_.name == "decimal":
        exact = found.exact
        if exact is None:
            is_beyond = abs(float(found)) >= _BEYOND_DECIMALS
            return _wrong("decimal_out_of_range" if is_beyond else "wrong_type", path, wrong)
        kept = exact.quantize(Decimal(1).scaleb(-type_.scale), context=EXACT)
        fits = kept == exact and abs(kept) < Decimal(10) ** (type_.precision - type_.scale)
        # a log has no negative zero of a decimal: it is an id's text, too
        return EXACT.plus(kept) if fits else _wrong("decimal_out_of_range", path, wrong)
    return _wrong("wrong_type", path, wrong)


def _floating(found: float, type_: Type, path: str, wrong: dict[str, None]) -> Value:
    if type_.name == "float":
        found = to_float(found)
    return found if abs(found) != float("inf") else _wrong("wrong_type", path, wrong)


def _is_near_half(found: Number) -> bool:
    """Whether the text, rounded to 64 bits and then to 32, may be another than rounded at once."""
    double = float(found)
    middle = (to_float(math.nextafter(double, math.inf)), to_float(math.nextafter(double, -math.inf)))
    return middle[0] != middle[1]


def to_float(found: float) -> float:
    """The nearest of 32 bits."""
    import ctypes

    return ctypes.c_float(found).value


def _bytes(text: str) -> bytes | None:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found).decode() == text else None


def _time(text: str, name: str, path: str, wrong: dict[str, None]) -> Value:
    day = _DAY if name == "date" else _MOMENT
    parts = day.fullmatch(text)
    days = parts and _days(*(int(parts[number]) for number in (1, 2, 3)))
    if parts is None or days is None:
        return _wrong("wrong_type", path, wrong)
    found = days
    if name == "timestamp":
        hour, minute, second = (int(parts[number]) for number in (4, 5, 6))
        ahead = int(parts[9] or 0) * 60 + int(parts[10] or 0)
        if hour > 23 or minute > 59 or second > 59 or ahead > 18 * 60 or int(parts[10] or 0) > 59:
            return _wrong("wrong_type", path, wrong)
        seconds = days * 86_400 + hour * 3600 + minute * 60 + second
        seconds -= ahead * 60 * (-1 if parts[8] == "-" else 1)
        found = seconds * 1_000_000 + int((parts[7] or "").ljust(6, "0"))
    low, high = YEARS["date" if name == "date" else "timestamp-micros"]
    return found if low <= found <= high else _wrong("time_out_of_range", path, wrong)


def _days(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of the Gregorian calendar; the year 0 is before the year 1, as leap a year as 2000."""
    try:
        return date(year or 2000, month, day).toordinal() - 719_163 - (0 if year else 730_485)
    except ValueError:
        return None


def _wrong(code: str, path: str, wrong: dict[str, None]) -> None:
    wrong[f"{code}:{path}" if path else code] = None


def members(found: Mapping[str, Any], fields: Mapping[str, Type], wrong: dict[str, None]) -> dict[str, Value]:
    """The members of these names, each as its type."""
    return {name: read(found.get(name, MISSING), type_, name, wrong) for name, type_ in fields.items()}


def decode(value: bytes, schema: JsonSchema) -> Decoded:
    """The document behind a frame's header, each member as its writer's schema has it."""
    wrong: dict[str, None] = {}
    types = {name: node.type for name, node in schema.nodes.items() if node is not None}
    return Decoded(members(document(value[HEADER:]), types, wrong), tuple(wrong))

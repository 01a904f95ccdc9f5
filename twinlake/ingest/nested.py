"""Whether what is inside a writer's nested fields can be kept: the rules of plain fields, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.ingest.writer_schema import RANGES, Writer
from twinlake.topics import verdict

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, DecimalType


Beyond = Callable[[str, "DecimalType"], str]
"""SQL that is TRUE of a decimal that cannot be kept as this type, which is a number or, elsewhere, bytes."""


def beyond(value: str, kept: DecimalType) -> str:
    """Of a number, with room for 38 digits."""
    return f"({value} IS NOT NULL AND try_cast({value} AS {kept.simpleString()}) IS NULL)"


def bad_fields(writer: Writer, body: str, beyond: Beyond = beyond) -> list[str]:
    """SQL over a body that `decode_avro.unchecked` decoded: the reason where a value cannot be kept."""
    plain = {field.name for field in writer.plain}
    found = []
    for field in writer.kept:
        if field.name in plain:
            continue
        value = f"{body}.{quote.name(field.name)}"
        by_code: dict[str, list[str]] = {}
        for code, bad in _type_errors(value, field.dataType, beyond):
            by_code.setdefault(code, []).append(bad)
        for code, conditions in by_code.items():
            found.append(f"CASE WHEN {' OR '.join(conditions)} THEN '{verdict.reason(code, field.name)}' END")
    return found


def decimals(writer: Writer, body: str) -> list[str]:
    """SQL over a body whose decimals are bytes: whether one inside a field has none."""
    plain = {field.name for field in writer.plain}
    return [
        condition
        for field in writer.kept
        if field.name not in plain
        for code, condition in _type_errors(
            f"{body}.{quote.name(field.name)}", field.dataType, lambda value, _: decimal_is_empty(value)
        )
        if code == verdict.DECIMAL_OUT_OF_RANGE
    ]


def _type_errors(value: str, kept: DataType, beyond: Beyond, depth: int = 0) -> Iterator[tuple[str, str]]:
    """(reason code, SQL that is TRUE where it applies); `kept` is the type that the value will have."""
    name = kept.typeName()
    if name == "string":
        yield verdict.INVALID_UTF8, f"NOT is_valid_utf8({value})"
    elif name == "decimal":
        yield verdict.DECIMAL_OUT_OF_RANGE, beyond(value, kept)  # type: ignore[arg-type]
    elif name in ("date", "timestamp"):
        low, high = RANGES["date" if name == "date" else "timestamp-micros"]
        number = "unix_date" if name == "date" else "unix_micros"
        yield verdict.TIME_OUT_OF_RANGE, f"{number}({value}) NOT BETWEEN {low} AND {high}"
    elif name == "struct":
        for field in kept:  # type: ignore[attr-defined]
            yield from _type_errors(f"{value}.{quote.name(field.name)}", field.dataType, beyond, depth)
    elif name == "array":
        yield from _inside(value, kept.elementType, beyond, depth)  # type: ignore[attr-defined]
    elif name == "map":
        yield from _inside(f"map_keys({value})", kept.keyType, beyond, depth)  # type: ignore[attr-defined]
        yield from _inside(f"map_values({value})", kept.valueType, beyond, depth)  # type: ignore[attr-defined]


def _inside(values: str, kept: DataType, beyond: Beyond, depth: int) -> Iterator[tuple[str, str]]:
    for code, bad in _type_errors(f"x{depth}", kept, beyond, depth + 1):
        yield code, f"exists({values}, x{depth} -> {bad})"


_ONES = "translate({0}, '0123456789ABCDEF', 'FEDCBA9876543210')"


def decimal_is_empty(value: str) -> str:
    """No bytes at all are no number."""
    return f"length({value}) = 0"


def decimal_is_beyond(value: str, precision: int) -> str:
    """Whether the number has more digits than that."""
    text = f"hex({value})"
    greatest = 10**precision - 1
    return (
        f"CASE WHEN {text} >= '8' THEN {_at_least(_ONES.format(text), greatest)} "  # -1 - value, as positive
        f"ELSE {_at_least(text, greatest + 1)} END"
    )


def _at_least(text: str, number: int) -> str:
    """Two numbers in hexadecimal: the longer is the greater, of equal length the one that sorts later."""
    known, digits = f"{number:X}", f"trim(LEADING '0' FROM {text})"
    size = len(known)
    return f"(length({digits}) > {size} OR (length({digits}) = {size} AND {digits} >= '{known}'))"

"""Owns a field's default, as Avro's JSON writes it: what a record shows whose writer had no such field."""

from __future__ import annotations

from typing import Any

from twinlake.witness.question import Field
from twinlake.witness.refused import Refused
from twinlake.witness.types import Type, identifier, text_literal

_UNITS = {"timestamp-millis": 1_000, "timestamp-micros": 1}


def default(field: Field) -> str:
    """DuckDB's SQL of it; Refused for one that is not read here."""
    type_ = Type.parse(field.type)
    try:
        return f"CAST({_literal(field.default, type_, field.avro)} AS {type_.duckdb})"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Refused(f"default of field {field.name}", f"{field.default!r} as {field.type}") from error


def _literal(value: Any, type_: Type, avro: Any) -> str:
    if value is None:
        return "NULL"
    known = _of(avro)
    if type_.name == "array":
        return f"[{', '.join(_literal(one, type_.element, known['items']) for one in value)}]"
    if type_.name == "map":
        keys = ", ".join(text_literal(str(key)) for key in value)
        values = ", ".join(_literal(one, type_.value, known["values"]) for one in value.values())
        return f"MAP([{keys}], [{values}])"
    if type_.name == "struct":
        fields = {one["name"]: one for one in known["fields"]}
        parts = []
        for name, inner in type_.fields:
            found = _literal(value.get(name, fields[name].get("default")), inner, fields[name]["type"])
            parts.append(f"{identifier(name)} := CAST({found} AS {inner.duckdb})")
        return f"struct_pack({', '.join(parts)})"
    return _plain(value, type_, known.get("logicalType"))


def _plain(value: Any, type_: Type, logical: str | None) -> str:
    if type_.name == "boolean":
        return {True: "true", False: "false"}[value]
    if type_.name == "string":
        return text_literal(value)
    if type_.name == "binary":
        return f"unhex('{value.encode('latin-1').hex()}')"
    if type_.name == "decimal":
        unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
        digits = str(abs(unscaled)).rjust(type_.scale + 1, "0")
        whole, parts = digits[: len(digits) - type_.scale], digits[len(digits) - type_.scale :]
        return text_literal(f"{'-' if unscaled < 0 else ''}{whole}.{parts or '0'}")
    if type_.name == "timestamp":
        return f"make_timestamp({int(value) * _UNITS[str(logical)]}::BIGINT)"
    if type_.name == "date":
        return f"DATE '1970-01-01' + {int(value)}"
    return text_literal(repr(float(value)) if type_.is_floating else str(int(value)))


def _of(avro: Any) -> dict[str, Any]:
    """What a type in Avro says of itself, without its union with null."""
    if isinstance(avro, list):
        avro = next(part for part in avro if part != "null")
    if isinstance(avro, dict) and isinstance(avro.get("type"), dict):
        return _of(avro["type"])
    return avro if isinstance(avro, dict) else {}

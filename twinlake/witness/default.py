"""Owns a field's default, as Avro's JSON writes it: what a record shows whose writer had no such field."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from twinlake.witness.question import Field
from twinlake.witness.refused import Refused
from twinlake.witness.types import EXACT, Type, identifier, text_literal

_UNITS = {"timestamp-millis": 1_000, "timestamp-micros": 1}


def default(field: Field) -> str:
    """DuckDB's SQL of it; Refused for one that is not read here."""
    type_ = Type.parse(field.type)
    return f"CAST({_literal(value(field), type_)} AS {type_.duckdb})"


def value(field: Field) -> Any:
    """It in a plain form: of a timestamp its microseconds since 1970, of a date its days, of a struct and a
    map a dict. Refused for one that is not read here."""
    try:
        return _value(field.default, Type.parse(field.type), field.avro)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Refused(f"default of field {field.name}", f"{field.default!r} as {field.type}") from error


def _value(said: Any, type_: Type, avro: Any) -> Any:
    if said is None:
        return None
    known = _of(avro)
    if type_.name == "array":
        return [_value(one, type_.element, known["items"]) for one in said]
    if type_.name == "map":
        return {str(key): _value(one, type_.value, known["values"]) for key, one in said.items()}
    if type_.name == "struct":
        fields = {one["name"]: one for one in known["fields"]}
        return {
            name: _value(said.get(name, fields[name].get("default")), inner, fields[name]["type"])
            for name, inner in type_.fields
        }
    return _plain(said, type_, known.get("logicalType"))


def _plain(said: Any, type_: Type, logical: str | None) -> Any:
    if type_.name == "boolean":
        return {True: True, False: False}[said]
    if type_.name == "string":
        return said
    if type_.name == "binary":
        return said.encode("latin-1")
    if type_.name == "decimal":
        unscaled = int.from_bytes(said.encode("latin-1"), "big", signed=True)
        return Decimal(unscaled).scaleb(-type_.scale, EXACT)
    if type_.name == "timestamp":
        return int(said) * _UNITS[str(logical)]
    return float(said) if type_.is_floating else int(said)


def _literal(found: Any, type_: Type) -> str:
    if found is None:
        return "NULL"
    if type_.name == "array":
        return f"[{', '.join(_literal(one, type_.element) for one in found)}]"
    if type_.name == "map":
        keys = ", ".join(map(text_literal, found))
        return f"MAP([{keys}], [{', '.join(_literal(one, type_.value) for one in found.values())}])"
    if type_.name == "struct":
        parts = (
            f"{identifier(name)} := CAST({_literal(found[name], inner)} AS {inner.duckdb})"
            for name, inner in type_.fields
        )
        return f"struct_pack({', '.join(parts)})"
    if type_.name == "boolean":
        return "true" if found else "false"
    if type_.name == "binary":
        return f"unhex('{found.hex()}')"
    if type_.name == "timestamp":
        return f"make_timestamp({found}::BIGINT)"
    if type_.name == "date":
        return f"DATE '1970-01-01' + {found}"
    return text_literal(f"{found:f}" if type_.name == "decimal" else str(found))


def _of(avro: Any) -> dict[str, Any]:
    """What a type in Avro says of itself, without its union with null."""
    if isinstance(avro, list):
        avro = next(part for part in avro if part != "null")
    if isinstance(avro, dict) and isinstance(avro.get("type"), dict):
        return _of(avro["type"])
    return avro if isinstance(avro, dict) else {}

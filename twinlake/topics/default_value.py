"""Owns a field's default as Spark SQL: what a record shows whose writer had no such field."""

from __future__ import annotations

from typing import Any

from twinlake.base import quote
from twinlake.topics.avro_type import without_null
from twinlake.topics.schema import Field, logical_type
from twinlake.topics.spark_type import Array, Map, Plain, Type, parse, text

_TEXT, _WHOLE, _NUMBER = (str,), (int,), (int, float)
_WRITTEN_AS: dict[str, tuple[type, ...]] = {
    "boolean": (bool,), "string": _TEXT, "binary": _TEXT, "float": _NUMBER, "double": _NUMBER,
}  # fmt: skip
"""How Avro writes a default in JSON, where it is not a whole number."""
_BITS = {"int": 31, "date": 31}


def default_sql(field: Field) -> str:
    """A field's default as a SQL literal of the field's type; ValueError where it is not a value of it."""
    if field.default is None:
        return f"CAST(NULL AS {field.type})"
    try:
        return _literal(field.default, parse(field.type), logical_type(field), field.avro)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{field.default!r} is not of type {field.type}") from error


def _literal(value: Any, type_: Type, logical: str | None, avro: Any) -> str:
    kept, _ = without_null(avro)
    inside = kept if isinstance(kept, dict) else {}
    if isinstance(type_, Plain):
        if value not in inside.get("symbols", [value]):
            raise ValueError(f"{value!r} is none of the symbols {', '.join(inside['symbols'])}")
        return _plain(value, type_, logical)
    if isinstance(type_, Array):
        items = (_inside(item, type_.element, inside.get("items")) for item in value)
        return f"CAST(array({', '.join(items)}) AS {text(type_)})"
    if isinstance(type_, Map):
        pairs = (
            f"{quote.string(key)}, {_inside(item, type_.value, inside.get('values'))}"
            for key, item in value.items()
        )
        return f"CAST(map({', '.join(pairs)}) AS {text(type_)})"
    fields = {field["name"]: field for field in inside.get("fields", [])}
    parts = []
    for name, inner in type_.fields:
        known = fields.get(name, {})
        given = value.get(name, known.get("default"))
        parts.append(f"{quote.string(name)}, {_inside(given, inner, known.get('type'))}")
    return f"CAST(named_struct({', '.join(parts)}) AS {text(type_)})"


def _inside(value: Any, type_: Type, avro: Any) -> str:
    if value is None:
        return f"CAST(NULL AS {text(type_)})"
    kept, _ = without_null(avro)
    logical = kept.get("logicalType") if isinstance(kept, dict) else None
    return _literal(value, type_, logical, avro)


def _plain(value: Any, type_: Plain, logical: str | None) -> str:
    _refuse_other(value, type_)
    if type_.digits:
        unscaled = int.from_bytes(str(value).encode("latin-1"), "big", signed=True)
        precision, scale = type_.digits
        digits = f"{abs(unscaled):0{scale + 1}d}"
        text = digits[: len(digits) - scale] + ("." + digits[len(digits) - scale :] if scale else "")
        return f"CAST('{'-' if unscaled < 0 else ''}{text}' AS decimal({precision},{scale}))"
    if logical == "timestamp-millis":
        return f"timestamp_millis({int(value)}L)"
    if logical == "timestamp-micros":
        return f"timestamp_micros({int(value)}L)"
    if type_.name == "date":
        return f"date_from_unix_date({int(value)})"
    if type_.name == "timestamp":  # inside a type that is named here and written elsewhere
        raise ValueError(f"the unit of {value!r} is not known here: write the type out")
    if type_.name == "binary":
        return f"X'{str(value).encode('latin-1').hex()}'"
    if type_.name == "string":
        return quote.string(str(value))
    return f"CAST({quote.string(str(value).lower())} AS {type_.name})"


def _refuse_other(value: Any, type_: Plain) -> None:
    """ValueError for what is not written as a value of the type: Spark would fail with it at each record."""
    written = _TEXT if type_.digits else _WRITTEN_AS.get(type_.name, _WHOLE)
    if not isinstance(value, written) or (isinstance(value, bool) and type_.name != "boolean"):
        raise ValueError(f"{value!r} is not of type {type_.name}")
    end = 1 << _BITS.get(type_.name, 63)
    if isinstance(value, int) and written is _WHOLE and not -end <= value < end:
        raise ValueError(f"{value!r} is beyond {type_.name}")

"""Owns a topic's Avro schema as a file in `schemas/`: its fields, their Spark types, its defaults."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import quote
from jobs.errors import ContractError

FILE_NAME = re.compile(r"(?P<topic>[a-z][a-z0-9_]*)\.v(?P<number>[1-9][0-9]*)\.avsc")
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PRIMITIVE = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "string": "string", "bytes": "binary",
}  # fmt: skip
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
}
_KEYS = {"type", "name", "namespace", "doc", "fields"}
_FIELD_KEYS = {"name", "type", "doc", "default"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of an event: its Avro type and the Spark SQL type it is read as."""

    name: str
    avro: Any
    type: str
    nullable: bool
    has_default: bool = False
    default: Any = None

    @property
    def precision(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None."""
        found = re.fullmatch(r"decimal\((\d+),(\d+)\)", self.type)
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, kw_only=True)
class Schema:
    """One version of a topic's record. Files are added, never edited."""

    topic: str
    number: int
    file: str
    fields: tuple[Field, ...]
    avro: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The schema as JSON text, for the registry and for decoding."""
        return json.dumps(self.avro)

    @property
    def fingerprint(self) -> str:
        """sha256 over what decides how bytes are read; docs and formatting do not count."""
        meaning = [[f.name, f.avro, f.has_default, f.default] for f in self.fields]
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()

    def field(self, name: str) -> Field | None:
        """The field of that name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)


def logical_type(field: Field) -> str | None:
    """The Avro logical type of a simple field, looked up inside a union with null."""
    parts = field.avro if isinstance(field.avro, list) else [field.avro]
    return next((part.get("logicalType") for part in parts if isinstance(part, dict)), None)


def default_sql(field: Field) -> str:
    """A field's default as a SQL literal of the field's type."""
    value = field.default
    if value is None:
        return f"CAST(NULL AS {field.type})"
    if field.precision:
        unscaled = int.from_bytes(str(value).encode("latin-1"), "big", signed=True)
        precision, scale = field.precision
        digits = f"{abs(unscaled):0{scale + 1}d}"
        text = digits[: len(digits) - scale] + ("." + digits[len(digits) - scale :] if scale else "")
        return f"CAST('{'-' if unscaled < 0 else ''}{text}' AS decimal({precision},{scale}))"
    logical = logical_type(field)
    if logical == "timestamp-millis":
        return f"timestamp_millis({int(value)}L)"
    if logical == "timestamp-micros":
        return f"timestamp_micros({int(value)}L)"
    if logical == "date":
        return f"date_from_unix_date({int(value)})"
    if field.type == "binary":
        return f"X'{str(value).encode('latin-1').hex()}'"
    if field.type == "string":
        return quote.string(str(value))
    return f"CAST({quote.string(str(value).lower())} AS {field.type})"


def type_change(before: Field, after: Field) -> str | None:
    """What is wrong where a field has another type than before, in the words that all say it in."""
    if before.type == after.type:
        return None
    return f"field {after.name!r} was {before.type} and is {after.type}: a field keeps its type"


def load_schema(path: Path) -> Schema:
    """Read one `<topic>.v<N>.avsc`; a wrong one raises ContractError with file and path."""
    named = FILE_NAME.fullmatch(path.name)
    if named is None:
        raise ContractError(path, "", "the file name is not <topic>.v<N>.avsc", "rename the file")
    try:
        avro = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ContractError(path, "", f"it cannot be read as JSON: {error}", "repair the file") from error
    return parse_schema(avro, topic=named["topic"], number=int(named["number"]), file=str(path))


def parse_schema(avro: Any, *, topic: str, number: int, file: str) -> Schema:
    """The schema in a parsed Avro document."""
    if not isinstance(avro, dict) or avro.get("type") != "record":
        raise ContractError(file, "type", "a topic's schema must be a record")
    _refuse_unknown(avro, _KEYS, file, "")
    for key in ("name", "fields"):
        if not avro.get(key):
            raise ContractError(file, key, "it is missing or empty")
    if not isinstance(avro["fields"], list):
        raise ContractError(file, "fields", "it must be a list")
    fields = tuple(_field(found, file, f"fields[{index}]") for index, found in enumerate(avro["fields"]))
    seen: set[str] = set()
    for index, field in enumerate(fields):
        if field.name.lower() in seen:
            raise ContractError(
                file, f"fields[{index}].name", f"{field.name!r} is used twice (case is ignored)"
            )
        seen.add(field.name.lower())
    return Schema(topic=topic, number=number, file=file, fields=fields, avro=avro)


def _refuse_unknown(found: dict[str, Any], known: set[str], file: str, path: str) -> None:
    for key in found:
        if key not in known:
            where = f"{path}.{key}" if path else key
            raise ContractError(file, where, "unknown key", f"known keys here: {', '.join(sorted(known))}")


def _field(found: Any, file: str, path: str) -> Field:
    if not isinstance(found, dict):
        raise ContractError(file, path, "a field must be an object")
    _refuse_unknown(found, _FIELD_KEYS, file, path)
    for key in ("name", "type"):
        if key not in found:
            raise ContractError(file, f"{path}.{key}", "it is missing")
    name = found["name"]
    if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name):
        raise ContractError(
            file, f"{path}.name", f"{name!r} is no field name", "use letters, digits and _, a letter first"
        )
    avro, nullable = found["type"], False
    if isinstance(avro, list):
        others = [part for part in avro if part != "null"]
        if len(others) != 1 or len(avro) != 2:
            raise ContractError(file, f"{path}.type", "a union must be null and one other type")
        avro, nullable = others[0], True
    kind = _spark_type(avro, file, f"{path}.type")
    return Field(
        name=name, avro=found["type"], type=kind, nullable=nullable,
        has_default="default" in found, default=found.get("default"),
    )  # fmt: skip


def _spark_type(avro: Any, file: str, path: str) -> str:
    if isinstance(avro, str) and avro in _PRIMITIVE:
        return _PRIMITIVE[avro]
    if isinstance(avro, dict) and set(avro) <= {"type", "logicalType", "precision", "scale", "doc"}:
        base, logical = avro.get("type"), avro.get("logicalType")
        if base == "bytes" and logical == "decimal":
            precision, scale = avro.get("precision"), avro.get("scale", 0)
            if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 38):
                raise ContractError(file, path, "a decimal needs 0 <= scale <= precision <= 38")
            return f"decimal({precision},{scale})"
        if isinstance(base, str) and isinstance(logical, str) and (base, logical) in _LOGICAL:
            return _LOGICAL[base, logical]
        if logical is None and isinstance(base, str) and base in _PRIMITIVE:
            return _PRIMITIVE[base]
    known = [*_PRIMITIVE, "decimal in bytes", "date", "timestamp-millis", "timestamp-micros"]
    raise ContractError(
        file, path, f"unsupported type {avro!r}", f"supported: {', '.join(known)}, or null with one"
    )

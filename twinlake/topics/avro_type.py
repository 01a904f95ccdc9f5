"""Owns which Avro types a topic's fields may have, and as which Spark SQL types they are read.

Whatever the log has no type for is read exactly as it is sent: a time of day and a local time as their
number, a duration as its 12 bytes, a uuid as its text or its 16 bytes.
"""

from __future__ import annotations

import math
import re
from typing import Any

from twinlake.base.errors import ContractError

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
_AS_SENT = {
    ("int", "time-millis"), ("long", "time-micros"), ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"), ("string", "uuid"), ("fixed", "uuid"), ("fixed", "duration"),
}  # fmt: skip
_TYPE_KEYS = {
    "primitive": {"type", "logicalType", "precision", "scale", "doc"},
    "record": {"type", "name", "namespace", "aliases", "doc", "fields"},
    "enum": {"type", "name", "namespace", "aliases", "doc", "symbols", "default"},
    "fixed": {"type", "name", "namespace", "aliases", "doc", "size", "logicalType", "precision", "scale"},
    "array": {"type", "items", "doc"},
    "map": {"type", "values", "doc"},
}
_INSIDE_KEYS = {"name", "type", "doc", "default", "aliases"}
KNOWN = (
    *_PRIMITIVE, "decimal in bytes or fixed", "date", "timestamp-millis", "timestamp-micros",
    *sorted({logical for _, logical in _AS_SENT}), "record", "enum", "fixed", "array", "map",
)  # fmt: skip
PROTOBUF = "protobuf"
"""Where a schema that was Protobuf's says how its bytes are read; nothing of columns."""
DEEPEST = 50
"""So many levels a field may have inside of each other."""
MOST_MEMBERS = 20_000
"""So many types a schema may have in all: what is named once, and used twice at each level, has no end."""


def is_meant(key: str) -> bool:
    """Whether a key of a schema says something of columns: Kafka Connect leaves keys there for itself."""
    return key != PROTOBUF and not key.startswith("connect.")


class Names:
    """The named types of one schema, as they are met; a type that holds itself has no place in a table."""

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self._types: dict[str, str | None] = {}

    def full(self, name: str, namespace: str) -> str:
        return name if "." in name or not namespace else f"{namespace}.{name}"

    def begin(self, name: str) -> None:
        self._types[name] = None

    def end(self, name: str, type_: str) -> None:
        self._types[name] = type_

    def find(self, name: str, namespace: str) -> tuple[bool, str | None]:
        """(whether it is known, its Spark type, None as long as it is being read)."""
        for one in (self.full(name, namespace), name):
            if one in self._types:
                return True, self._types[one]
        return False, None


def members(avro: Any, known: dict[str, int] | None = None) -> int:
    """How many types a schema has, with all that is inside of those that it names."""
    known = {} if known is None else known
    if isinstance(avro, list):
        return sum(members(one, known) for one in avro)
    if not isinstance(avro, dict):
        return known.get(str(avro).rpartition(".")[2], 1)
    inside = [one.get("type") for one in avro.get("fields", []) if isinstance(one, dict)]
    inside += [avro[key] for key in ("items", "values") if key in avro]
    found = 1 + sum(members(one, known) for one in inside)
    if "name" in avro:
        name = str(avro["name"]).rpartition(".")[2]
        known[name] = max(found, known.get(name, 0))
    return found if inside else members(avro.get("type"), known)


def without_null(avro: Any) -> tuple[Any, bool]:
    """(the type, whether null is one of its values); a union of other types stays one."""
    if not isinstance(avro, list) or "null" not in avro or len(avro) != 2:
        return avro, False
    return next((part for part in avro if part != "null"), "null"), True


def spark_type(avro: Any, file: str, path: str, names: Names, namespace: str = "") -> str:
    """The Spark SQL type that values of an Avro type are read as; ContractError with the place where there
    is none that holds them exactly."""
    kept, _ = without_null(avro)
    if isinstance(kept, list):
        raise ContractError(file, path, "a union must be null and one other type")
    if isinstance(kept, str):
        return _named(kept, file, path, names, namespace)
    if not isinstance(kept, dict):
        raise _unsupported(kept, file, path)
    base = kept.get("type")
    if not isinstance(base, str):
        raise _unsupported(kept, file, path)
    sort = base if base in _TYPE_KEYS else "primitive"
    if foreign := sorted(filter(is_meant, set(kept) - _TYPE_KEYS[sort])):
        raise ContractError(
            file, path, f"unsupported type {kept!r}: unknown key {foreign[0]!r}",
            f"known keys here: {', '.join(sorted(_TYPE_KEYS[sort]))}",
        )  # fmt: skip
    if sort == "array":
        return f"array<{spark_type(kept.get('items'), file, f'{path}.items', names, namespace)}>"
    if sort == "map":
        return f"map<string,{spark_type(kept.get('values'), file, f'{path}.values', names, namespace)}>"
    if sort in ("record", "enum", "fixed"):
        return _definition(kept, sort, file, path, names, namespace)
    if kept.get("logicalType") is None and base not in _PRIMITIVE:
        return _named(base, file, path, names, namespace)
    return _simple(kept, base, file, path)


def _named(name: str, file: str, path: str, names: Names, namespace: str) -> str:
    if name in _PRIMITIVE:
        return _PRIMITIVE[name]
    known, type_ = names.find(name, namespace or names.namespace)
    if not known:
        raise _unsupported(name, file, path)
    if type_ is None:
        why = f"{name!r} holds itself: no type of a column has an end to that"
        raise ContractError(file, path, why, "send it as text or bytes")
    return type_


def _definition(avro: dict[str, Any], sort: str, file: str, path: str, names: Names, namespace: str) -> str:
    """A record, an enum or a fixed: a type with a name, which may be used again."""
    if not isinstance(avro.get("name"), str):
        raise ContractError(file, f"{path}.name", "it is missing")
    within = avro.get("namespace") or namespace or names.namespace
    name = names.full(avro["name"], within)
    names.begin(name)
    if sort == "record":
        found = _record(avro, file, path, names, name.rpartition(".")[0])
    elif sort == "enum":
        symbols = avro.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
            raise ContractError(file, f"{path}.symbols", "it must be a list of names")
        found = "string"
    else:
        if not isinstance(avro.get("size"), int) or avro["size"] < 1:
            raise ContractError(file, f"{path}.size", "a fixed type has 1 byte or more")
        found = _simple(avro, "fixed", file, path)
    names.end(name, found)
    return found


def _record(avro: dict[str, Any], file: str, path: str, names: Names, namespace: str) -> str:
    if not isinstance(avro.get("fields"), list) or not avro["fields"]:
        raise ContractError(file, f"{path}.fields", "it is missing or empty")
    inside: dict[str, str] = {}
    for index, field in enumerate(avro["fields"]):
        where = f"{path}.fields[{index}]"
        if not isinstance(field, dict) or not {"name", "type"} <= set(field):
            raise ContractError(file, where, "a field must be an object with name and type")
        if foreign := sorted(filter(is_meant, set(field) - _INSIDE_KEYS)):
            raise ContractError(
                file, f"{where}.{foreign[0]}", "unknown key", f"known: {', '.join(sorted(_INSIDE_KEYS))}"
            )
        name = field["name"]
        if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name):
            raise ContractError(
                file, f"{where}.name", f"{name!r} is not a field name",
                "use letters, digits and _, a letter first",
            )  # fmt: skip
        if name.lower() in (known.lower() for known in inside):
            raise ContractError(file, f"{where}.name", f"{name!r} is used twice (case is ignored)")
        inside[name] = spark_type(field["type"], file, f"{where}.type", names, namespace)
    return f"struct<{','.join(f'{name}:{type_}' for name, type_ in inside.items())}>"


def _simple(avro: dict[str, Any], base: str, file: str, path: str) -> str:
    logical = avro.get("logicalType")
    if logical == "decimal" and base in ("bytes", "fixed"):
        precision, scale = avro.get("precision"), avro.get("scale", 0)
        if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 38):
            raise ContractError(file, path, "a decimal needs 0 <= scale <= precision <= 38")
        if base == "fixed" and precision > (most := int(math.log10(2) * (8 * avro["size"] - 1))):
            why = f"{precision} digits have no room in {avro['size']} bytes"
            raise ContractError(file, path, why, f"at most {most} have")
        return f"decimal({precision},{scale})"
    if (base, str(logical)) in _LOGICAL:
        return _LOGICAL[base, str(logical)]
    if logical is None or (base, logical) in _AS_SENT:
        size = {"uuid": 16, "duration": 12}.get(str(logical), avro.get("size"))
        if base == "fixed" and size == avro.get("size"):
            return "binary"
        if base in _PRIMITIVE:
            return _PRIMITIVE[base]
    raise _unsupported(avro, file, path)


def _unsupported(avro: Any, file: str, path: str) -> ContractError:
    known = ", ".join(KNOWN)
    return ContractError(file, path, f"unsupported type {avro!r}", f"supported: {known}, or null with one")

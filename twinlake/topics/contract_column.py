"""Owns the type of a contract's property: its Spark SQL type, made from what is inside where it is nested."""

from __future__ import annotations

from typing import Any

from twinlake.base.errors import ContractError
from twinlake.topics.avro_type import COLUMN_NAME

LOGICAL = {
    "string": "string", "boolean": "boolean", "int": "integer", "bigint": "integer", "float": "number",
    "double": "number", "date": "date", "timestamp": "timestamp",
    "binary": "string",  # the standard has no logical type for bytes
}  # fmt: skip
NESTED = {"object": ("struct", "properties"), "array": ("array", "items"), "map": ("map", "map")}
"""By logical type: the physical type, and the key that says what is inside."""
INSIDE = {
    "name", "logicalType", "physicalType", "description", "properties", "items", "map", "id", "tags",
    "businessName", "examples",
}  # fmt: skip


def column_type(one: dict[str, Any], file: str, path: str) -> tuple[str, str]:
    """(Spark SQL type, sort of its rules) of a property; ContractError where its two types disagree."""
    for key in ("logicalType", "physicalType"):
        if key not in one:
            raise ContractError(file, f"{path}.{key}", "it is missing")
    kind, said = one["physicalType"].replace(" ", ""), one["logicalType"]
    if said in NESTED:
        return _nested(one, said, kind, file, path), said
    kind = kind.lower()
    logical = "number" if kind.startswith("decimal(") else LOGICAL.get(kind)
    if logical is None:
        raise ContractError(
            file, f"{path}.physicalType", f"{kind!r} is not a Spark SQL type that Twinlake knows"
        )
    if said != logical:
        why = f"it is {said}, but physicalType {kind} needs {logical}"
        raise ContractError(file, f"{path}.logicalType", why)
    return kind, kind if kind == "binary" else logical  # what a text must be is not asked of bytes


def _nested(one: dict[str, Any], said: str, kind: str, file: str, path: str) -> str:
    physical, inside = NESTED[said]
    if inside not in one:
        raise ContractError(file, f"{path}.{inside}", f"it is missing: {said} says what is inside")
    if said == "object":
        fields: dict[str, str] = {}
        for index, field in enumerate(one["properties"]):
            where = f"{path}.properties[{index}]"
            name = field["name"]
            if not COLUMN_NAME.fullmatch(name):
                raise ContractError(file, f"{where}.name", f"{name!r} is not made of letters, digits and _")
            if name.lower() in (known.lower() for known in fields):
                raise ContractError(file, f"{where}.name", f"{name!r} is used twice (case is ignored)")
            fields[name] = _inner(field, file, where)
        if not fields:
            raise ContractError(file, f"{path}.properties", "it is empty")
        found = f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields.items())}>"
    elif said == "array":
        found = f"array<{_inner(one['items'], file, f'{path}.items')}>"
    else:
        if (key := _inner(one["map"]["key"], file, f"{path}.map.key")) != "string":
            raise ContractError(file, f"{path}.map.key", f"it is {key}", "a map's keys are strings")
        found = f"map<string,{_inner(one['map']['value'], file, f'{path}.map.value')}>"
    if kind not in (physical, found):
        raise ContractError(file, f"{path}.physicalType", f"it is {kind}, but {found} by what is inside")
    return found


def _inner(one: dict[str, Any], file: str, path: str) -> str:
    if foreign := sorted(set(one) - INSIDE):
        raise ContractError(
            file, f"{path}.{foreign[0]}", "Twinlake does not enforce it inside another", "remove it"
        )
    return column_type(one, file, path)[0]

"""A table's contract may be short: its definition says columns and types, the contract what they mean.

What a contract leaves out is taken from the definition; what it says and the definition contradicts is an
error, which `twinlake check` and the gate of a release report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from twinlake.topics.contract import Column, Contract
from twinlake.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, EMPTY, NOT_ALLOWED, TOO_LONG

INFERRED = ""
"""The type of a column that says none."""
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NEEDS = {
    EMPTY: "string", TOO_LONG: "string", NOT_ALLOWED: "string", BELOW_MINIMUM: "number",
    ABOVE_MAXIMUM: "number",
}  # fmt: skip
_OF_NUMBERS = {"minimum", "maximum"}


def is_short(document: Any) -> bool:
    """Whether it may leave out what a definition says: a topic's, which has custom properties, may not."""
    return isinstance(document, dict) and not document.get("customProperties")


def completed(document: Mapping[str, Any], name: str) -> tuple[dict[str, Any], frozenset[str]]:
    """The document with all that the standard asks for, and the columns whose type is left to the definition.

    Places in it stay those of the file: what is added stands at the end.
    """
    made = deepcopy(dict(document))
    usual = {"apiVersion": "v3.2.0", "kind": "DataContract", "id": name, "name": name, "version": "1.0.0",
             "status": "active", "description": {"purpose": f"table {name}"}}  # fmt: skip
    for key, value in usual.items():
        made.setdefault(key, value)
    objects = made.setdefault("schema", [{}])
    untyped = set[str]()
    if isinstance(objects, list) and len(objects) == 1 and isinstance(objects[0], dict):
        one = objects[0]
        one.setdefault("name", name)
        one.setdefault("logicalType", "object")
        properties = one.get("properties")
        for column in properties if isinstance(properties, list) else ():
            if isinstance(column, dict) and not {"logicalType", "physicalType"} & column.keys():
                options = column.get("logicalTypeOptions")
                is_number = isinstance(options, dict) and bool(_OF_NUMBERS & options.keys())
                kind = ("number", "double") if is_number else ("string", "string")
                column["logicalType"], column["physicalType"] = kind
                untyped.add(str(column.get("name")))
    return made, frozenset(untyped)


def without_types(columns: tuple[Column, ...], untyped: Collection[str]) -> tuple[Column, ...]:
    """The columns, those that say no type with none."""
    return tuple(replace(one, type=INFERRED) if one.name in untyped else one for one in columns)


def empty(name: str, file: Path) -> Contract:
    """The contract of a table that has no file: all of it is the definition's."""
    return Contract(name=name, version="", file=str(file), columns=(), rules=())


def filled(contract: Contract, shown: Mapping[str, str], keys: Collection[str]) -> Contract:
    """The contract with what the definition says: `shown` are the view's columns and their Spark types."""
    said_keys = contract.keys or tuple(keys)
    columns = [replace(one, type=one.type or shown.get(one.name, INFERRED)) for one in contract.columns]
    named = {one.name for one in columns}
    columns += [Column(name=name, type=type_) for name, type_ in shown.items() if name not in named]
    return replace(contract, columns=tuple(replace(one, key=one.name in said_keys) for one in columns))


def contradictions(contract: Contract, shown: Mapping[str, str]) -> list[str]:
    """What a contract says that the view does not have: columns, types, and rules that its types cannot
    break."""
    found = []
    for column in contract.columns:
        if column.name not in shown:
            found.append(f"it promises {column.name}, which is not a column")
        elif column.type not in (INFERRED, shown[column.name]):
            found.append(f"{column.name} is {shown[column.name]}, not {column.type}")
    for rule in contract.rules:
        kind = shown.get(rule.column, "")
        needs = _NEEDS.get(rule.code)
        fits = {"string": kind == "string", "number": kind.startswith(_NUMBERS), None: True}[needs]
        if kind and not fits:
            found.append(f"the rule {rule.code} of {rule.column} is for a {needs}, and it is {kind}")
    return found

"""Owns the JSON Schema of a contract by which an editor completes and checks it while it is written.

It is the standard's own, narrowed by the same constants by which `topics/contract_file.py` and its neighbours
refuse. It sees the form alone: what goes with what, and with the schema or the definition, `twinlake check`
says. So it never refuses what that accepts.
"""

from __future__ import annotations

from typing import Any

from twinlake.base.times import DURATION
from twinlake.topics.contract_column import INSIDE, LOGICAL, NESTED
from twinlake.topics.contract_file import NEEDED, OPTIONS, UNENFORCED, standard
from twinlake.topics.topic_properties import CHOICES, MEANINGS, TOPIC_PROPERTIES

Schema = dict[str, Any]
_COLUMN, _FIELD = "TwinlakeColumn", "TwinlakeField"
_TYPES = ("logicalType", "physicalType")
_IS_OF_TOPIC = {"required": ["customProperties"], "properties": {"customProperties": {"minItems": 1}}}
"""As `short_contract.is_short` tells them apart."""


def contract_schema() -> Schema:
    """Draft 2019-09, complete in itself."""
    found = standard()
    definitions = found["$defs"]
    found["title"] = "A contract of Twinlake"
    found["description"] = "Open Data Contract Standard 3, as far as Twinlake enforces it"
    found |= {"if": _IS_OF_TOPIC, "then": _whole(found.pop("required"))}
    version = found["properties"]["apiVersion"]
    version["enum"] = [one for one in version["enum"] if one.startswith("v3.")]
    found["properties"]["schema"] |= {"minItems": 1, "maxItems": 1}
    found["properties"]["customProperties"] = _custom_properties()
    table = definitions["SchemaObject"]
    del table["required"]
    table["properties"]["properties"] |= {"items": {"$ref": f"#/$defs/{_COLUMN}"}}
    table["properties"]["quality"] = {"type": "array", "maxItems": 0, "description": "not enforced"}
    unenforced = {name: False for name in UNENFORCED}
    _admit_untyped(definitions["SchemaBaseProperty"])
    definitions[_COLUMN] = _property("SchemaProperty", {
        "properties": unenforced, "dependentRequired": {one: [*_TYPES] for one in _TYPES},
    })  # fmt: skip
    definitions[_FIELD] = _property(
        "SchemaItemProperty", {"propertyNames": {"enum": sorted(INSIDE)}, "required": [*_TYPES]}
    )
    return found


def _whole(required: list[str]) -> Schema:
    """What the contract of a topic says in full, and a table's may leave to its definition."""
    columns = {"minItems": 1, "items": {"required": [*_TYPES]}}
    object_ = {"required": ["name", "properties"], "properties": {"properties": columns}}
    return {"required": sorted({*required, *NEEDED}), "properties": {"schema": {"items": object_}}}


def _admit_untyped(base: Schema) -> None:
    """The standard holds a column without a type to the rules of every type; here to those of none."""
    for rules in base["allOf"]:
        if "if" in rules:
            rules["if"] = {"required": ["logicalType"], "allOf": [rules["if"]]}
    enforced = sorted(set().union(*OPTIONS.values()))
    base["properties"]["logicalTypeOptions"] = {"type": "object", "propertyNames": {"enum": enforced}}


def _custom_properties() -> Schema:
    """A topic's, each at most once."""
    duration = {"pattern": DURATION, "examples": ["3 hours", "21 days", "PT15M"]}
    values: dict[str, Schema] = {
        name: {"enum": [*CHOICES[name]]} if name in CHOICES else duration for name in TOPIC_PROPERTIES
    }
    values["eventTime"] = {}
    values = {name: {"description": MEANINGS[name], **value} for name, value in values.items()}
    return {
        "type": "array",
        "description": "what Twinlake needs to know of a topic; a table's contract has none",
        "items": {
            "allOf": [{"$ref": "#/$defs/CustomProperty"}],
            "properties": {"property": {"enum": [*TOPIC_PROPERTIES]}, "value": {"type": "string"}},
            "oneOf": [
                {"properties": {"property": {"const": name}, "value": value}}
                for name, value in values.items()
            ],
        },
        "allOf": [
            {
                "contains": {"properties": {"property": {"const": name}}, "required": ["property"]},
                "minContains": 0, "maxContains": 1,
            }
            for name in TOPIC_PROPERTIES
        ],
    }  # fmt: skip


def _property(base: str, more: Schema) -> Schema:
    """A column, or what is inside of one: its two types, which must fit, and the rules for them."""
    physical: dict[str, list[str]] = {}
    for type_, logical in LOGICAL.items():
        physical.setdefault(logical, []).append(type_)
    plain = [
        _when(logical, {
            "physicalType": _any_case(types, decimals=logical == "number"),
            "logicalTypeOptions": {"propertyNames": {"enum": sorted(OPTIONS.get(logical, ()))}},
            **({} if logical == "string" else {"enum": False}),
        })
        for logical, types in physical.items()
    ]  # fmt: skip
    field = {"$ref": f"#/$defs/{_FIELD}"}
    inside = {
        "properties": {"minItems": 1, "items": {"allOf": [field], "required": ["name"]}},
        "items": field,
        "map": {"properties": {"key": {"allOf": [field], "properties": {"logicalType": {"const": "string"}}},
                               "value": field}},
    }  # fmt: skip
    nested = [
        _when(logical, {
            "physicalType": {"pattern": rf"^\s*{type_}\s*(<.*>)?\s*$", "examples": [type_]},
            "logicalTypeOptions": {"maxProperties": 0}, "enum": False, key: inside[key],
        }, needs=(key,))
        for logical, (type_, key) in NESTED.items()
    ]  # fmt: skip
    length = {"logicalTypeOptions": {"properties": {"minLength": {"const": 1}}}}
    return {
        "allOf": [{"$ref": f"#/$defs/{base}"}, *plain, *nested],
        **more,
        "properties": {
            "logicalType": {"enum": [*physical, *NESTED]}, **length, **more.get("properties", {}),
        },
    }  # fmt: skip


def _when(logical: str, properties: Schema, needs: tuple[str, ...] = ()) -> Schema:
    """These properties of those of one logical type."""
    return {
        "if": {"properties": {"logicalType": {"const": logical}}, "required": ["logicalType"]},
        "then": {"properties": properties, "required": [*needs]},
    }


def _any_case(types: list[str], decimals: bool) -> Schema:
    """One of these types; a JSON Schema's patterns have no flag for it."""
    pattern = "|".join(_letters(type_) for type_ in types)
    if decimals:
        pattern += rf"|{_letters('decimal')}\s*\(.*"
    return {
        "pattern": rf"^\s*({pattern})\s*$",
        "examples": [*types, *(["decimal(12,2)"] if decimals else [])],
    }


def _letters(type_: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in type_)

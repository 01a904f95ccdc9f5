"""Owns which JSON Schemas a topic may have, and the Avro schema that says the same of its columns.

What narrows a type's values (`minimum`, `pattern`, `enum`, ...) says nothing of columns: a contract has rules
for that. What may give a place values of several types, or an object members that are not named, is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from twinlake.base.errors import ContractError, UsageError
from twinlake.base.times import EPOCH, parse_moment
from twinlake.topics.avro_type import COLUMN_NAME, DEEPEST, MOST_MEMBERS
from twinlake.topics.formats import Inner

Found = Mapping[str, Any]
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_DATE, _MOMENT = {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-micros"}
_TEXTS: Mapping[str, Any] = {"date": _DATE, "date-time": _MOMENT, "byte": "bytes"}
_NUMBERS = {"float": "float", "double": "double"}
_REFUSED = {
    "if": "name the members in `properties`",
    "patternProperties": "a map is an object with `additionalProperties` and no `properties`",
    "dependentSchemas": "name the members in `properties`",
    "prefixItems": "give every item one type, by `items`",
}
"""Keywords by which a place has no one type -> what to do instead."""
_COMBINED = ("allOf", "oneOf", "anyOf")
_NULLS = ({"type": "null"}, {"const": None})
_NO_DEFAULT = (
    ValueError, TypeError, KeyError, AttributeError, OverflowError, InvalidOperation, UsageError,
)  # fmt: skip
_ONE_TYPE = "give it one type, or one beside null; else leave it out of the schema, or send it as text"


def inner(document: Any, file: str) -> Inner:
    """The fields of an object's schema as a record; ContractError for what is no object."""
    root = _Reader(document, file)
    whole, nullable, _ = root.resolved(document, "", ())
    properties = whole.get("properties")
    if nullable or _named(whole) != "object" or not isinstance(properties, dict) or not properties:
        why = "a topic's schema must be an object with properties"
        raise ContractError(file, "properties", why, 'say "type": "object" and name the properties')
    fields, others, required = [], dict[str, ContractError](), whole.get("required", [])
    if not isinstance(required, list):
        steps = "name the properties that are there"
        root.own.append(ContractError(file, "required", "it is no list of names", steps))
        required = []
    for name, found in properties.items():
        try:
            fields.append(root.field(name, found, f"properties.{name}", name in required))
        except ContractError as error:
            others[name] = error
    avro = {"type": "record", "name": "value", "fields": fields}
    return Inner(avro=avro, others=others, own=tuple(root.own))


class _Reader:
    """One document; `within` are the references that lead to a place."""

    def __init__(self, document: Any, file: str) -> None:
        self._document, self._file = document, file
        self._members = 0
        self.own: list[ContractError] = []
        self._refuse(isinstance(document, dict), "", "it is no JSON Schema: it must be an object")

    def field(self, name: str, found: Any, path: str, required: bool) -> dict[str, Any]:
        """A property as a field of the topic."""
        self._refuse_name(name, path)
        type_, nullable = self.type(found, path, ())
        known, _, _ = self.resolved(found, path, ())
        made: dict[str, Any] = {"name": name}
        has_default = "default" in known or not required
        default = self._default(known.get("default"), type_, f"{path}.default")
        if nullable or not required:
            made["type"] = ["null", type_] if default is None else [type_, "null"]
        else:
            made["type"] = type_
        if has_default:
            made["default"] = default
        if aliases := known.get("aliases"):
            made["aliases"] = aliases
        return made

    def type(self, found: Any, path: str, within: tuple[str, ...], depth: int = 0) -> tuple[Any, bool]:
        """(the type in Avro, whether null is one of its values)"""
        self._members += 1
        why = "with all that it refers to the schema has more members than a table can have"
        self._refuse(self._members <= MOST_MEMBERS, path, why, "leave some out, or send them as text")
        why = f"it is more than {DEEPEST} levels deep"
        self._refuse(depth <= DEEPEST, path, why, "send it as text")
        known, nullable, within = self.resolved(found, path, within)
        kind = _named(known)
        if kind == "object":
            return self._object(known, path, within, depth), nullable
        if kind == "array":
            items = known.get("items")
            self._refuse(isinstance(items, dict), f"{path}.items", "it says of what type its items are not")
            return {"type": "array", "items": self._inside(items, f"{path}.items", within, depth)}, nullable
        if kind == "string":
            text = "byte" if known.get("contentEncoding") == "base64" else str(known.get("format"))
            return _TEXTS.get(text, "string"), nullable
        if kind == "integer":
            return "int" if known.get("format") == "int32" else "long", nullable
        if kind == "number":
            return self._number(known, path), nullable
        self._refuse(kind == "boolean", f"{path}.type", _untyped(kind), _ONE_TYPE)
        return "boolean", nullable

    def resolved(
        self, found: Any, path: str, within: tuple[str, ...]
    ) -> tuple[dict[str, Any], bool, tuple[str, ...]]:
        """The schema of a place without references and without null beside its type; whether there was null,
        and the references that led to it."""
        self._refuse(isinstance(found, dict), path, "it says nothing of a type", _ONE_TYPE)
        known, nullable = dict(found), False
        while True:
            if "$ref" in known:
                name = known.pop("$ref")
                why = f"{name!r} holds itself: no type of a column has an end to that"
                self._refuse(name not in within, f"{path}.$ref", why, "send it as text")
                within = (*within, name)
                known = {**self._target(name, f"{path}.$ref"), **known}
                continue
            keyword = next((one for one in _COMBINED if one in known), None)
            if keyword is None:
                break
            only, is_beside_null = self._only(known.pop(keyword), keyword, path)
            known, nullable = {**only, **known}, nullable or is_beside_null
        for keyword, instead in _REFUSED.items():
            why = f"{keyword} leaves open what is there"
            self._refuse(keyword not in known, f"{path}.{keyword}".lstrip("."), why, instead)
        types = known.get("type")
        if isinstance(types, list):
            others = [one for one in types if one != "null"]
            self._refuse(len(others) == 1, f"{path}.type".lstrip("."), _untyped(types), _ONE_TYPE)
            nullable, known["type"] = nullable or len(others) < len(types), others[0]
        return known, nullable, within

    def _only(self, options: Any, keyword: str, path: str) -> tuple[dict[str, Any], bool]:
        """The one schema of several that is not null's; whether null's is beside it."""
        where = f"{path}.{keyword}".lstrip(".")
        self._refuse(isinstance(options, list), where, "it is no list")
        others = [one for one in options if one not in _NULLS]
        single = len(others) == 1 and isinstance(others[0], dict)
        self._refuse(single, where, f"{keyword} of {len(others)} schemas beside null", _ONE_TYPE)
        return others[0], len(others) < len(options)

    def _target(self, reference: Any, path: str) -> dict[str, Any]:
        local = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
        why = f"{reference!r} is outside of the file"
        self._refuse(local, path, why, "write it below $defs, and refer to #/$defs/NAME")
        target = self._document
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        self._refuse(isinstance(target, dict), path, f"there is no {reference!r} in the file")
        return dict(target)

    def _object(self, known: Found, path: str, within: tuple[str, ...], depth: int) -> Any:
        properties, more = known.get("properties"), known.get("additionalProperties")
        if not properties:
            why = "it is an object without properties"
            what = "name them, or say by additionalProperties of what type every member is"
            self._refuse(isinstance(more, dict), f"{path}.properties", why, what)
            value = self._inside(more, f"{path}.additionalProperties", within, depth)
            return {"type": "map", "values": value}
        self._refuse(isinstance(properties, dict), f"{path}.properties", "it is no object")
        fields: list[dict[str, Any]] = []
        for name, found in properties.items():
            where = f"{path}.properties.{name}"
            self._refuse_name(name, where)
            taken = name.lower() in (one["name"].lower() for one in fields)
            self._refuse(not taken, where, f"{name!r} is used twice (case is ignored)")
            fields.append({"name": name, "type": self._inside(found, where, within, depth)})
        # the name of a record says where it is: two places of one type are two types in Avro
        return {"type": "record", "name": re.sub(r"\W", "_", path), "fields": fields}

    def _inside(self, found: Any, path: str, within: tuple[str, ...], depth: int) -> Any:
        """What is inside of another may always be left out, as of any JSON."""
        return ["null", self.type(found, path, within, depth + 1)[0]]

    def _number(self, known: Found, path: str) -> Any:
        said = str(known.get("format", "double"))
        if found := _DECIMAL.fullmatch(said):
            precision, scale = int(found[1]), int(found[2])
            why = "a decimal needs 0 <= scale <= precision <= 38"
            self._refuse(scale <= precision <= 38 and precision > 0, f"{path}.format", why)
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        return _NUMBERS.get(said, "double")

    def _default(self, value: Any, avro: Any, path: str) -> Any:
        """As Avro has it written: a day as a number, a decimal as its bytes."""
        try:
            return _written(value, avro)
        except _NO_DEFAULT:
            why = f"{str(value)[:100]!r} is not a value of its type"
            self.own.append(ContractError(self._file, path, why, "correct it, or leave it out"))
            return None

    def _refuse_name(self, name: str, path: str) -> None:
        why = f"{name!r} is not a field name"
        fits = COLUMN_NAME.fullmatch(name) is not None
        self._refuse(fits, path, why, "use letters, digits and _, a letter first")

    def _refuse(self, fine: bool, path: str, why: str, instead: str = "correct the schema") -> None:
        if not fine:
            raise ContractError(self._file, path, why, instead)


def _named(known: Found) -> Any:
    """The type's name, which a schema of some forms need not say."""
    if "type" in known:
        return known["type"]
    values = known.get("enum") or ([known["const"]] if "const" in known else [])
    if isinstance(values, list) and values and all(isinstance(one, str) for one in values):
        return "string"
    return "object" if "properties" in known else None


def _untyped(kind: Any) -> str:
    return f"a column cannot be of type {kind!r}" if kind else "it says nothing of a type"


def _written(value: Any, avro: Any) -> Any:
    if value is None:
        return None
    if isinstance(avro, list):
        return _written(value, next(one for one in avro if one != "null"))
    if avro == _DATE:
        return (date.fromisoformat(value) - EPOCH.date()).days
    if avro == _MOMENT:
        since = parse_moment(value) - EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if avro == "bytes":
        return base64.b64decode(value, validate=True).decode("latin-1")
    if not isinstance(avro, dict):
        return float(value) if avro in ("float", "double") and not isinstance(value, (str, bool)) else value
    if avro.get("logicalType") == "decimal":
        return _decimal(value, avro["precision"], avro["scale"])
    if avro["type"] == "array" and isinstance(value, list):
        return [_written(one, avro["items"]) for one in value]
    if avro["type"] == "map":
        return {key: _written(one, avro["values"]) for key, one in value.items()}
    types = {one["name"]: one["type"] for one in avro["fields"]}
    return {name: _written(one, types[name]) for name, one in value.items()}


def _decimal(value: Any, precision: int, scale: int) -> str:
    if isinstance(value, (str, bool)):
        raise TypeError(value)
    unscaled = Decimal(str(value)).scaleb(scale)
    if unscaled != int(unscaled) or abs(int(unscaled)) >= 10**precision:
        raise ValueError(value)
    number = int(unscaled)
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True).decode("latin-1")

"""Owns a writer's JSON Schema: which members a topic may have of it, and as which types a log keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from twinlake.witness.ingest.avro_schema import Node
from twinlake.witness.types import Type, array, decimal, mapping, simple, struct

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_OPEN = ("if", "patternProperties", "dependentSchemas", "prefixItems")
_NULL: tuple[Any, ...] = ({"type": "null"}, {"const": None})
_DEEPEST = 50
_MOST_MEMBERS = 20_000


class JsonSchema:
    """An object's schema, by its JSON."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        whole = self._plain(document)
        members = whole[0].get("properties") if whole and not whole[1] else None
        self._members = members if isinstance(members, Mapping) else {}
        self._met = 0
        self.is_record = bool(self._members) and self._kind(whole[0] if whole else {}) == "object"

    @cached_property
    def nodes(self) -> dict[str, Node | None]:
        """By member; None for a type that no topic may have."""
        found: dict[str, Node | None] = {}
        for name, said in self._members.items():
            type_ = self._type(said, 0) if _NAME.fullmatch(name) else None
            found[name] = None if type_ is None else Node(type_, "json")
        return found

    def _type(self, said: Any, depth: int) -> Type | None:
        self._met += 1
        found = self._plain(said)
        if found is None or depth > _DEEPEST or self._met > _MOST_MEMBERS:
            return None
        known = found[0]
        kind = self._kind(known)
        if kind == "object":
            return self._object(known, depth)
        if kind == "array":
            item = self._type(known.get("items"), depth + 1)
            return item and array(item)
        if kind == "string":
            if known.get("contentEncoding") == "base64":
                return simple("binary")
            texts = {"date": "date", "date-time": "timestamp", "byte": "binary"}
            return simple(texts.get(str(known.get("format")), "string"))
        if kind == "integer":
            return simple("int" if known.get("format") == "int32" else "bigint")
        if kind == "number":
            if digits := _DECIMAL.fullmatch(str(known.get("format"))):
                precision, scale = int(digits[1]), int(digits[2])
                return decimal(precision, scale) if 0 < precision <= 38 and scale <= precision else None
            return simple("float" if known.get("format") == "float" else "double")
        return simple("boolean") if kind == "boolean" else None

    def _object(self, known: Mapping[str, Any], depth: int) -> Type | None:
        members = known.get("properties")
        if not members:
            value = self._type(known.get("additionalProperties"), depth + 1)
            return value and mapping(simple("string"), value)
        if not isinstance(members, Mapping):
            return None
        inner: list[tuple[str, Type]] = []
        for name, said in members.items():
            type_ = self._type(said, depth + 1)
            if type_ is None or not _NAME.fullmatch(name):
                return None
            inner.append((name, type_))
        return struct(*inner) if len({name.lower() for name, _ in inner}) == len(inner) else None

    def _plain(self, said: Any) -> tuple[dict[str, Any], bool] | None:
        """Without references and without null beside one type; whether that was there."""
        nullable = False
        for _ in range(_DEEPEST):
            if not isinstance(said, Mapping):
                return None
            if "$ref" in said:
                target = self._target(said["$ref"])
                said = target and {**target, **{key: one for key, one in said.items() if key != "$ref"}}
                continue
            word = next((one for one in ("allOf", "oneOf", "anyOf") if one in said), None)
            if word is None:
                break
            if not isinstance(said[word], list):
                return None
            others = [one for one in said[word] if one not in _NULL]
            if len(others) != 1 or not isinstance(others[0], Mapping):
                return None
            nullable = nullable or len(others) < len(said[word])
            said = {**others[0], **{key: one for key, one in said.items() if key != word}}
        else:
            return None
        if any(word in said for word in _OPEN):
            return None
        if isinstance(said.get("type"), list):
            others = [one for one in said["type"] if one != "null"]
            if len(others) != 1:
                return None
            return {**said, "type": others[0]}, nullable or len(others) < len(said["type"])
        return dict(said), nullable

    def _target(self, reference: Any) -> Any:
        found: Any = self._document
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        for part in reference.split("/")[1:]:
            found = (
                found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
            )
        return found

    @staticmethod
    def _kind(known: Mapping[str, Any]) -> Any:
        if "type" in known:
            return known["type"]
        values = known.get("enum") or ([known["const"]] if "const" in known else [])
        if isinstance(values, list) and values and all(isinstance(one, str) for one in values):
            return "string"
        return "object" if "properties" in known else None

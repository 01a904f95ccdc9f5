"""Owns a writer's schema: which fields it has, as which types a log keeps them, and how its bytes are read.

What the log has no type for is read as it is sent: a time of day as a number, a uuid as its text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import fastavro

from twinlake.witness.types import Type, array, decimal, mapping, simple, struct

_PLAIN = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double",
    "string": "string", "bytes": "binary",
}  # fmt: skip
_TIMES = {
    "date": ("int", "date"),
    "timestamp-millis": ("long", "timestamp"),
    "timestamp-micros": ("long", "timestamp"),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MOST_DIGITS = 38


@dataclass(frozen=True)
class Node:
    """A type as it is sent and as it is kept. `inner` are the nodes of what it holds, by name in a record."""

    type: Type
    sent: str
    """Avro's word for it, a logical type's where it has one that means something here."""
    inner: tuple[tuple[str, Node], ...] = ()


class Schema:
    """A record's schema, by its JSON."""

    def __init__(self, avro: Mapping[str, Any]) -> None:
        self._named: dict[str, Any] = {}
        self.is_record = avro.get("type") == "record"
        self._parsed: Any = fastavro.parse_schema(_bare(dict(avro)), self._named)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(field["name"] for field in self._parsed["fields"]) if self.is_record else ()

    @cached_property
    def nodes(self) -> dict[str, Node | None]:
        """By field; None for a type that no topic may have, which only the writer knows."""
        if not self.is_record:
            return {}
        return {
            one["name"]: self._node(one["type"], ()) if _NAME.fullmatch(one["name"]) else None
            for one in self._parsed["fields"]
        }

    @cached_property
    def physical(self) -> Any:
        """For `fastavro`: without logical types and with texts as bytes, which it would refuse as a whole."""
        return fastavro.parse_schema(_physical(self._parsed), {})

    def _node(self, avro: Any, within: tuple[str, ...]) -> Node | None:
        if isinstance(avro, list):
            others = [one for one in avro if one != "null"]
            return self._node(others[0], within) if len(avro) == 2 and len(others) == 1 else None
        if isinstance(avro, str):
            if avro in _PLAIN:
                return Node(simple(_PLAIN[avro]), avro)
            known = avro in self._named and avro not in within
            return self._node(self._named[avro], within) if known else None
        base = avro["type"]
        if base in ("record", "enum", "fixed"):
            return self._definition(avro, base, (*within, avro["name"]))
        if base == "array":
            item = self._node(avro["items"], within)
            return item and Node(array(item.type), "array", (("", item),))
        if base == "map":
            value = self._node(avro["values"], within)
            return value and Node(mapping(simple("string"), value.type), "map", (("", value),))
        if not isinstance(base, str) or base not in _PLAIN:
            return self._node(base, within)
        return _simple(avro, base)

    def _definition(self, avro: Mapping[str, Any], base: str, within: tuple[str, ...]) -> Node | None:
        if avro["name"] in within[:-1]:
            return None
        if base == "enum":
            return Node(simple("string"), "enum")
        if base == "fixed":
            return _simple(avro, base)
        inner: list[tuple[str, Node]] = []
        for field in avro["fields"]:
            node = self._node(field["type"], within)
            if node is None or not _NAME.fullmatch(field["name"]):
                return None
            inner.append((field["name"], node))
        if not inner or len({name.lower() for name, _ in inner}) < len(inner):
            return None
        return Node(struct(*((name, node.type) for name, node in inner)), "record", tuple(inner))


def _simple(avro: Mapping[str, Any], base: str) -> Node | None:
    logical = avro.get("logicalType")
    if logical == "decimal":
        precision, scale = avro.get("precision"), avro.get("scale", 0)
        if base not in ("bytes", "fixed") or not isinstance(precision, int) or not isinstance(scale, int):
            return None
        room = _MOST_DIGITS if base == "bytes" else int(math.log10(2) * (8 * avro["size"] - 1))
        fits = 0 <= scale <= precision <= min(room, _MOST_DIGITS)
        return Node(decimal(precision, scale), "decimal") if fits else None
    if logical in _TIMES:
        needs, type_ = _TIMES[logical]
        return Node(simple(type_), logical) if base == needs else None
    return Node(simple(_PLAIN.get(base, "binary")), base)


def _bare(avro: Any) -> Any:
    """Without what says nothing of bytes: words, defaults, meanings that no log keeps, others' keys."""
    if isinstance(avro, list):
        return [_bare(one) for one in avro]
    if not isinstance(avro, dict):
        return avro
    known = ("type", "name", "namespace", "size", "symbols")
    made = {key: _bare(value) if key == "type" else value for key, value in avro.items() if key in known}
    for key in ("items", "values"):
        if key in avro:
            made[key] = _bare(avro[key])
    if "fields" in avro:
        made["fields"] = [{"name": one["name"], "type": _bare(one["type"])} for one in avro["fields"]]
    if avro.get("logicalType") in ("decimal", *_TIMES):
        made |= {key: avro[key] for key in ("logicalType", "precision", "scale") if key in avro}
    return made


def _physical(avro: Any) -> Any:
    if isinstance(avro, list):
        both = "bytes" in avro
        return [one if one == "string" and both else _physical(one) for one in avro]
    if isinstance(avro, str):
        return "bytes" if avro == "string" else avro
    left_out = ("logicalType", "precision", "scale", "__fastavro_parsed__", "__named_schemas")
    made = {key: value for key, value in avro.items() if key not in left_out}
    for key in ("type", "items", "values"):
        if key in made:
            made[key] = _physical(made[key])
    if "fields" in made:
        made["fields"] = [{**one, "type": _physical(one["type"])} for one in made["fields"]]
    return made

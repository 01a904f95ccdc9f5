"""Owns a JSON Schema as the tree of keys that a document may have: of each its type, values and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Schema = dict[str, Any]
_WORDS = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
    "array": "list", "object": "object", "null": "nothing",
}  # fmt: skip
_MOST = 3
"""What may be of more types may be anything."""
_TOPICS = "topics"
_SOMETIMES = "x-sometimes"
"""What marks a schema that holds under a condition, or beside others."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """What may stand in one place of a document: all schemas that it is held to, the narrowest first."""

    found: tuple[Schema, ...]
    definitions: Schema
    narrower: tuple[Schema, ...] = ()
    """What is asked besides of a topic's contract."""
    is_needed: bool = False
    """By the object that it is in."""
    is_needed_of_topics: bool = False

    @cached_property
    def keys(self) -> dict[str, Node]:
        """Those that an object may have here, by name; those that are refused are left out."""
        given: dict[str, list[Schema]] = {}
        refused: set[str] = set()
        for one in self.found:
            for name, schema in one.get("properties", {}).items():
                if schema is False and _SOMETIMES not in one:
                    refused.add(name)
                elif isinstance(schema, dict):
                    given.setdefault(name, []).append({**schema, **_sometimes(one)})
        named = [one["propertyNames"]["enum"] for one in self.found if "propertyNames" in one]
        admitted = set().union(*named) if named else given.keys()
        return {
            name: self._below(name, schemas)
            for name, schemas in given.items()
            if name in admitted and name not in refused
        }

    @cached_property
    def item(self) -> Node | None:
        """What a list holds."""
        found = tuple(
            {**one["items"], **_sometimes(one)} for one in self.found if isinstance(one.get("items"), dict)
        )
        narrower = tuple(one["items"] for one in self.narrower if "items" in one)
        return self._of(found, narrower) if found else None

    def at(self, path: str) -> Node:
        """The node at a path such as `schema[].name`. KeyError where no document may have it."""
        node = self
        for part in path.split("."):
            name = part.removesuffix("[]")
            node = node.keys[name]
            if part.endswith("[]"):
                if node.item is None:
                    raise KeyError(path)
                node = node.item
        return node

    @property
    def described(self) -> str:
        """Its type in words, and the values that it may have."""
        for one in self._always:
            if values := one.get("enum") or ([one["const"]] if "const" in one else []):
                return ", ".join(f"`{value}`" for value in values)
        said = [type_ for one in self._always for type_ in _types(one)]
        types = dict.fromkeys(said or [type_ for one in self.found for type_ in _types(one)])
        if [*types] == ["array"] and self.item is not None:
            return f"list: {'objects' if self.item.keys else self.item.described}"
        return " or ".join(_WORDS[one] for one in types) if 0 < len(types) <= _MOST else "any value"

    @property
    def _always(self) -> list[Schema]:
        return [one for one in self.found if _SOMETIMES not in one]

    @property
    def meaning(self) -> str:
        """What the schema says of it; empty where it says nothing."""
        for one in self._always:
            if "description" in one:
                return _line(one["description"])
        said = [*dict.fromkeys(_line(one["description"]) for one in self.found if "description" in one)]
        return f"Depends on what the object is; such as: {said[0]}" if len(said) > 1 else "".join(said)

    @property
    def needed(self) -> str:
        """Of whose contracts."""
        return "always" if self.is_needed else _TOPICS if self.is_needed_of_topics else "-"

    def _below(self, name: str, schemas: list[Schema]) -> Node:
        narrower = tuple(
            one["properties"][name] for one in self.narrower if name in one.get("properties", {})
        )
        is_needed = any(name in one.get("required", ()) for one in self._always)
        of_topics = any(name in one.get("required", ()) for one in self.narrower)
        return self._of(tuple(schemas), narrower, is_needed, of_topics)

    def _of(
        self, found: tuple[Schema, ...], narrower: tuple[Schema, ...], is_needed: bool = False,
        of_topics: bool = False,
    ) -> Node:  # fmt: skip
        whole = tuple(one for schema in found for one in _expanded(schema, self.definitions))
        return Node(
            found=whole, definitions=self.definitions, narrower=narrower, is_needed=is_needed,
            is_needed_of_topics=of_topics,
        )  # fmt: skip


def root(schema: Schema) -> Node:
    """A whole document."""
    found = tuple(_expanded({key: one for key, one in schema.items() if key != "then"}, schema["$defs"]))
    return Node(found=found, definitions=schema["$defs"], narrower=(schema["then"],))


def objects(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every object with keys, by the shortest path that leads to it; those with the same keys once."""
    seen: set[tuple[str, ...]] = set()
    pending = [(path, node)]
    while pending:
        where, one = pending.pop(0)
        if one.item is not None:
            pending.append((f"{where}[]", one.item))
        names = tuple(sorted(one.keys))
        if not names or names in seen:
            continue
        seen.add(names)
        yield where, one
        pending += [(f"{where}.{name}".removeprefix("."), below) for name, below in one.keys.items()]


def _line(text: str) -> str:
    return " ".join(text.split())


def _types(schema: Schema) -> list[str]:
    said: str | list[str] = schema.get("type", [])
    return [said] if isinstance(said, str) else said


def _sometimes(schema: Schema) -> Schema:
    """The mark of what is inside of a schema that holds under a condition."""
    return {_SOMETIMES: True} if _SOMETIMES in schema else {}


def _expanded(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    """The schema and all that it refers to or combines, itself first; marked what holds under a condition."""
    yield schema
    mark = _sometimes(schema)
    if reference := schema.get("$ref"):
        target: Any = {"$defs": definitions}
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        yield from _expanded({**target, **mark}, definitions)
    for one in schema.get("allOf", ()):
        yield from _expanded({**one, **mark}, definitions)
    for one in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _expanded({**one, _SOMETIMES: True}, definitions)
    if "then" in schema:
        yield from _expanded({**schema["then"], _SOMETIMES: True}, definitions)

"""Owns how a topic reads what a writer sent: by a field's name or an older one, as a type that holds the sent
one's values, else by its default; and which schemas it cannot read at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from twinlake.witness import default
from twinlake.witness.ingest.avro_schema import Node
from twinlake.witness.ingest.record import Value
from twinlake.witness.question import Field
from twinlake.witness.types import Type


class Fields(Protocol):
    """A writer's schema."""

    @property
    def is_record(self) -> bool:
        """Whether its values have fields."""

    @property
    def nodes(self) -> Mapping[str, Node | None]:
        """By field; None for a type that no topic may have, which only the writer knows."""

    def is_another(self, field: Field, name: str | None) -> bool:
        """Whether the writer's field of that name (None: its fields) is another one than the topic's, or has
        another one in it."""


_HELD = {
    ("int", "bigint"), ("int", "double"), ("float", "double"), ("string", "binary"), ("binary", "string"),
}  # fmt: skip


def unreadable(schema: Fields, fields: tuple[Field, ...]) -> str | None:
    """The reason that records of this schema wait in quarantine with; None for one that can be read."""
    if not schema.is_record:
        return "unreadable_by_schema"
    unknown = {name for name, node in schema.nodes.items() if node is None}
    for name in schema.nodes:
        if name in unknown and any(name in field.names for field in fields):
            return f"unreadable_by_schema:{name}"
    for field in fields:
        node = source(schema, field)
        if schema.is_another(field, node and node[0]):
            return f"unreadable_by_schema:{field.name}"
        readable = field.has_default if node is None else holds(node[1].type, Type.parse(field.type))
        if not readable:
            return f"unreadable_by_schema:{field.name}"
    return None


def source(schema: Fields, field: Field) -> tuple[str, Node] | None:
    """The writer's field that the topic's is read from, with what it is called there."""
    for name in field.names:
        if (node := schema.nodes.get(name)) is not None:
            return name, node
    return None


def holds(sent: Type, read: Type) -> bool:
    """Whether every value of one type can be read as the other; records by the names of their fields."""
    if sent == read or (sent.name, read.name) in _HELD:
        return True
    if not sent.name == read.name == "struct":
        return False
    there, lower = dict(sent.fields), {name.lower(): name for name, _ in sent.fields}
    for name, type_ in read.fields:
        if lower.get(name.lower(), name) != name:
            return False
        if name in there and there[name] != type_ and not _holds_inside(there[name], type_):
            return False
    return True


def _holds_inside(sent: Type, read: Type) -> bool:
    return sent.name == read.name == "struct" and holds(sent, read)


def fields_of(
    values: Mapping[str, Value], schema: Fields, fields: tuple[Field, ...], wrong: dict[str, None]
) -> dict[str, Value]:
    """The topic's fields of a record; a reason more in `wrong` for bytes that are no text and read as one."""
    found: dict[str, Value] = {}
    for field in fields:
        node, type_ = source(schema, field), Type.parse(field.type)
        if node is None:
            found[field.name] = default.value(field)
            continue
        name, sent = node
        try:
            found[field.name] = converted(values[name], sent.type, type_)
        except UnicodeDecodeError:
            wrong[f"invalid_utf8:{field.name}"] = None
            found[field.name] = None
    return found


def converted(value: Value, sent: Type, read: Type) -> Value:
    """A value that was sent as one type as the other, which holds it."""
    if value is None or sent == read:
        return value
    if (sent.name, read.name) == ("string", "binary"):
        return value.encode()
    if (sent.name, read.name) == ("binary", "string"):
        return value.decode()
    if sent.name == read.name == "struct":
        there = dict(sent.fields)
        return {
            name: converted(value[name], there[name], type_) if name in there else None
            for name, type_ in read.fields
        }
    return float(value) if read.name == "double" else value

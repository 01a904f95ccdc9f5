"""Owns the text of a Protobuf file that a registry has in its compiled form: a topic's own file is one that a
person can read and add to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twinlake.base.protoc import serialized
from twinlake.topics import registered

_TYPES = (
    "", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group",
    "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
)  # fmt: skip
_REQUIRED, _REPEATED = 2, 3


def editable(said: Mapping[str, Any]) -> str | None:
    """The text of a file by itself that says the same as a registered schema; None where there is none: it
    imports what is no file of Google's, or has what is not written out here (an edition, a group)."""
    text = said["schema"]
    if (compiled := serialized(text)) is not None:
        text = "\n".join(_file(compiled)) + "\n"
    return text if registered.is_same(registered.of(registered.PROTOBUF, text), said) else None


def _file(file: Any) -> Iterator[str]:
    proto3 = file.syntax == "proto3"
    yield f'syntax = "{file.syntax or "proto2"}";'
    if file.package:
        yield f"package {file.package};"
    if file.dependency:
        yield ""
    yield from (f'import "{one}";' for one in file.dependency)
    for message in file.message_type:
        yield ""
        yield from _message(message, file.package, file.package, proto3)
    for enum in file.enum_type:
        yield ""
        yield from _enum(enum)


def _message(message: Any, package: str, above: str, proto3: bool) -> Iterator[str]:
    full = f"{above}.{message.name}".lstrip(".")
    entries = {f".{full}.{one.name}": one for one in message.nested_type if one.options.map_entry}
    yield f"message {message.name} {{"
    for enum in message.enum_type:
        yield from map(_indented, _enum(enum))
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from map(_indented, _message(nested, package, full, proto3))
    open_: int | None = None
    for field in message.field:
        inside = field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None
        if open_ is not None and inside != open_:
            yield "  }"
        if inside is not None and inside != open_:
            yield f"  oneof {message.oneof_decl[inside].name} {{"
        open_ = inside
        line = _field(field, entries, package, proto3)
        yield _indented(line if inside is None else _indented(line))
    if open_ is not None:
        yield "  }"
    yield "}"


def _field(field: Any, entries: Mapping[str, Any], package: str, proto3: bool) -> str:
    type_ = _type(field, package)
    end = f"{field.name} = {field.number};"
    if (entry := entries.get(field.type_name)) is not None:
        key, value = entry.field
        return f"map<{_type(key, package)}, {_type(value, package)}> {end}"
    if field.label == _REPEATED:
        return f"repeated {type_} {end}"
    if field.HasField("oneof_index") and not field.proto3_optional:
        return f"{type_} {end}"
    if field.label == _REQUIRED:
        return f"required {type_} {end}"
    return f"{'' if proto3 and not field.proto3_optional else 'optional '}{type_} {end}"


def _type(field: Any, package: str) -> str:
    named: str = field.type_name
    return named.removeprefix(f".{package}.").removeprefix(".") or _TYPES[field.type]


def _enum(enum: Any) -> Iterator[str]:
    numbers = [one.number for one in enum.value]
    yield f"enum {enum.name} {{"
    if len(set(numbers)) < len(numbers):
        yield "  option allow_alias = true;"
    yield from (f"  {one.name} = {one.number};" for one in enum.value)
    yield "}"


def _indented(line: str) -> str:
    return f"  {line}"

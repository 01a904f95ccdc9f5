"""Owns which Protobuf messages a topic's records may be, and the Avro record that says the same.

A field that has a presence of its own may be NULL; any other that a record leaves out has its type's default,
as Protobuf says. What decides how bytes are read stays in the Avro as `protobuf`: of a field its number and
type, of an enum the numbers of its symbols, of the record the place of its message.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from twinlake.base.errors import ContractError
from twinlake.base.protoc import KNOWN, compiled
from twinlake.topics.avro_type import COLUMN_NAME, DEEPEST, MOST_MEMBERS, PROTOBUF
from twinlake.topics.formats import Inner

_DECIMAL: Mapping[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
_MOMENT: Mapping[str, Any] = {"type": "long", "logicalType": "timestamp-micros"}
_TYPES: Mapping[int, tuple[str, Any, Any]] = {
    1: ("double", "double", 0.0), 2: ("float", "float", 0.0), 3: ("int64", "long", 0),
    4: ("uint64", _DECIMAL, "\0"), 5: ("int32", "int", 0), 6: ("fixed64", _DECIMAL, "\0"),
    7: ("fixed32", "long", 0), 8: ("bool", "boolean", False), 9: ("string", "string", ""),
    12: ("bytes", "bytes", ""), 13: ("uint32", "long", 0), 15: ("sfixed32", "int", 0),
    16: ("sfixed64", "long", 0), 17: ("sint32", "int", 0), 18: ("sint64", "long", 0),
}  # fmt: skip
"""By a descriptor's number of a type: its name, Avro's, and the default in Avro's form."""
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_TIMESTAMP, _WRAPPERS, _OPEN = f"{KNOWN}timestamp.proto", f"{KNOWN}wrappers.proto", f"{KNOWN}struct.proto"
"""Files, for a message of anybody's may have the name of one of Google's."""
_PREFIX = "proto."
"""Of names in Avro, where one without a dot would be looked for beside the one around it."""


def inner(text: str, imports: Mapping[str, str], file: str, message: str | None = None) -> Inner:
    """The fields of a message as a record: of the one of this full name where it is there, else of the first.
    ContractError for a text that is no schema, or has no message."""
    found = compiled(text, imports, file)
    at, chosen = _chosen(found, message)
    if chosen is None:
        raise ContractError(file, "", "it has no message", "write the record's as the first message")
    return _Reader(file).record(chosen, at)


def _chosen(file: Any, message: str | None) -> tuple[list[int], Any]:
    """The message with its place, as the frame of a record says it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    said = FileDescriptorProto()
    file.CopyToProto(said)
    every = list(_messages(said.message_type, file.message_types_by_name, []))
    named = next((one for one in every if one[1].full_name == message), None)
    return named or (every[0] if every else ([], None))


def _messages(ordered: Any, named: Mapping[str, Any], above: list[int]) -> Any:
    """(place, message), as the file has them."""
    for index, one in enumerate(ordered):
        at, message = [*above, index], named[one.name]
        yield at, message
        yield from _messages(one.nested_type, message.nested_types_by_name, at)


class _Reader:
    """One file; a message or enum that was met before is named."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._known: set[str] = set()
        self._members = 0

    def record(self, message: Any, at: list[int]) -> Inner:
        """The record of a topic."""
        fields, others, skipped = [], dict[str, ContractError](), []
        for field in message.fields:
            known = set(self._known)
            try:
                fields.append(self._field(field, f"{message.name}.{field.name}", (message.full_name,)))
            except ContractError as error:
                self._known = known
                others[field.name] = error
                skipped.append(field.number)
        said = {"message": at, "skipped": skipped}
        name = {"type": "record", "name": _PREFIX + message.full_name}
        return Inner(avro={**name, "fields": fields, PROTOBUF: said}, others=others)

    def _field(self, field: Any, path: str, within: tuple[str, ...]) -> dict[str, Any]:
        if not COLUMN_NAME.fullmatch(field.name):
            why = f"{field.name!r} is not a field name"
            raise self._refused(path, why, "use letters, digits and _, a letter first")
        said: dict[str, Any] = {"number": field.number}
        default: Any
        if field.is_repeated and _is_map(field):
            key, value = (field.message_type.fields_by_name[one] for one in ("key", "value"))
            kind, type_, _ = self._type(value, path, within, said)
            type_, default = {"type": "map", "values": type_}, {}
            said |= {"type": kind, "key": _TYPES[key.type][0]}
        elif field.is_repeated:
            kind, type_, _ = self._type(field, path, within, said)
            type_, default = {"type": "array", "items": type_}, []
            said |= {"type": kind}
        else:
            kind, type_, default = self._type(field, path, within, said)
            said |= {"type": kind}
            if field.is_required:
                return {"name": field.name, "type": type_, PROTOBUF: {**said, "required": True}}
            if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1:
                said["oneof"] = field.containing_oneof.name
            if field.has_presence:
                type_, default = ["null", type_], None
        return {"name": field.name, "type": type_, "default": default, PROTOBUF: said}

    def _type(
        self, field: Any, path: str, within: tuple[str, ...], said: dict[str, Any]
    ) -> tuple[str, Any, Any]:
        """How a value is sent, its type in Avro, and what it is where it is left out."""
        if field.type == _ENUM:
            return ("enum", *self._enum(field.enum_type))
        if field.type == _GROUP:
            raise self._refused(path, "it is a group", "send a message of its own")
        if field.type != _MESSAGE:
            return _TYPES[field.type]
        message = field.message_type
        if message.file.name == _TIMESTAMP:
            return "timestamp", dict(_MOMENT), 0
        if message.file.name == _WRAPPERS:
            kind, type_, default = _TYPES[message.fields_by_name["value"].type]
            said["wrapped"] = True
            return kind, type_, default
        if message.file.name == _OPEN:
            raise self._refused(path, f"{message.full_name} has no fixed fields", "send it as text")
        if message.full_name in within:
            why = f"{message.full_name!r} holds itself: no type of a column has an end to that"
            raise self._refused(path, why, "send it as text or bytes")
        if len(within) > DEEPEST:
            raise self._refused(path, f"it is more than {DEEPEST} messages deep", "send it as text or bytes")
        if not message.fields:
            raise self._refused(path, f"{message.full_name} has no fields", "send a bool instead")
        if len(within) == 1:
            said["messages"] = _numbers(message, {})
            self._members += _members(message, {})
            if self._members > MOST_MEMBERS:
                why = "with all that is inside of it, the schema has more fields than a table can have"
                raise self._refused(path, why, "leave some out, or send them as text or bytes")
        if message.full_name in self._known:
            return "message", _PREFIX + message.full_name, None
        inner = (*within, message.full_name)
        fields = [self._field(one, f"{path}.{one.name}", inner) for one in message.fields]
        names = [one.name.lower() for one in message.fields]
        for one in message.fields:
            if names.count(one.name.lower()) > 1:
                why = f"{one.name!r} is used twice (case is ignored)"
                raise self._refused(f"{path}.{one.name}", why, "rename one of them")
        self._known.add(message.full_name)
        return "message", {"type": "record", "name": _PREFIX + message.full_name, "fields": fields}, None

    def _enum(self, enum: Any) -> tuple[Any, Any]:
        symbols = {one.number: one.name for one in reversed(list(enum.values))}  # of two names the first
        default = enum.values[0].name
        if enum.full_name in self._known:
            return _PREFIX + enum.full_name, default
        self._known.add(enum.full_name)
        ordered = sorted(symbols.items())
        return {
            "type": "enum", "name": _PREFIX + enum.full_name, "symbols": [name for _, name in ordered],
            PROTOBUF: {"numbers": [number for number, _ in ordered]},
        }, default  # fmt: skip

    def _refused(self, path: str, why: str, instead: str) -> ContractError:
        return ContractError(self._file, path, why, instead)


def message_class(text: str, imports: Mapping[str, str], file: str, message: str | None) -> Any:
    """Of `inner`'s message the class that Google's own library makes, with its place in the file."""
    from google.protobuf import message_factory

    at, chosen = _chosen(compiled(text, imports, file), message)
    return message_factory.GetMessageClass(chosen), at


def with_descriptors(registered: Mapping[str, Any], file: str, message: str | None) -> dict[str, Any]:
    """The same schema with its compiled files, for who runs no protoc, and the message that is meant."""
    at, chosen = _chosen(compiled(registered["schema"], registered.get("imports", {}), file), message)
    found: dict[str, str] = {}
    _describe(chosen.file, found)
    return {**registered, "files": found, "main": chosen.file.name, "message": at}


def _describe(file: Any, found: dict[str, str]) -> None:
    """The file and all that it imports by name, compiled, what is imported first."""
    for one in file.dependencies:
        if one.name not in found:
            _describe(one, found)
    found[file.name] = base64.b64encode(file.serialized_pb).decode()


def message_of(avro: Mapping[str, Any]) -> str | None:
    """The full name of the message that a record was made of."""
    name = str(avro.get("name", ""))
    return name.removeprefix(_PREFIX) if PROTOBUF in avro else None


def _numbers(message: Any, found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """By message, of a field's and of all inside of it, the numbers: no name can get another one."""
    if message.full_name not in found:
        found[message.full_name] = {one.name: one.number for one in message.fields}
        for one in message.fields:
            if one.message_type is not None:
                _numbers(one.message_type, found)
    return found


def _members(message: Any, known: dict[str, int]) -> int:
    """How many fields a message has, with all that is inside of it."""
    if message.full_name not in known:
        known[message.full_name] = 1
        inside = [one.message_type for one in message.fields]
        known[message.full_name] = 1 + sum(1 if one is None else _members(one, known) for one in inside)
    return known[message.full_name]


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)

"""Owns a writer's schema of Protobuf: which fields its message has, how Google's own library reads a value.

Texts are read as bytes and the entries of a map as messages, so that nothing is refused as a whole, or passed
over, that has to be named.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from twinlake.witness.ingest.avro_schema import Node
from twinlake.witness.ingest.decode_avro import HEADER, YEARS, Decoded
from twinlake.witness.ingest.record import Malformed, Unsure, Value
from twinlake.witness.question import Field
from twinlake.witness.types import Type, array, decimal, mapping, simple, struct

_PLAIN = {
    1: "double", 2: "float", 3: "bigint", 5: "int", 7: "bigint", 8: "boolean", 13: "bigint", 14: "string",
    15: "int", 16: "bigint", 17: "int", 18: "bigint",
}  # fmt: skip
_UNSIGNED = (4, 6)
_STRING, _GROUP, _MESSAGE, _BYTES, _ENUM = 9, 10, 11, 12, 14
_MOST_FIELDS = 4_000_000
"""Of all messages of a record: an empty one takes two bytes."""
_DEEPEST, _MOST_MEMBERS = 50, 20_000
_TIMESTAMP, _WRAPPERS, _OPEN = (f"google/protobuf/{one}.proto" for one in ("timestamp", "wrappers", "struct"))


class ProtobufSchema:
    """The message that a topic's records are, by compiled files."""

    is_record = True

    def __init__(self, registered: Mapping[str, Any]) -> None:
        from google.protobuf import descriptor_pool, message_factory
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self._texts: set[tuple[str, str]] = set()
        self._maps: set[str] = set()
        self._met = 0
        pool = descriptor_pool.DescriptorPool()
        for compiled in registered["files"].values():
            pool.Add(self._loosened(base64.b64decode(compiled)))
        self._at = list(registered["message"])
        file, said = pool.FindFileByName(registered["main"]), FileDescriptorProto()
        file.CopyToProto(said)
        ordered, known = said.message_type, file.message_types_by_name
        for index in self._at:
            found = known[ordered[index].name]
            ordered, known = ordered[index].nested_type, found.nested_types_by_name
        self._message = found
        self._widest = max(1, *(len(one.fields) for one in _inside(found, {}).values()))
        self._class = message_factory.GetMessageClass(found)

    def _loosened(self, compiled: bytes) -> Any:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        file = FileDescriptorProto.FromString(compiled)
        pending = [(file.package, one) for one in file.message_type]
        while pending:
            above, message = pending.pop()
            name = f"{above}.{message.name}".lstrip(".")
            pending += [(name, one) for one in message.nested_type]
            if message.options.map_entry:
                self._maps.add(name)
                message.options.map_entry = False
            for field in message.field:
                if field.type == _STRING:
                    self._texts.add((name, field.name))
                    field.type = _BYTES
                field.ClearField("default_value")
        return file

    @cached_property
    def nodes(self) -> dict[str, Node | None]:
        """By field; None for a type that no topic may have."""
        found: dict[str, Node | None] = {}
        for field in self._message.fields:
            type_ = self._type(field, (self._message.full_name,))
            found[field.name] = None if type_ is None else Node(type_, "protobuf")
        return found

    def is_another(self, field: Field, name: str | None) -> bool:
        """By the numbers, which a field keeps whatever it is called."""
        if field.number is None:
            return False
        numbers = {one.name: one.number for one in self._message.fields}
        if name is None:
            return field.number in numbers.values()
        if numbers[name] != field.number:
            return True
        message = self._message.fields_by_name[name].message_type
        below = _inside(message, {}) if message is not None else {}
        there = {full: {one.name: one.number for one in found.fields} for full, found in below.items()}
        for message, known in field.messages.items():
            then = there.get(message, {})
            if any(then.get(one, number) != number for one, number in known.items()):
                return True
            named = {number: one for one, number in then.items()}
            if any(named.get(number, one) != one for one, number in known.items()):
                return True
        return False

    def _type(self, field: Any, within: tuple[str, ...]) -> Type | None:
        if not field.name[:1].isalpha() or field.type == _GROUP:
            return None
        if field.message_type is not None and field.message_type.full_name in self._maps:
            value = self._single(field.message_type.fields_by_name["value"], within)
            return value and mapping(simple("string"), value)
        single = self._single(field, within)
        return single and (array(single) if field.is_repeated else single)

    def _single(self, field: Any, within: tuple[str, ...]) -> Type | None:
        if field.type in _UNSIGNED:
            return decimal(20, 0)
        if field.type == _BYTES:
            is_text = (field.containing_type.full_name, field.name) in self._texts
            return simple("string" if is_text else "binary")
        if field.type != _MESSAGE:
            return simple(_PLAIN[field.type]) if field.type in _PLAIN else None
        message = field.message_type
        if message.file.name == _TIMESTAMP:
            return simple("timestamp")
        if _is_wrapper(message):
            return self._single(message.fields_by_name["value"], within)
        if message.full_name in within or message.file.name == _OPEN:
            return None
        if len(within) == 1:
            self._met += _size(message, {})
        if self._met > _MOST_MEMBERS or len(within) > _DEEPEST:
            return None
        inner: list[tuple[str, Type]] = []
        for one in message.fields:
            type_ = self._type(one, (*within, message.full_name))
            if type_ is None:
                return None
            inner.append((one.name, type_))
        return struct(*inner) if inner and len({one.lower() for one, _ in inner}) == len(inner) else None

    def decode(self, value: bytes) -> Decoded:
        """A frame; Malformed for what is no message of the schema, Unsure for what Protobuf's parsers read
        although no writer of theirs writes it so."""
        from google.protobuf.message import DecodeError

        body = _behind(value[HEADER:], self._at)
        if (len(body) // 2 + 1) * self._widest > _MOST_FIELDS:
            raise Unsure("it is so long that its messages may have more fields than a record may")
        message = self._class()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            if None in self.nodes.values():
                raise Unsure("a field that no topic may have cannot be read") from error
            raise Malformed("malformed_body") from error
        if sorted(message.SerializeToString()) != sorted(body):
            raise Unsure("it is not written as Protobuf's writers do")
        if _has_unknown(message):
            raise Malformed("malformed_body")
        wrong: dict[str, None] = {}
        values = {
            field.name: _Value(self, field.name, wrong).of(message, field)
            for field in self._message.fields
            if self.nodes[field.name] is not None
        }
        return Decoded(values, tuple(wrong))

    def is_text(self, field: Any) -> bool:
        """Whether bytes are text."""
        return (field.containing_type.full_name, field.name) in self._texts

    def is_map(self, field: Any) -> bool:
        """Whether its messages are the entries of a map."""
        return field.message_type is not None and field.message_type.full_name in self._maps


class _Value:
    """Of one of the topic's fields: a reason names it, however deep what is wrong lies."""

    def __init__(self, schema: ProtobufSchema, name: str, wrong: dict[str, None]) -> None:
        self._schema, self._name, self._wrong = schema, name, wrong

    def of(self, message: Any, field: Any) -> Value:
        """What a message has in a field."""
        found = getattr(message, field.name)
        if self._schema.is_map(field):
            return self._map(found, field.message_type.fields_by_name)
        if field.is_repeated:
            return [self._single(one, field) for one in found]
        if field.has_presence and not message.HasField(field.name):
            return None
        return self._single(found, field)

    def _map(self, entries: Any, fields: Any) -> Value:
        made: dict[str, Value] = {}
        for entry in entries:
            key = self._single(entry.key, fields["key"])
            name = str(key).lower() if isinstance(key, bool) else str(key)
            if name in made and key is not None:
                raise Malformed("malformed_body")
            made[name] = self._single(entry.value, fields["value"])
        return made

    def _single(self, found: Any, field: Any) -> Value:
        if field.type in _UNSIGNED:
            return Decimal(found)
        if field.type == _BYTES:
            return self._text(found) if self._schema.is_text(field) else found
        if field.type == _ENUM:
            known = field.enum_type.values_by_number.get(found)
            if known is None:
                raise Malformed("malformed_body")
            first = next(one for one in field.enum_type.values if one.number == found)
            return first.name
        if field.type != _MESSAGE:
            return found
        message = field.message_type
        if message.file.name == _TIMESTAMP:
            return self._time(found)
        if _is_wrapper(message):
            return self._single(found.value, message.fields_by_name["value"])
        return {one.name: self.of(found, one) for one in message.fields}

    def _text(self, raw: bytes) -> Value:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return self._is_wrong("invalid_utf8")

    def _time(self, found: Any) -> Value:
        if not 0 <= found.nanos < 1_000_000_000:
            raise Malformed("malformed_body")
        micros = found.seconds * 1_000_000 + found.nanos // 1000
        low, high = YEARS["timestamp-micros"]
        return micros if low <= micros <= high else self._is_wrong("time_out_of_range")

    def _is_wrong(self, code: str) -> None:
        self._wrong[f"{code}:{self._name}"] = None


def _inside(message: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The message and all that it may hold, by name."""
    if message.full_name not in found:
        found[message.full_name] = message
        for one in message.fields:
            if one.message_type is not None:
                _inside(one.message_type, found)
    return found


def _size(message: Any, known: dict[str, int]) -> int:
    if message.full_name not in known:
        known[message.full_name] = 1
        inside = [one.message_type for one in message.fields]
        known[message.full_name] = 1 + sum(1 if one is None else _size(one, known) for one in inside)
    return known[message.full_name]


def _is_wrapper(message: Any) -> bool:
    return bool(message.file.name == _WRAPPERS)


def _behind(rest: bytes, at: list[int]) -> bytes:
    """What is behind the place of the message that the frame names, which must be this one."""
    count, rest = _number(rest)
    found = [0] if count == 0 else []
    for _ in range(min(count, 100)):
        index, rest = _number(rest)
        found.append(index)
    if found != at:
        raise Malformed("malformed_body")
    return rest


def _number(rest: bytes) -> tuple[int, bytes]:
    found = 0
    for place, byte in enumerate(rest[:5]):
        found |= (byte & 127) << 7 * place
        if byte < 128:
            if place == 4 and byte > 15:
                raise Unsure("a place has more than 32 bits")
            return (found >> 1) ^ -(found & 1), rest[place + 1 :]
    if len(rest) > 5:
        raise Unsure("a place has more than 32 bits")
    raise Malformed("malformed_body")


def _has_unknown(message: Any) -> bool:
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        return True
    for field, found in message.ListFields():
        if field.message_type is not None:
            inside = found if field.is_repeated else [found]
            if any(map(_has_unknown, inside)):
                return True
    return False

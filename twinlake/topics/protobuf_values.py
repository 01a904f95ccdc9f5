"""Owns the writing of an event's fields as a message of Protobuf in Confluent's frame, by its own library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from twinlake.base.times import EPOCH
from twinlake.topics.protobuf_schema import message_class

_ENUM = 14


def writer(registered: Mapping[str, Any], file: str, head: bytes) -> Callable[[Mapping[str, Any]], bytes]:
    """ValueError, TypeError or KeyError for an event that the message has no place for."""
    made, at = message_class(registered["schema"], registered.get("imports", {}), file, None)
    start = head + indexes(at)

    def written(event: Mapping[str, Any]) -> bytes:
        message = made()
        _fill(message, event)
        return start + bytes(message.SerializeToString(deterministic=True))

    return written


def indexes(at: list[int]) -> bytes:
    """The place of a message in its file, as the frame says it."""
    return b"\0" if at == [0] else b"".join(map(_zigzag, (len(at), *at)))


def _zigzag(number: int) -> bytes:
    found, left = bytearray(), number << 1
    while left > 127:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def _fill(message: Any, event: Mapping[str, Any]) -> None:
    for name, value in event.items():
        field = message.DESCRIPTOR.fields_by_name[name]
        if value is None:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            below = field.message_type.fields_by_name["value"]
            into, key = getattr(message, name), field.message_type.fields_by_name["key"]
            for said, one in value.items():
                known = said if key.type == 9 else int(said)  # of a key that is no text its digits
                if below.message_type is None:
                    into[known] = _plain(below, one)
                else:
                    _message(into[known], one)
        elif field.is_repeated:
            into = getattr(message, name)
            for one in value:
                if field.message_type is None:
                    into.append(_plain(field, one))
                else:
                    _message(into.add(), one)
        elif field.message_type is not None:
            _message(getattr(message, name), value)
        else:
            setattr(message, name, _plain(field, value))


def _message(message: Any, value: Any) -> None:
    message.SetInParent()
    if isinstance(value, datetime):
        since = value.astimezone(UTC) - EPOCH
        message.seconds, message.nanos = since.days * 86_400 + since.seconds, since.microseconds * 1000
    elif isinstance(value, Mapping):
        _fill(message, value)
    else:
        message.value = _plain(message.DESCRIPTOR.fields_by_name["value"], value)


def _plain(field: Any, value: Any) -> Any:
    if field.type == _ENUM and isinstance(value, str):
        return field.enum_type.values_by_name[value].number
    return int(value) if isinstance(value, Decimal) else value

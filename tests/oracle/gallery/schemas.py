"""Reads the schema files of gallery topics: Avro's as JSON, of other languages what decodes a value."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.oracle.gallery.json_value import NoEventError
from tests.oracle.gallery.json_value import event as json_event

Decode = Callable[[bytes, Iterable[Mapping[str, Any]]], dict[str, Any]]
"""The fields of a value that a contract promises; NoEventError for bytes that are no event."""
_HEADER_BYTES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def schema_of(folder: Path, topic: str) -> dict[str, Any] | Decode | None:
    """None for a topic in JSON, which has its contract alone."""
    avro, document, proto = (folder / "schemas" / f"{topic}.v1.{one}" for one in ("avsc", "json", "proto"))
    if avro.exists():
        found: dict[str, Any] = json.loads(avro.read_text())
        return found
    if document.exists():
        return _behind_header(json_event)
    return _behind_header(_messages(proto)) if proto.exists() else None


def _behind_header(decode: Decode) -> Decode:
    def decoded(value: bytes, properties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        if len(value) < _HEADER_BYTES or value[0] != 0:
            raise NoEventError("it has no header")
        return decode(value[_HEADER_BYTES:], properties)

    return decoded


def _messages(file: Path) -> Decode:
    """Of a flat message, by Google's own library."""
    from google.protobuf.message import DecodeError

    made = _class(file)

    def decoded(body: bytes, _: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        if body[:1] != b"\0":  # the first message of its file
            raise NoEventError("it is another message")
        try:
            message = made.FromString(body[1:])
        except DecodeError as error:
            raise NoEventError(str(error)) from error
        return {one.name: _value(message, one) for one in message.DESCRIPTOR.fields}

    return decoded


def _value(message: Any, field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    found = getattr(message, field.name)
    if field.message_type is None:
        return found
    return _EPOCH + timedelta(seconds=found.seconds, microseconds=found.nanos // 1000)


@cache
def _class(file: Path) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    with TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{file.parent}", f"-I{_known()}",
             "--include_imports", f"--descriptor_set_out={made}", file.name],
            check=True,
        )  # fmt: skip
        files = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for one in files:
        pool.Add(one)
    name = f"{files[-1].package}.{files[-1].message_type[0].name}".lstrip(".")
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _known() -> Path:
    import grpc_tools

    return Path(grpc_tools.__file__).parent / "_proto"

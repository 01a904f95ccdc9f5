"""Owns the languages of a registry's schemas: which fields each writes, and how a value of it is decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from twinlake.witness.ingest import decode_avro, decode_json
from twinlake.witness.ingest.avro_schema import Schema
from twinlake.witness.ingest.decode_avro import Decoded
from twinlake.witness.ingest.json_schema import JsonSchema
from twinlake.witness.ingest.protobuf import ProtobufSchema
from twinlake.witness.ingest.reading import Fields
from twinlake.witness.question import Field

UNREADABLE = "unreadable_by_schema"
_FORMATS = {"AVRO": "avro", "JSON": "json_schema", "PROTOBUF": "protobuf"}


class Written(Fields, Protocol):
    """The schema of an id."""

    def decode(self, value: bytes) -> Decoded:
        """A frame; Malformed for one whose body is no value of it."""


class _ByName:
    """Fields are what they are called."""

    def is_another(self, field: Field, name: str | None) -> bool:
        return False


class _Avro(_ByName, Schema):
    def decode(self, value: bytes) -> Decoded:
        return decode_avro.decode(value, self)


class _Json(_ByName, JsonSchema):
    def decode(self, value: bytes) -> Decoded:
        return decode_json.decode(value, self)


def written(registered: Mapping[str, Any], asked: str) -> Written | str:
    """What the registry has under an id; the reason of all its records where that is of another language than
    the topic."""
    named = "schemaType" in registered and "type" not in registered
    type_ = registered["schemaType"] if named else "AVRO"
    if _FORMATS.get(type_) != asked:
        return UNREADABLE
    if type_ == "PROTOBUF":
        return ProtobufSchema(registered) if "files" in registered else UNREADABLE
    return _Json(registered["schema"]) if type_ == "JSON" else _Avro(registered)

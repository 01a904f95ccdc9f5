"""Owns the languages of a registry's schemas: which fields each writes, and how a value of it is decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from twinlake.witness.ingest import decode_avro, decode_json
from twinlake.witness.ingest.avro_schema import Node, Schema
from twinlake.witness.ingest.decode_avro import Decoded
from twinlake.witness.ingest.json_schema import JsonSchema

UNREADABLE = "unreadable_by_schema"
_FORMATS = {"AVRO": "avro", "JSON": "json_schema"}


class Written(Protocol):
    """The schema of an id."""

    @property
    def is_record(self) -> bool:
        """Whether its values have fields."""

    @property
    def nodes(self) -> Mapping[str, Node | None]:
        """By field; None for a type that no topic may have, which only the writer knows."""

    def decode(self, value: bytes) -> Decoded:
        """A frame; Malformed for one whose body is no value of it."""


class _Avro(Schema):
    def decode(self, value: bytes) -> Decoded:
        return decode_avro.decode(value, self)


class _Json(JsonSchema):
    def decode(self, value: bytes) -> Decoded:
        return decode_json.decode(value, self)


def written(registered: Mapping[str, Any], asked: str) -> Written | str:
    """What the registry has under an id; the reason of all its records where that is of another language than
    the topic."""
    named = "schemaType" in registered and "type" not in registered
    type_ = registered["schemaType"] if named else "AVRO"
    if _FORMATS.get(type_) != asked:
        return UNREADABLE
    return _Json(registered["schema"]) if type_ == "JSON" else _Avro(registered)

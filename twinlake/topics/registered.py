"""Owns the form of what a registry has under a schema's id, whatever its language, and its reading.

A schema of Avro is its parsed document. One of another language is `{"schemaType": ..., "schema": ...}`: of
JSON Schema the parsed document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.base.errors import ContractError
from twinlake.topics import json_schema
from twinlake.topics.formats import Inner

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
"""The registry's `schemaType`."""
_TYPE = "schemaType"


def schema_type(registered: Mapping[str, Any]) -> str:
    """The language of a schema."""
    return str(registered[_TYPE]) if _TYPE in registered and "type" not in registered else AVRO


def of(type_: str, schema: Any, **more: Any) -> dict[str, Any]:
    """A schema as it is passed around here."""
    return dict(schema) if type_ == AVRO else {_TYPE: type_, "schema": schema, **more}


def inner(registered: Mapping[str, Any], file: str) -> Inner:
    """The schema as Avro's; ContractError for one of which no topic could be made, with the place."""
    type_ = schema_type(registered)
    if type_ == AVRO:
        return Inner(avro=dict(registered))
    if type_ == JSON:
        return json_schema.inner(registered["schema"], file)
    raise ContractError(file, "", f"a schema of type {type_} is none that Twinlake reads", "use another")

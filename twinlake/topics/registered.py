"""Owns the form of what a registry has under a schema's id, whatever its language, and its reading.

A schema of Avro is its parsed document. One of another language is `{"schemaType": ..., "schema": ...}`: of
JSON Schema the parsed document, of Protobuf the text, with `imports`, the texts of what it imports by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.base.errors import ContractError
from twinlake.topics import json_schema, protobuf_schema
from twinlake.topics.formats import Inner

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
"""The registry's `schemaType`."""
_TYPE = "schemaType"


def schema_type(registered: Mapping[str, Any]) -> str:
    """The language of a schema."""
    return str(registered[_TYPE]) if _TYPE in registered and "type" not in registered else AVRO


def of(type_: str, schema: Any, **more: Any) -> dict[str, Any]:
    """A schema as it is passed around here."""
    if type_ != AVRO:
        return {_TYPE: type_, "schema": schema, **more}
    return schema if isinstance(schema, dict) else {"type": schema}  # Avro's short form of a type


def inner(registered: Mapping[str, Any], file: str, message: str | None = None) -> Inner:
    """The schema as Avro's; ContractError for one of which no topic could be made, with the place. Of several
    messages the one of this name is meant where it is there."""
    type_ = schema_type(registered)
    if type_ == AVRO:
        return Inner(avro=dict(registered))
    if type_ == JSON:
        return json_schema.inner(registered["schema"], file)
    if type_ == PROTOBUF:
        return protobuf_schema.inner(registered["schema"], registered.get("imports", {}), file, message)
    raise ContractError(file, "", f"a schema of type {type_} is none that Twinlake reads", "use another")


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two schemas say the same: a registry may write out the text of a schema of Protobuf again."""
    if one == other or not schema_type(one) == schema_type(other) == PROTOBUF:
        return one == other
    try:
        return inner(one, "") == inner(other, "")
    except ContractError:
        return False


def with_files(said: Mapping[str, Any], message: str | None) -> dict[str, Any]:
    """The same for who runs no protoc: one of Protobuf with its compiled files, where it is one."""
    if schema_type(said) != PROTOBUF:
        return dict(said)
    try:
        return protobuf_schema.with_descriptors(said, "", message)
    except ContractError:
        return dict(said)

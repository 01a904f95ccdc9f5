"""Owns in what a topic's values can be written, how its schema files end, what the registry calls that.

A schema of any language is known to everybody behind the decoding as Avro's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlake.base.errors import ContractError

AVRO, JSON, JSON_SCHEMA, PROTOBUF = "avro", "json", "json_schema", "protobuf"
FORMATS = (AVRO, JSON, JSON_SCHEMA, PROTOBUF)
"""JSON's shape is the contract's own; values of the others name a schema of the registry in a header."""
ENDINGS: Mapping[str, str] = {AVRO: "avsc", JSON_SCHEMA: "json", PROTOBUF: "proto"}
"""By format, how the topic's schema files end."""
TYPES: Mapping[str, str] = {"AVRO": AVRO, "JSON": JSON_SCHEMA, "PROTOBUF": PROTOBUF}
"""By the registry's `schemaType`, the format."""


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A schema of another language as the record in Avro that says the same of a topic's fields."""

    avro: dict[str, Any]
    others: Mapping[str, ContractError] = field(default_factory=dict)
    """By name why a field is of no type that a topic may have."""
    own: tuple[ContractError, ...] = ()
    """What is wrong with the schema for who reads by it, and nothing to who reads what it has written."""

"""A writer's schema as the registry holds it: how its bytes are decoded, how the topic reads its fields."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import ContractError
from twinlake.ingest.unreadable import Unreadable, unreadable_schema
from twinlake.topics.avro_type import MOST_MEMBERS, PROTOBUF, members
from twinlake.topics.change import first_unreadable
from twinlake.topics.formats import TYPES
from twinlake.topics.registered import inner, schema_type
from twinlake.topics.schema import TOO_MANY, Field, readable_fields
from twinlake.topics.spark_type import is_nested
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

END = "twinlake_end"  # field that a decoded record ends in when its body was consumed to the last byte
RANGES = {  # the years 1 to 9999 in each logical type's own unit
    "date": (-719_162, 2_932_896),
    "timestamp-millis": (-62_135_596_800_000, 253_402_300_799_999),
    "timestamp-micros": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
LOGICAL_TYPES = ("decimal", *RANGES)
_MEANT = {  # keys of an Avro type that decide how bytes are read
    "type", "logicalType", "precision", "scale", "name", "namespace", "fields", "items", "values", "symbols",
    "size", PROTOBUF,
}  # fmt: skip
NO_OTHERS: Mapping[str, ContractError] = {}
_NOTHING = ("void", "struct<>")  # types without values
_NOTHING_INSIDE = re.compile(r"(?<=[:<,])(void(?!:)|struct<>)")


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One schema id of the topic's subject."""

    id: int
    avro: dict[str, Any]  # without what does not matter to decoding
    fields: tuple[Field, ...]  # those of a type that the project's own schemas may have
    kept: StructType  # what decoding `schema_text` yields
    read_by: int  # the number of the topic's schema that is active

    @property
    def plain(self) -> tuple[Field, ...]:
        """Those of them whose values have no others inside."""
        return tuple(field for field in self.fields if not is_nested(field.type))

    @property
    def names(self) -> list[str]:
        """The names of all its fields: a reader's field that is not among them takes its default."""
        return field_names(self.avro)

    @property
    def stored(self) -> dict[str, str]:
        """Every field that can hold a value, with the Spark type that the log keeps it as."""
        types = {field.name: field.dataType.simpleString() for field in self.kept}
        return {name: type_ for name, type_ in types.items() if type_ not in _NOTHING}

    @property
    def end(self) -> str:
        """The name of the last field of `checking_schema_text`; nothing of the writer's has it."""
        name, theirs = END, json.dumps(self.avro).lower()
        while name in theirs:
            name += "_"
        return name

    @property
    def schema_text(self) -> str:
        """The schema that bodies known to be sound are decoded with."""
        return json.dumps(self.avro)

    @property
    def checking_schema_text(self) -> str:
        """The schema for bodies that nobody has looked at yet.

        Decimals get room for 38 digits (Spark wraps what exceeds the declared ones silently), times stay
        numbers (they overflow otherwise; inside another type one that does makes the body unreadable), and a
        last field shows whether the body ends where it should.
        """
        return self._checking(_roomy)

    @property
    def bytes_schema_text(self) -> str | None:
        """The same with decimals as their bytes: for bodies of which a decimal may be no number, or one of
        more than 38 digits. None where the writer has no decimals."""
        found = self._checking(_as_bytes)
        return found if found != self.checking_schema_text else None

    def _checking(self, decimal: Callable[[dict[str, Any]], Any]) -> str:
        plain = {field.name for field in self.plain}
        fields = [
            {**field, "type": _unchecked(field["type"], field["name"] in plain, decimal)}
            for field in self.avro["fields"]
        ]
        end = {"name": self.end, "type": {"type": "fixed", "name": self.end, "size": 8}}
        said = {key: value for key, value in self.avro.items() if key != PROTOBUF}
        return json.dumps({**said, "fields": [*fields, end]})


def _unchecked(avro: Any, times: bool, decimal: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(avro, list):
        return [_unchecked(part, times, decimal) for part in avro]
    if not isinstance(avro, dict):
        return avro
    if avro.get("logicalType") == "decimal":
        return decimal(avro)
    if times and avro.get("logicalType") in RANGES:
        return avro["type"]
    return {
        key: _unchecked(value, times, decimal) if key in ("type", "fields", "items", "values") else value
        for key, value in avro.items()
    }


def _roomy(decimal: dict[str, Any]) -> dict[str, Any]:
    """With as many digits as Spark can hold, and as fit into the bytes: Avro ignores one that says more."""
    size = decimal.get("size")
    return {**decimal, "precision": 38 if size is None else min(38, int(math.log10(2) * (8 * size - 1)))}


def _as_bytes(decimal: dict[str, Any]) -> dict[str, Any]:
    return {key: decimal[key] for key in decimal if key not in ("logicalType", "precision", "scale")}


def meant(avro: Any) -> Any:
    """An Avro schema reduced to what decides how bytes are read.

    Left out are words, defaults, what programs leave in a schema for themselves, and meanings that the log
    has no type for: a time of day is stored as the number that it is sent as.
    """
    if isinstance(avro, list):
        return [meant(part) for part in avro]
    if not isinstance(avro, dict):
        return avro
    known = {
        key: value if key in ("symbols", PROTOBUF) else meant(value)
        for key, value in avro.items()
        if key in _MEANT
    }
    if known.get("logicalType") not in LOGICAL_TYPES:
        for key in ("logicalType", "precision", "scale"):
            known.pop(key, None)
    return known


def field_names(avro: dict[str, Any]) -> list[str]:
    """The names of a schema's fields, none where it is not a record."""
    return [field["name"] for field in avro.get("fields", [])]


def schema_hash(avro: dict[str, Any]) -> str:
    """The name of a schema, as `meant` has reduced it."""
    return hashlib.sha256(json.dumps(avro, sort_keys=True).encode()).hexdigest()[:32]


def in_avro(
    topic: Topic, schema_id: int, registered: dict[str, Any]
) -> tuple[dict[str, Any], Mapping[str, ContractError]]:
    """What the registry has under an id as Avro that `meant` has reduced, with the fields that are of no type
    a topic may have. One of another language than the topic's, or of none, has the type of that name."""
    type_ = schema_type(registered)
    if TYPES.get(type_) != topic.contract.format:
        return {"type": type_}, {}
    try:
        found = inner(registered, f"schema id {schema_id}", topic.newest.message)
    except ContractError as error:
        return {"type": type_, "name": f"{error.path}: {error.why_text}".lstrip(": ")}, {}
    return meant(found.avro), found.others


def learn(
    topic: Topic,
    schema_id: int,
    avro: dict[str, Any],
    decoded: Callable[[str], StructType],
    others: Mapping[str, ContractError] = NO_OTHERS,
) -> Writer | Unreadable:
    """What is behind a schema id: a writer, or why the topic's newest schema cannot read its records.

    `avro` and `others` are as `in_avro` has them; `decoded` tells what decoding with a schema yields, and
    raises ValueError where that cannot be done.
    """

    def unreadable(why: str, field: str = "") -> Unreadable:
        return unreadable_schema(topic, schema_id, avro, why, field)

    if avro.get("type") in TYPES:
        said = f": {avro['name']}" if "name" in avro else f", and the contract says {topic.contract.format}"
        return unreadable(f"it is a schema of type {avro['type']}{said}")
    if avro.get("type") != "record":
        return unreadable(f"it is of type {avro.get('type')!r}, not a record")
    if members(avro) > MOST_MEMBERS:
        return unreadable(TOO_MANY)
    fields, more = readable_fields(avro, f"schema id {schema_id}")
    for name, error in {**others, **more}.items():
        if any(name in field.names for field in topic.newest.fields):
            return unreadable(f"field {name!r} ({error.path}): {error.why_text}", name)
    if wrong := first_unreadable(fields, topic.newest):
        index, _, why = wrong
        return unreadable(why, topic.newest.fields[index].name)
    try:
        kept = decoded(json.dumps(avro))
    except ValueError as error:
        return unreadable(f"Spark cannot decode it: {error}")
    writer = Writer(id=schema_id, avro=avro, fields=fields, kept=kept, read_by=topic.newest.number)
    try:
        decoded(writer.checking_schema_text)
    except ValueError as error:
        return unreadable(f"its records cannot be checked: {error}")
    seen: set[str] = set()
    for name in writer.names:
        if name.lower() in seen:
            return unreadable(f"it has fields whose names differ in case only: {name!r}", name)
        seen.add(name.lower())
    for name, type_ in writer.stored.items():
        if _NOTHING_INSIDE.search(type_):
            return unreadable(f"field {name!r} holds a type without values: {type_}", name)
    return writer

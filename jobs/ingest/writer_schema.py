"""A writer's schema as the registry holds it: how its bytes are decoded, how the topic reads its fields."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from jobs.errors import ContractError, StoppedTopicError
from jobs.topics.schema import Field, Schema, parse_schema, type_change
from jobs.topics.topic import Topic

END = "twinlake_end"  # field that a decoded record ends in when its body was consumed to the last byte
RANGES = {  # the years 1 to 9999 in each logical type's own unit
    "date": (-719_162, 2_932_896),
    "timestamp-millis": (-62_135_596_800_000, 253_402_300_799_999),
    "timestamp-micros": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One schema id of the topic's subject."""

    id: int
    avro: dict[str, Any]
    fields: tuple[Field, ...]  # those of a simple type; others are decoded and dropped

    def field(self, name: str) -> Field | None:
        """The writer's field of that name, None where it has none."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def names(self) -> list[str]:
        """The names of all its fields: a reader's field that is not among them takes its default."""
        return [field["name"] for field in self.avro["fields"]]

    @property
    def schema_text(self) -> str:
        """The schema as it was registered: for bodies known to be sound."""
        return json.dumps(self.avro)

    @property
    def checking_schema_text(self) -> str:
        """The schema for bodies that nobody has looked at yet.

        Decimals get room for 38 digits (Spark wraps what exceeds the declared ones silently), times stay
        numbers (they overflow otherwise), and a last field shows whether the body ends where it should.
        """
        avro = copy.deepcopy(self.avro)
        for field in avro["fields"]:
            field["type"] = _unchecked(field["type"])
        avro["fields"].append({"name": END, "type": {"type": "fixed", "name": "TwinlakeEnd", "size": 8}})
        return json.dumps(avro)

    def reads_like(self, schema: Schema) -> bool:
        """Whether decoding yields exactly the columns of `schema`."""
        mine = [(field.name, field.type) for field in self.fields]
        return len(mine) == len(self.avro["fields"]) and mine == [(f.name, f.type) for f in schema.fields]


def _unchecked(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_unchecked(part) for part in avro]
    if isinstance(avro, dict) and avro.get("logicalType") == "decimal" and avro.get("type") == "bytes":
        return {**avro, "precision": 38}
    if isinstance(avro, dict) and avro.get("logicalType") in RANGES:
        return avro["type"]
    return avro


def learn(topic: Topic, schema_id: int, avro: dict[str, Any]) -> Writer:
    """The writer behind a schema id; one that the topic's newest schema cannot read stops the topic."""
    if avro.get("type") != "record":
        raise _incompatible(topic, schema_id, f"it is of type {avro.get('type')!r}, not a record")
    simple: list[Field] = []
    for field in avro.get("fields", []):
        try:
            plain = {key: field[key] for key in ("name", "type", "default") if key in field}
            document = {"type": "record", "name": "Writer", "fields": [plain]}
            simple += parse_schema(document, topic=topic.name, number=1, file=f"schema id {schema_id}").fields
        except ContractError as error:
            if topic.newest.field(field["name"]):
                raise _incompatible(topic, schema_id, f"field {field['name']!r}: {error.why_text}") from error
    writer = Writer(id=schema_id, avro=avro, fields=tuple(simple))
    for field in topic.newest.fields:
        _check(topic, writer, field)
    return writer


def _check(topic: Topic, writer: Writer, field: Field) -> None:
    theirs = writer.field(field.name)
    if theirs is None:
        if not field.has_default:
            raise _incompatible(topic, writer.id, f"it has no field {field.name!r}, which has no default")
    elif changed := type_change(theirs, field):
        raise _incompatible(topic, writer.id, changed)


def _incompatible(topic: Topic, schema_id: int, why: str) -> StoppedTopicError:
    return StoppedTopicError(
        what=f"topic {topic.name} has records of schema {schema_id}, which {topic.newest.file} cannot read",
        why=why,
        remedy=f"add schemas/{topic.name}.v{topic.newest.number + 1}.avsc that can read it, "
        "run `twinlake check`, and start the lake server again",
    )

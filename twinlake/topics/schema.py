"""Owns a topic's schema as a file in `schemas/`: its fields, their Spark types, their names.

Whatever language the file is in, its record is one of Avro: that one everybody else knows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import ContractError
from twinlake.topics import registered
from twinlake.topics.avro_type import (
    COLUMN_NAME,
    MOST_MEMBERS,
    Names,
    is_meant,
    members,
    spark_type,
    without_null,
)
from twinlake.topics.avro_type import PROTOBUF as SENT
from twinlake.topics.formats import AVRO, ENDINGS, JSON_SCHEMA, PROTOBUF, TYPES
from twinlake.topics.protobuf_schema import message_of
from twinlake.topics.spark_type import Plain

FILE_NAME = re.compile(
    rf"(?P<topic>[a-z][a-z0-9_]*)\.v(?P<number>[1-9][0-9]*)\.(?P<ending>{'|'.join(ENDINGS.values())})"
)
FORM = " or ".join(f"<topic>.v<N>.{ending}" for ending in ENDINGS.values())
"""What a schema file is called."""
TOO_MANY = "with all that is inside of it, the schema has more fields than a table can have"
_KEYS = {"type", "name", "namespace", "doc", "fields"}
_FIELD_KEYS = {"name", "type", "doc", "default", "aliases"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of an event: its Avro type and the Spark SQL type it is read as."""

    name: str
    avro: Any
    type: str
    nullable: bool
    has_default: bool = False
    default: Any = None
    aliases: tuple[str, ...] = ()
    """What it was called before: records that have no field of its name are read by these."""
    number: int | None = None
    """Of Protobuf, by which its messages know it."""
    messages: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    """Of Protobuf, by message inside of it, the numbers of its fields."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, then those that it had."""
        return (self.name, *self.aliases)

    @property
    def precision(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, else None."""
        return Plain(self.type).digits


@dataclass(frozen=True, kw_only=True)
class Schema:
    """One version of a topic's record. Files are added, never edited."""

    topic: str
    number: int
    file: str
    fields: tuple[Field, ...]
    avro: Mapping[str, Any]
    source: Mapping[str, Any] | None = None
    """What the file says, as `topics/registered.py` has it; None where that is the Avro."""

    @property
    def registered(self) -> dict[str, Any]:
        """What the registry is given."""
        return dict(self.avro if self.source is None else self.source)

    @property
    def format(self) -> str:
        """What values of it are written in, as a contract calls it."""
        return TYPES[registered.schema_type(self.registered)]

    @property
    def message(self) -> str | None:
        """The full name of the message that its records are; None of another language than Protobuf."""
        return message_of(self.avro)

    @property
    def text(self) -> str:
        """The schema as JSON text, for the registry and for decoding."""
        return json.dumps(self.avro)

    @property
    def file_text(self) -> str:
        """What a file of it says."""
        said = self.avro if self.source is None else self.source["schema"]
        return said if isinstance(said, str) else json.dumps(said, indent=2, ensure_ascii=False) + "\n"

    @property
    def fingerprint(self) -> str:
        """sha256 over what decides how bytes are read; docs and formatting do not count."""
        # a schema without aliases keeps the name that it had before there were any
        meaning = [
            [f.name, f.avro, f.has_default, f.default, *([list(f.aliases)] if f.aliases else [])]
            + ([] if f.number is None else [f.number])
            for f in self.fields
        ]
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()

    def place(self, index: int, key: str) -> str:
        """Where in the file a field says something; `key` as Avro calls it."""
        name = self.fields[index].name
        if self.source is None:
            return f"fields[{index}].{key}"
        return name if self.format == PROTOBUF else f"properties.{name}"

    def field(self, name: str) -> Field | None:
        """The field of that name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)


def logical_type(field: Field) -> str | None:
    """The Avro logical type of a simple field, looked up inside a union with null."""
    parts = field.avro if isinstance(field.avro, list) else [field.avro]
    return next((part.get("logicalType") for part in parts if isinstance(part, dict)), None)


def load_schema(path: Path) -> Schema:
    """Read one schema file; a wrong one raises ContractError with file and path."""
    named = FILE_NAME.fullmatch(path.name)
    if named is None:
        raise ContractError(path, "", f"the file name is not {FORM}", "rename the file")
    said = _READ[named["ending"]](path)
    return registered_schema(said, topic=named["topic"], number=int(named["number"]), file=str(path))


def registered_schema(said: Mapping[str, Any], *, topic: str, number: int, file: str) -> Schema:
    """The schema of what a file or the registry says; ContractError for a field that no topic may have."""
    if registered.schema_type(said) == registered.AVRO:
        return parse_schema(said, topic=topic, number=number, file=file)
    found = registered.inner(said, file)
    for error in (*found.others.values(), *found.own):
        raise error
    return parse_schema(found.avro, topic=topic, number=number, file=file, source=said)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())  # which knows a mark of UTF-8
    except (OSError, ValueError) as error:
        why = f"it cannot be read as JSON: {error}"
        place = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else None
        raise ContractError(path, "", why, "repair the file", place) from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ContractError(path, "", f"it cannot be read: {error}", "repair the file") from error


_READ: Mapping[str, Callable[[Path], Any]] = {
    ENDINGS[AVRO]: _json,
    ENDINGS[JSON_SCHEMA]: lambda path: registered.of(registered.JSON, _json(path)),
    ENDINGS[PROTOBUF]: lambda path: registered.of(registered.PROTOBUF, _text(path)),
}


def parse_schema(
    avro: Any, *, topic: str, number: int, file: str, source: Mapping[str, Any] | None = None
) -> Schema:
    """The schema in a parsed Avro document; `source` is what it was made of."""
    if not isinstance(avro, dict) or avro.get("type") != "record":
        raise ContractError(file, "type", "a topic's schema must be a record")
    _refuse_unknown(avro, _KEYS, file, "")
    if members(avro) > MOST_MEMBERS:
        raise ContractError(file, "", TOO_MANY, "leave some out, or send them as text")
    for key in ("name", "fields"):
        if not avro.get(key):
            raise ContractError(file, key, "it is missing or empty")
    if not isinstance(avro["fields"], list):
        raise ContractError(file, "fields", "it must be a list")
    names = Names(str(avro.get("namespace", "")))
    fields = tuple(
        parse_field(found, file, f"fields[{index}]", names) for index, found in enumerate(avro["fields"])
    )
    seen: set[str] = set()
    for index, field in enumerate(fields):
        for name in field.names:
            if name.lower() in seen:
                raise ContractError(
                    file, f"fields[{index}].name", f"{name!r} is used twice (case is ignored)"
                )
            seen.add(name.lower())
    return Schema(topic=topic, number=number, file=file, fields=fields, avro=avro, source=source)


def readable_fields(avro: Any, file: str) -> tuple[tuple[Field, ...], dict[str, ContractError]]:
    """Of a producer's record: its fields of types that a topic may have, and by name why others are none."""
    names, found, others = Names(str(avro.get("namespace", ""))), [], dict[str, ContractError]()
    if members(avro) > MOST_MEMBERS:
        return (), {str(one.get("name")): ContractError(file, "", TOO_MANY) for one in avro["fields"]}
    for index, field in enumerate(avro.get("fields", [])):
        try:
            found.append(parse_field(field, file, f"fields[{index}]", names))
        except ContractError as error:
            others[str(field.get("name"))] = error
    return tuple(found), others


def _refuse_unknown(found: dict[str, Any], known: set[str], file: str, path: str) -> None:
    for key in filter(is_meant, found):
        if key not in known:
            where = f"{path}.{key}" if path else key
            raise ContractError(file, where, "unknown key", f"known keys here: {', '.join(sorted(known))}")


def parse_field(found: Any, file: str, path: str, names: Names) -> Field:
    """One field of a record; `names` has the named types before it, and gains its own."""
    if not isinstance(found, dict):
        raise ContractError(file, path, "a field must be an object")
    _refuse_unknown(found, _FIELD_KEYS, file, path)
    for key in ("name", "type"):
        if key not in found:
            raise ContractError(file, f"{path}.{key}", "it is missing")
    name, aliases = found["name"], found.get("aliases", [])
    if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name):
        raise ContractError(
            file, f"{path}.name", f"{name!r} is not a field name", "use letters, digits and _, a letter first"
        )
    if not isinstance(aliases, list) or not all(isinstance(one, str) for one in aliases):
        raise ContractError(file, f"{path}.aliases", "it must be a list of names")
    kind = spark_type(found["type"], file, f"{path}.type", names)
    said = found.get(SENT, {})
    return Field(
        name=name, avro=found["type"], type=kind, nullable=without_null(found["type"])[1],
        has_default="default" in found, default=found.get("default"), aliases=tuple(aliases),
        number=said.get("number"), messages=said.get("messages", {}),
    )  # fmt: skip

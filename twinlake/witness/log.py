"""Owns what a definition reads of a topic: its valid records up to a position, over the files of its log.

A file has a row per record: how it came, its verdict, and its `event` as the writer wrote it. A field has its
value under one of its names, by the schema id of the record; where the writer had no such field, its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twinlake.witness.database import Database, Types, nothing
from twinlake.witness.default import default
from twinlake.witness.question import Field, TopicLog
from twinlake.witness.refused import Refused, guarded
from twinlake.witness.text import RECORD_NUMBER, record_number
from twinlake.witness.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    identifier,
    struct,
    text_literal,
)

KEY, TOMBSTONE, DISCARDED = "_key", "_tombstone", "_discarded"
RECORD: Types = {
    "_epoch": INT, "_partition": INT, "_offset": BIGINT, "_timestamp": TIMESTAMP, "_ingested_at": TIMESTAMP,
}  # fmt: skip
"""What every row has beside its fields; the log keeps them without the underscore."""
_WIDENED = {("int", "bigint"), ("int", "double"), ("float", "double")}
_IS_LATEST = (
    " AND NOT EXISTS (SELECT 1 FROM {0} AS r WHERE r.replay AND r.batch > l.batch"
    ' AND r.epoch = l.epoch AND r."partition" = l."partition" AND r."offset" = l."offset")'
)
_IN_JSON_KEYS = ("string", "int", "bigint", "boolean", "date")


def topic_rows(database: Database, name: str, topic: TopicLog, *, late: bool = False) -> Types:
    """Make a relation of the topic's valid records; its columns are what expressions can name, and
    RECORD_NUMBER. With `late` of those that came late or too late, and were not validated again since."""
    files = database.files(topic.files)
    types = _types(topic) | ({DISCARDED: BOOLEAN} if late else {})
    if files is None:
        number = f"CAST(NULL AS HUGEINT) AS {RECORD_NUMBER}"
        database.view(name, f"SELECT {nothing(types)}, {number} WHERE false")
        return types
    log = _Log(topic, database.columns(files).keys(), database.fields(files, "event"))
    shown = {field.name: log.field(field) for field in topic.fields}
    if topic.contract.get("key_format"):
        shown[KEY] = log.key()
    if _deletes(topic):
        shown[TOMBSTONE] = "event IS NULL"
    shown |= {column: log.own(column.removeprefix("_"), type_) for column, type_ in RECORD.items()}
    columns = [f"{sql} AS {identifier(column)}" for column, sql in shown.items()]
    if late:
        columns.append(f"verdict = 'too_late' AS {DISCARDED}")
    number = record_number("epoch", '"partition"', '"offset"')
    rows = f"(SELECT * FROM {files} WHERE batch <= {int(topic.position)})"
    condition = "(verdict = 'valid' AND late OR verdict = 'too_late')" if late else "verdict = 'valid'"
    database.view(
        name,
        f"SELECT {', '.join(columns)}, {number} AS {RECORD_NUMBER} FROM {rows} AS l"
        f" WHERE {condition}{_IS_LATEST.format(rows) if late else ''}",
    )
    return types


def _types(topic: TopicLog) -> Types:
    types = {field.name: Type.parse(field.type) for field in topic.fields}
    key_format = topic.contract.get("key_format")
    if key_format:
        types[KEY] = {"string": STRING, "bytes": BINARY}.get(key_format) or _json_key(topic)
    if _deletes(topic):
        types[TOMBSTONE] = BOOLEAN
    return types | RECORD


def _deletes(topic: TopicLog) -> bool:
    return topic.contract.get("null_values") == "delete"


def _primary(topic: TopicLog) -> list[Mapping[str, Any]]:
    return [column for column in topic.contract["columns"] if column["key"]]


def _json_key(topic: TopicLog) -> Type:
    return struct(*((column["name"], Type.parse(column["type"])) for column in _primary(topic)))


class _Log:
    """The SQL of columns over the files' own columns."""

    def __init__(self, topic: TopicLog, present: Iterable[str], in_event: Iterable[str]) -> None:
        self._topic = topic
        self._present = set(present)
        self._in_event = set(in_event)

    def own(self, column: str, type_: Type) -> str:
        """A column beside the event; logs of before lack some."""
        return _read(identifier(column), type_) if column in self._present else _null(type_)

    def field(self, field: Field) -> str:
        """By the record's schema the field's value or default; of a record without a value what its key says
        where that is the primary key, else NULL."""
        by_place: dict[str, list[int]] = {}
        for schema_id, kept in self._topic.met.items():
            by_place.setdefault(self._by_writer(field, kept), []).append(int(schema_id))
        cases = [
            f"WHEN schema_id IN ({', '.join(map(str, sorted(ids)))}) THEN {sql}"
            for sql, ids in by_place.items()
        ]
        value = f"CASE {' '.join(cases)} ELSE {self._anywhere(field)} END" if cases else self._anywhere(field)
        if not _deletes(self._topic):
            return value
        gone = _null(Type.parse(field.type))
        if field.name in (column["name"] for column in _primary(self._topic)):
            gone = f"({self.key()}).{identifier(field.name)}" if self._is_json_key else self.key()
        return f"CASE WHEN event IS NULL THEN {gone} ELSE {value} END"

    def key(self) -> str:
        """The record's key as the contract says that it is written."""
        if self._topic.contract.get("key_format") == "string":
            return 'try(decode("key"))'
        return self._json_key() if self._is_json_key else '"key"'

    @property
    def _is_json_key(self) -> bool:
        return self._topic.contract.get("key_format") == "json"

    def _json_key(self) -> str:
        document = 'try(decode("key"))'
        parts = []
        for name, type_ in _json_key(self._topic).fields:
            if type_.name not in _IN_JSON_KEYS:
                raise Refused(KEY, f"a key in JSON that has {type_.spark}")
            found = f"json_extract_string({document}, {text_literal(f'$.{identifier(name)}')})"
            parts.append(f"{identifier(name)} := CAST({found} AS {type_.duckdb})")
        return f"CASE WHEN json_valid({document}) THEN struct_pack({', '.join(parts)}) END"

    def _by_writer(self, field: Field, kept: Iterable[str]) -> str:
        """Of a record whose writer's fields are kept under these names."""
        by_name = {place.split(":")[0]: place for place in kept}
        place = next((by_name[name] for name in field.names if name in by_name), None)
        return default(field) if place is None else self._value(field, place)

    def _anywhere(self, field: Field) -> str:
        """Of a record that names no schema, as in JSON: it has its value in one place, others are empty."""
        kept = self._topic.event
        places = [place for name in field.names for place in kept if place.split(":")[0] == name]
        values = [self._value(field, place) for place in places]
        return f"coalesce({', '.join(values)})" if values else _null(Type.parse(field.type))

    def _value(self, field: Field, place: str) -> str:
        type_ = Type.parse(field.type)
        if place not in self._in_event:  # no record in these files has it
            return _null(type_)
        sent = Type.parse(self._topic.event.get(place, field.type))
        return _converted(f"event.{identifier(place)}", sent, type_, field.name)


def _null(type_: Type) -> str:
    return f"CAST(NULL AS {type_.duckdb})"


def _read(sql: str, type_: Type) -> str:
    """A value of the files as the engine has the type: their times are in UTC, with a zone or without."""
    if type_ == TIMESTAMP:
        return f"make_timestamp(epoch_us({sql}))"
    return f"CAST({sql} AS {type_.duckdb})"


def _converted(sql: str, sent: Type, read: Type, name: str) -> str:
    """The same value as another type, by the changes that a schema may make. By an earlier, narrower schema
    Spark raises for one that does not fit."""
    if sent == read:
        return _read(sql, read)
    pair = (sent.name, read.name)
    if pair in _WIDENED:
        return f"CAST({sql} AS {read.duckdb})"
    if pair == ("string", "binary"):
        return f"encode({sql})"
    if pair == ("binary", "string"):
        return f"decode({sql})"
    if (read.name, sent.name) in _WIDENED:
        kept = f"TRY_CAST({sql} AS {read.duckdb})"
        fits = f"TRY_CAST({kept} AS {sent.duckdb}) IS NOT DISTINCT FROM {sql}"
        return guarded(f"NOT ({fits})", kept, f"field {name}", f"a value does not fit into {read.spark}")
    if sent.name == read.name == "struct":
        return _by_name(sql, sent, read, name)
    raise Refused(f"field {name}", f"it was sent as {sent.spark} and is read as {read.spark}")


def _by_name(sql: str, sent: Type, read: Type, name: str) -> str:
    """A record by the names of its fields: one that the writer's has not is NULL."""
    theirs, parts = dict(sent.fields), []
    for inner, type_ in read.fields:
        value = _null(type_)
        if inner in theirs:
            value = _converted(f"({sql}).{identifier(inner)}", theirs[inner], type_, f"{name}.{inner}")
        parts.append(f"{identifier(inner)} := {value}")
    return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"

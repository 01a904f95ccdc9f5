"""Owns what the witness is asked: everything it needs to know of a version, as JSON and as frozen data.

Whoever asks knows the lake; the witness knows no more than this and the files that it names. Times are
microseconds since 1970, types are the texts of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

UNITED = "united"
"""In a definition of several topics: those of the tables of each, which differ in their steps alone."""
Columns = tuple[tuple[str, str], ...]
"""(name, Spark type) of each column, in order."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the child may use; a question that needs more is not witnessed."""

    memory_mb: int = 2_048
    seconds: float = 600
    """Of the clock."""
    threads: int = 1

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Limits:
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a topic's events, by the schema that the version was made with."""

    name: str
    type: str
    aliases: tuple[str, ...] = ()
    """The names that it had before, or has had since."""
    avro: Any = None
    """Its type in Avro, which says how the default is written; None for a topic in JSON."""
    has_default: bool = False
    default: Any = None
    number: int | None = None
    """Of Protobuf, by which its messages know it; else None."""
    messages: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of Protobuf, by message inside of it, the numbers of its fields."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @classmethod
    def of(cls, known: Any) -> Field:
        """Of one that `twinlake/topics` has read of a schema."""
        return cls(**{one.name: getattr(known, one.name) for one in fields(cls)})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Field:
        return cls(**{**data, "aliases": tuple(data["aliases"])})


@dataclass(frozen=True, kw_only=True)
class TopicLog:
    """A topic, and its log up to a position."""

    contract: Mapping[str, Any]
    """As `Contract.to_json` writes it."""
    fields: tuple[Field, ...]
    """What definitions see of an event."""
    files: tuple[str, ...]
    """Absolute paths of the Parquet files of the log at or after the position."""
    position: int
    """The last batch that counts."""
    event: Mapping[str, str]
    """By name the Spark type of each field that the log keeps of events; one that was sent with a second
    type is kept beside the first as `<name>:<type>`."""
    met: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By schema id, under which of those names the fields of its records are kept."""
    watermark: int | None = None
    clocks: Mapping[str, int | None] = field(default_factory=dict)
    """`log_append_time` and `processing_time`: how far the log's own clocks had come at the position."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TopicLog:
        met = {schema_id: tuple(names) for schema_id, names in data["met"].items()}
        fields = tuple(map(Field.from_json, data["fields"]))
        return cls(**{**data, "fields": fields, "files": tuple(data["files"]), "met": met})


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that Spark has written."""

    files: tuple[str, ...]
    """Absolute paths of Parquet files; none where there are no rows."""
    columns: Columns

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rows:
        columns = tuple((name, type_) for name, type_ in data["columns"])
        return cls(files=tuple(data["files"]), columns=columns)


@dataclass(frozen=True, kw_only=True)
class ReadTable:
    """A table that the version reads, of the version that it reads."""

    definition: Mapping[str, Any]
    shown: Rows | None = None
    """What it shows at the same pin; None where the question needs its definition alone."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReadTable:
        shown = data["shown"] and Rows.from_json(data["shown"])
        return cls(definition=data["definition"], shown=shown)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Does DuckDB find what a version shows at a pin?"""

    definition: Mapping[str, Any]
    """As `to_json` of its kind writes it."""
    topics: Mapping[str, TopicLog]
    """All topics upstream, by name."""
    shown: Rows
    """All columns of the view, with every row that it has at the pin."""
    reads: Mapping[str, ReadTable] = field(default_factory=dict)
    """By name, the tables that it reads itself."""
    stepped: Rows | None = None
    """Instead of the topic's events: what Spark makes of them by the row-local steps, where the witness
    refuses an expression. The definition's columns, `_epoch`, `_partition`, `_offset` and `_timestamp`; of a
    join, each pair's columns and record ids are not asked for so."""
    late: Rows | None = None
    """What the view `<table>_late` shows, for a table that has one."""

    @property
    def table(self) -> str:
        return str(self.definition.get("name"))

    @property
    def files(self) -> tuple[str, ...]:
        """All that the witness may read."""
        rows = [self.shown, *(one.shown for one in self.reads.values()), self.stepped, self.late]
        found = [file for one in rows if one is not None for file in one.files]
        return (*(file for topic in self.topics.values() for file in topic.files), *found)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Question:
        """The inverse of `to_json`."""
        rows = {name: data[name] and Rows.from_json(data[name]) for name in ("shown", "stepped", "late")}
        return cls(
            definition=data["definition"],
            topics={name: TopicLog.from_json(one) for name, one in data["topics"].items()},
            reads={name: ReadTable.from_json(one) for name, one in data["reads"].items()},
            **rows,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

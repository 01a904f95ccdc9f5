"""Event form: how rows of a table are written as events, to which topics and by which key, as was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from twinlake.base import quote
from twinlake.base.errors import UsageError, near, visible
from twinlake.changelog.form import head, schema
from twinlake.changelog.target import PARTITIONS, Made, Record, Target
from twinlake.kinds.kind import Kind
from twinlake.topics import record_id
from twinlake.topics.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

_ROUTE, _KEY, _VALUE = "_route", "_key", "_value"
_MICROS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {
    "ignoreNullFields": "false", "timestampFormat": f"{_MICROS}XXX", "timestampNTZFormat": _MICROS
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EventOptions:
    """How events of a table are sent; in a file of the lake while they are.

    With `topic_from`, a column, its value names the topic of a row, one of `topics`, and any other value is
    sent to `other_topic`, which is one of them; without that it is an error. `partitions` is how many a topic
    that is made has, `resends` how often all of history was asked for again.
    """

    topics: tuple[str, ...]
    positions: str
    topic_from: str | None = None
    other_topic: str | None = None
    key: tuple[str, ...] = ()
    partition_by: Literal["key", "source"] = "source"
    format: Literal["avro", "json"] = "avro"
    headers: Literal["record-id", "none"] = "record-id"
    partitions: int = PARTITIONS
    resends: int = 0

    @property
    def target(self) -> Target:
        return Target(
            topics=self.topics, positions=self.positions, has_events=True,
            keyed=self.partition_by == "key", partitions=self.partitions,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EventForm:
    """`heads` are what comes before a key and a value in each topic: nothing where they are JSON."""

    table: str
    options: EventOptions
    columns: tuple[str, ...]
    heads: Mapping[str, tuple[bytes, bytes]]
    key_schema: str
    value_schema: str

    def encoded(self, rows: DataFrame) -> DataFrame:
        """Of these rows, in their order, what `record` needs."""
        from pyspark.sql import functions as F

        route = self.options.topic_from
        key = self._written(self.options.key, self.key_schema) if self.options.key else F.lit(None)
        return rows.select(
            (F.col(quote.name(route)) if route else F.lit(None)).cast("string").alias(_ROUTE),
            key.cast("binary").alias(_KEY),
            self._written(self.columns, self.value_schema).cast("binary").alias(_VALUE),
            *record_id.KEY,
        )

    def record(self, row: Row, source: str, made: Mapping[str, Made]) -> Record:
        """The event of a row that was encoded; `source` is the topic that its record is of, `made` the topics
        as they are. UsageError for a row that no topic or partition is there for."""
        topic = self._topic(row, source)
        before_key, before_value = self.heads[topic]
        epoch, partition, offset = (row[name] for name in record_id.KEY)
        headers = {}
        if self.options.headers == "record-id":
            headers = {
                "topic": source, "epoch": str(epoch), "partition": str(partition), "offset": str(offset)
            }  # fmt: skip
        by_source = self.options.partition_by == "source"
        if by_source and partition >= made[topic].partitions:
            raise UsageError(
                f"topic {topic!r} has {made[topic].partitions} partitions",
                f"events keep the partition of their record, and one of {source} is of partition {partition}",
                "add partitions to the topic, as many as its source has: it goes on by itself, and nothing "
                "is left out",
            )
        return Record(
            topic=topic,
            key=None if row[_KEY] is None else before_key + row[_KEY],
            value=before_value + row[_VALUE],
            partition=partition if by_source else None,
            headers=headers,
        )

    def _topic(self, row: Row, source: str) -> str:
        options, value = self.options, row[_ROUTE]
        if options.topic_from is None:
            return options.topics[0]
        if value in options.topics:
            return str(value)
        if options.other_topic is not None:
            return options.other_topic
        epoch, partition, offset = (row[name] for name in record_id.KEY)
        shown = "NULL" if value is None else repr(visible(value)[:100])
        raise UsageError(
            f"{options.topic_from} of {self.table} is {shown}, which is no topic that may be sent to",
            f"it is so of the record at epoch {epoch}, partition {partition}, offset {offset} of {source}; "
            f"allowed: {', '.join(options.topics)}",
            f"`twinlake changelog {self.table} --stop`, then start it with that topic in --topics, or with "
            "--other-topic: it goes on from there, and nothing is left out",
        )

    def _written(self, columns: tuple[str, ...], avro: str) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import to_avro

        fields = F.struct(*(F.col(quote.name(name)) for name in columns))
        return F.to_json(fields, _JSON) if self.options.format == "json" else to_avro(fields, avro)


def event_columns(definition: Kind) -> tuple[str, ...]:
    """Those of the view that are in an event: the record id is in its headers."""
    return tuple(name for name in definition.timeless if name not in record_id.NAMES)


def refuse_columns(options: EventOptions, definition: Kind, rows: StructType) -> None:
    """UsageError for a column that was asked for and that the table has not, or not as text."""
    named = {name: "key" for name in options.key}
    if options.topic_from is not None:
        named[options.topic_from] = "topic"
    for name, what in named.items():
        if name not in rows.names:
            raise UsageError(
                f"table {definition.name} has no column {name!r}, which its events' {what} is made of",
                f"it is none of its view{near(name, rows.names)}", "name a column of the table",
            )  # fmt: skip
    route = options.topic_from
    if route is not None and rows[route].dataType.typeName() != "string":
        raise UsageError(
            f"column {route} of {definition.name} is {rows[route].dataType.simpleString()}",
            "a topic's name is text", "name a column of type string, or have one in the table's definition",
        )  # fmt: skip
    if options.format == "avro":
        schema(rows, definition.name, event_columns(definition))


def event_form(
    registry: Registry | None, options: EventOptions, definition: Kind, rows: StructType
) -> EventForm:
    """The form of the table's events; `rows` are the columns of its view. Avro's schemas are registered for
    each topic in the registry, which JSON needs none of.

    DifferenceError when the registry refuses one: it cannot read what a topic has already.
    """
    refuse_columns(options, definition, rows)
    columns, table = event_columns(definition), definition.name
    heads = dict.fromkeys(options.topics, (b"", b""))
    key_schema = value_schema = ""
    if registry is not None:
        key, value = schema(rows, f"{table}_key", options.key), schema(rows, table, columns)
        key_schema, value_schema = json.dumps(key), json.dumps(value)
        for topic in options.topics:
            before_key = head(registry.register(f"{topic}-key", key)) if options.key else b""
            heads[topic] = before_key, head(registry.register(f"{topic}-value", value))
    return EventForm(
        table=table, options=options, columns=columns, heads=heads, key_schema=key_schema,
        value_schema=value_schema,
    )  # fmt: skip

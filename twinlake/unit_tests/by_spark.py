"""Evaluates a case by Spark: the platform's own states and views, in several cuts and by both layers.

The speed layer appends the states of each batch and a view merges them; the batch layer makes one state of
all. Both are made here of a few records, without a lake. This module alone imports pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base import quote
from twinlake.base.errors import first_lines
from twinlake.base.times import format_moment, from_micros
from twinlake.kinds.analysis import nothing
from twinlake.kinds.dependencies import upstream_tables, upstream_topics
from twinlake.kinds.kind import Kind, StoredKind, ViewClock, is_stored
from twinlake.kinds.late import DISCARDED
from twinlake.topics import record_id, record_key
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import TOO_LATE, VALID
from twinlake.unit_tests.cases import Case
from twinlake.unit_tests.given import Given, World
from twinlake.unit_tests.matching import NEAR
from twinlake.unit_tests.running import Raised, Shown
from twinlake.witness.question import TopicLog
from twinlake.witness.rows import Found
from twinlake.witness.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WITHIN = 0.0101
"""How far off a Quantile may be shown."""
_MOST = 2
"""Batches of a cut: each is a part of one plan, and what takes time is the plan."""


@dataclass(frozen=True)
class Cut:
    """One way to compute states: of each batch of records one, and whether batch merges them before they are
    read. Records are dealt out by their place among `batches`, in `order`."""

    how: str
    batches: int
    backwards: bool = False
    merged: bool = False


ONCE = Cut("", 1)
CUTS = (
    Cut(", by batch: all records at once", 1),
    Cut(", by speed: in two batches", _MOST),
    Cut(", by batch over what speed had appended, the later records first", _MOST, True, True),
)


class BySpark:
    """A session that runs cases."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.name = f"Spark {spark.version}"

    def shown(self, world: World, case: Case, made: Given, *, full: bool) -> list[Shown]:
        """What the case's table shows; `full`, of each cut. A table without states has one way only. Raised
        where Spark raises."""
        from pyspark.errors import PySparkException

        table = world.tables[case.table]
        has_states = any(is_stored(one) for one in _upstream(table, world.tables))
        cuts: Sequence[Cut] = CUTS if full and has_states else (ONCE,)
        near = _WITHIN if _is_approximate(table, world.tables) else NEAR
        try:
            found = []
            logs: dict[str, DataFrame] = {}
            for cut in cuts:
                views = _Views(self._spark, world, case, made, cut, logs)
                late = views.late(table) if case.late is not None else None
                found.append(Shown(cut.how, _found(views.view(case.table), table.view_keys), late, near))
            return found
        except PySparkException as error:
            raise Raised(first_lines(error)) from error


class _Views:
    """What the tables upstream of one show, by one cut."""

    def __init__(
        self, spark: SparkSession, world: World, case: Case, made: Given, cut: Cut, logs: dict[str, DataFrame]
    ) -> None:
        self._spark, self._world, self._case, self._made, self._cut = spark, world, case, made, cut
        self._logs = logs

    def view(self, name: str) -> DataFrame:
        """The rows that the table shows: those that the case gives, or what its definition makes."""
        if name in self._case.tables:
            return self._given(name)
        table = self._world.tables[name]
        if is_stored(table):
            relations = {name: self._named(self._states(table))}
        else:
            relations = {one: self._named(self._rows(one)) for one in table.inputs}
            relations |= {one: self._named(self._read(table, one)) for one in table.reads}
        return self._spark.sql(table.view(relations, self._clock(table)))

    def late(self, table: Kind) -> Found | None:
        """What came late for its windows."""
        (topic,) = table.inputs
        columns = (*self._columns(topic), f"verdict = '{TOO_LATE}' AS `{DISCARDED}`")
        late = self._log(topic).where(f"verdict = '{VALID}' AND late OR verdict = '{TOO_LATE}'")
        text = table.late(self._named(late.selectExpr(*columns)))
        return None if text is None else _found(self._spark.sql(text), ("window_start",))

    def _read(self, table: Kind, name: str) -> DataFrame:
        read = self._world.tables[name]
        return self._states(read) if table.reads_states and is_stored(read) else self.view(name)

    def _given(self, name: str) -> DataFrame:
        shown = self._made.shown[name]
        if not shown.files:
            return self._spark.sql(f"SELECT * FROM {nothing(shown.columns)}")
        found = self._spark.read.parquet(*shown.files)
        casts = (f"CAST({quote.name(one)} AS {type_}) AS {quote.name(one)}" for one, type_ in shown.columns)
        return found.selectExpr(*casts)

    def _states(self, table: StoredKind) -> DataFrame:
        (topic,) = table.inputs
        states = [table.partial(rows) for rows in self._batches(topic)]
        found = reduce(lambda one, other: one.unionByName(other), states)
        return table.merge(found) if self._cut.merged else found

    def _batches(self, topic: str) -> Iterator[DataFrame]:
        """The topic's valid records, cut into batches."""
        cut = self._cut
        last = max(self._topic(topic).position, 1)
        ends = [last * number // cut.batches for number in range(cut.batches + 1)]
        spans = [(after, to) for after, to in pairwise(ends) if after < to]
        for after, to in reversed(spans) if cut.backwards else spans:
            yield self._rows(topic, f"batch > {after} AND batch <= {to}")

    def _rows(self, topic: str, condition: str = "true") -> DataFrame:
        rows = self._log(topic).where(f"verdict = '{VALID}' AND {condition}")
        return rows.selectExpr(*self._columns(topic))

    def _log(self, topic: str) -> DataFrame:
        """To look into a file takes a job of Spark's: each is looked into once."""
        if topic not in self._logs:
            self._logs[topic] = self._read_log(self._topic(topic))
        return self._logs[topic]

    def _read_log(self, log: TopicLog) -> DataFrame:
        if log.files:
            return self._spark.read.parquet(*log.files)
        event = ",".join(f"{quote.name(name)}:{type_}" for name, type_ in log.event.items())
        columns = {
            "epoch": "int", "partition": "int", "offset": "bigint", "timestamp": "timestamp", "key": "binary",
            "event": f"struct<{event}>", "verdict": "string", "late": "boolean", "batch": "bigint",
            "ingested_at": "timestamp",
        }  # fmt: skip
        return self._spark.sql(f"SELECT * FROM {nothing(columns.items())}")

    def _columns(self, topic: str) -> tuple[str, ...]:
        """What definitions read of the topic's log, as `twinlake/lake/log/log.py` reads it."""
        known: Topic = self._world.topics[topic]
        fields = []
        for field in known.newest.fields:
            value = f"CAST(event.{quote.name(field.name)} AS {field.type})"
            if deleted := record_key.of_tombstone(known.contract, field.name):
                value = f"CASE WHEN event IS NULL THEN {deleted} ELSE {value} END"
            fields.append(f"{value} AS {quote.name(field.name)}")
        return (*fields, *record_key.from_log(known.contract), *record_id.FROM_LOG)

    def _topic(self, name: str) -> TopicLog:
        return self._made.logs[name]

    def _clock(self, table: Kind) -> ViewClock:
        watermarks, late_after = dict[str, str](), dict[str, timedelta]()
        clocks = dict[tuple[str, str], str]()
        for name in upstream_topics(table, self._world.tables):
            log = self._topic(name)
            if log.watermark is not None:
                watermarks[name] = _moment(log.watermark)
            clocks |= {(name, clock): _moment(at) for clock, at in log.clocks.items() if at is not None}
            if length := self._world.topics[name].contract.late_after:
                late_after[name] = length
        return ViewClock(watermarks=watermarks, late_after=late_after, clocks=clocks)

    def _named(self, rows: DataFrame) -> str:
        name = f"unit_test_{uuid4().hex}"
        rows.createOrReplaceTempView(name)
        return name


def _moment(micros: int) -> str:
    return f"TIMESTAMP '{format_moment(from_micros(micros))}'"


def _found(rows: DataFrame, keys: Sequence[str]) -> Found:
    types = {name: Type.parse(text) for name, text in rows.dtypes}
    listed = rows.toArrow().to_pylist()
    made = (tuple(_value(row[name], type_) for name, type_ in types.items()) for row in listed)
    return Found(keys=tuple(keys), types=types, rows=tuple(sorted(made, key=repr)))


def _value(value: Any, type_: Type) -> Any:
    """As the witness has it: Arrow gives a map as pairs."""
    if value is None or not type_.is_nested:
        return value
    if type_.name == "array":
        return [_value(one, type_.element) for one in value]
    if type_.name == "map":
        return {key: _value(one, type_.value) for key, one in value}
    return {name: _value(value[name], inner) for name, inner in type_.fields}


def _upstream(table: Kind, tables: Mapping[str, Kind]) -> list[Kind]:
    """It, and every table that decides what it shows."""
    return [table, *(tables[name] for name in upstream_tables(table, tables))]


def _is_approximate(table: Kind, tables: Mapping[str, Kind]) -> bool:
    """Whether a Quantile is upstream; other measures are exact for as few records as a test has."""
    measures = [one.to_json().get("measures", []) for one in _upstream(table, tables)]
    return any(data.get("kind") == "quantile" for listed in measures for _, data in listed)

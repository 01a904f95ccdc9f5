"""Explain: which records, of which topics, partitions, offsets and batches, are behind a row of a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.as_json import to_json
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.times import EPOCH, parse_moment
from twinlake.kinds.grid import micros
from twinlake.lake.log import topic_views
from twinlake.lake.log.log_clock import moment_sql
from twinlake.reading.past_tables import Behind, PastTables
from twinlake.reading.wire import Key, text_of
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SAMPLE = 20
"""So many records are listed one by one."""
_SIMPLE = ("string", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "boolean")
_PARTITION = ("_epoch", "_partition")
_SHOWN = quote.names((*record_id.KEY, record_id.TIMESTAMP, "_batch"))
_COUNTED = (
    "count(*) AS records", "min(_offset) AS first_offset", "max(_offset) AS last_offset",
    "count(DISTINCT _batch) AS batches", "min(_batch) AS first_batch", "max(_batch) AS last_batch",
    "min(_timestamp) AS first_appended", "max(_timestamp) AS last_appended",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Question:
    """The row of a table with this key, each value as text, None for NULL; where the live release is now, or
    as of a moment."""

    table: str
    key: Key
    as_of: str | None = None


def explain(
    past: PastTables, asked: Question, refuse_hidden: Callable[[Sequence[str]], object] = list
) -> dict[str, Any]:
    """The row; by topic and partition how many records are behind it, with offsets, batches and times; a
    sample of them; and the one that decided it, where one did.

    NotFoundError without such a table or row, UsageError for a key that is none of its. `refuse_hidden` is
    called with the views of `serve` whose rows are shown as they are, before any is read.
    """
    refuse_hidden([asked.table])  # before anything is said of it
    with past.texts(asked.as_of, {asked.table.lower()}) as made:
        version = next((one for one in made.versions if one.table == asked.table), None)
        if version is None:
            release = made.past.release
            why = f"release {release.number} has: {', '.join(sorted(release.tables))}"
            raise NotFoundError(f"there is no table {asked.table!r}", why, "name one of them")
        shown = made.shown(version)
        types = dict(past.spark.sql(shown.sql).dtypes)
        keys = {name: types[name] for name in shown.definition.view_keys}
        rows = f"(SELECT * FROM ({shown.sql}) WHERE {_condition(past.spark, asked, keys)})"
        behind = list(made.behind(version, rows))
    refuse_hidden([*dict.fromkeys(topic_views.names(topic)[0] for topic, *_ in behind)])
    found = past.spark.sql(f"SELECT * FROM {rows} LIMIT 1").collect()
    if not found:
        remedy = f"see which keys there are: SELECT * FROM serve.{asked.table}"
        raise NotFoundError(f"{asked.table} has no row with this key", text_of(asked.key), remedy)
    partitions, records = _records(past.spark, behind)
    decided = None
    if decided_by := shown.definition.decided_by:
        place = shown.definition.decided_place
        decided = _decided(past.spark, behind[0], decided_by, found[0][place] if place else 1)
    return {
        "table": asked.table, "version": version.name, **made.summary, "row": to_json(found[0]),
        "partitions": partitions, "decided": decided, "records": records,
    }  # fmt: skip


def _condition(spark: SparkSession, asked: Question, keys: Mapping[str, str]) -> str:
    """That a row has the key."""
    if set(asked.key) != set(keys):
        columns = ", ".join(f"{name} ({type_})" for name, type_ in keys.items())
        text = text_of(asked.key)
        what = f"{text} is not a key of {asked.table}" if text else f"no key of {asked.table} is given"
        remedy = f"give {' '.join(f'--key {name}=...' for name in keys)}"
        raise UsageError(what, f"its key columns are {columns}", remedy)
    return condition(spark, asked.key, keys)


def moment_micros(text: str) -> int:
    """The key of a time; UsageError for a text that is none."""
    return micros(parse_moment(text) - EPOCH)


def not_a_value(name: str, text: str | None, type_: str) -> UsageError:
    return UsageError(f"{text!r} is not a value of {name}", f"its type is {type_}", "fix the value")


def condition(spark: SparkSession, key: Key, types: Mapping[str, str]) -> str:
    """That a row has the key, whose columns have these types; UsageError for a value that is none."""
    values = {name: _value(name, text, types[name]) for name, text in key.items()}
    given = {name: value for name, value in values.items() if key[name] is not None}
    columns = ", ".join(f"{value} AS {quote.name(name)}" for name, value in given.items())
    (cast,) = spark.sql(f"SELECT {columns or 'true'}").collect()
    for name in given:
        if cast[name] is None:
            raise not_a_value(name, key[name], types[name])
    return " AND ".join(f"{quote.name(name)} <=> {value}" for name, value in values.items())


def _value(name: str, text: str | None, type_: str) -> str:
    if text is None:
        return f"CAST(NULL AS {type_})"
    if type_ == "timestamp":
        return moment_sql(moment_micros(text))
    if type_.split("(")[0] not in _SIMPLE:
        raise UsageError(f"{name} cannot be given as text", f"it is {type_}", "ask for another table's row")
    return f"try_cast({quote.string(text)} AS {type_})"


def _records(spark: SparkSession, behind: list[Behind]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """By topic and partition what there is, and the first records of each topic, each record once."""
    from pyspark.sql import functions as F

    partitions: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for topic in dict.fromkeys(name for name, *_ in behind):
        parts: list[DataFrame] = [
            spark.sql(f"SELECT {_SHOWN}, {_id(unique)} AS `_id` FROM ({sql})")
            for name, _, sql, unique in behind
            if name == topic
        ]
        found = reduce(lambda one, other: one.union(other), parts).distinct()
        through = [" < ".join(way) for name, way, *_ in behind if name == topic]
        counted = found.groupBy(*_PARTITION).agg(*map(F.expr, _COUNTED)).orderBy(*_PARTITION)
        partitions += [{"topic": topic, "through": through, **_plain(row)} for row in counted.collect()]
        sample = found.orderBy(*record_id.KEY).limit(SAMPLE).collect()
        records += [{"topic": topic, **_plain(row)} for row in sample]
    return partitions, records


def _decided(spark: SparkSession, behind: Behind, decided_by: tuple[str, ...], place: int) -> dict[str, Any]:
    """The record that is the greatest of those behind the row, or comes so many places after it."""
    topic, _, sql, unique = behind
    newest = ", ".join(f"{one} DESC" for one in decided_by)
    records = f"SELECT {_SHOWN}, {_id(unique)} AS `_id` FROM ({sql})"
    (row,) = spark.sql(f"{records} ORDER BY {newest} LIMIT 1 OFFSET {place - 1}").collect()
    return {"topic": topic, **_plain(row)}


def _id(unique: str | None) -> str:
    return f"CAST({quote.name(unique)} AS string)" if unique else "CAST(NULL AS string)"


def _plain(row: Row) -> dict[str, Any]:
    return {name.removeprefix("_"): to_json(value) for name, value in row.asDict().items()}

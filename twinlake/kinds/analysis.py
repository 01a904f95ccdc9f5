"""Owns what Spark says of a definition before any row is read: its problems, its columns, its view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.base.times import format_duration
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind, StoredKind, ViewClock, is_stored
from twinlake.kinds.raising import can_raise
from twinlake.kinds.row_local import first_line, refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.base.errors import DefinitionError
    from twinlake.topics.topic import Topic

Topics = Mapping[str, "Topic"]
Tables = Mapping[str, Kind]
"""Sound definitions by name, bound: at least those that a definition reads, and what these read."""
NONE: Tables = {}


def analyse(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE) -> None:
    """Raise the first problem of the definition, if it has any."""
    for problem in problems(kind, topics, spark, tables):
        raise problem


def problems(
    kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE
) -> Iterator[DefinitionError]:
    """Everything that keeps the definition from running alike anywhere, each with its line."""
    from pyspark.errors import PySparkException

    rows = empty_rows(kind, topics, spark, tables)
    found = (
        list(refused(kind, rows))
        or list(kind.problems(rows))
        or list(kind.mismatched(_stepped(kind, topics, spark, tables)))
    )
    yield from found
    if found:
        return
    try:
        if is_stored(kind):
            kind.merge(kind.partial(rows[kind.inputs[0]]))
        empty_view(kind, topics, spark, tables=tables)
    except PySparkException as error:
        yield kind.error(f"it does not compile: {first_line(error)}")


def warnings(
    kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE
) -> Iterator[DefinitionError]:
    """Each place of a sound definition that raises for some valid record, with how to write it instead; and
    what it says that nobody can have meant."""
    then = "the table stops for ever at" if is_stored(kind) else "every query fails that reads"
    rows = empty_rows(kind, topics, spark, tables)
    for stage in kind.stages(rows):
        for expression in stage.expressions:
            for when, instead in can_raise(expression, stage.rows):
                why = f"{expression.what}: {then} a record for which {when}"
                yield kind.error_at_text(expression.sql, why, f"write {instead}")
    yield from kind.type_errors(rows)
    yield from _never_final(kind, topics)


def _never_final(kind: Kind, topics: Topics) -> Iterator[DefinitionError]:
    """A warning where a window is shown no longer than records may come late for it."""
    ending = kind.ending
    if ending is None or not ending.clock.has_late_records:
        return
    late = topics[ending.clock.topic].contract.late_after
    if late is not None and ending.kept <= late:
        kept, late_words = format_duration(ending.kept), format_duration(late)
        topic = ending.clock.topic
        why = f"it shows a window for {kept} after its end, and records of {topic} may come {late_words} late"
        yield kind.error(f"{why}: no row of it is ever final", "give it a longer retention")


def columns(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE) -> list[tuple[str, str]]:
    """(name, Spark type) of the view's columns."""
    found: list[tuple[str, str]] = empty_view(kind, topics, spark, tables=tables).dtypes
    return found


def empty_rows(
    kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE
) -> dict[str, DataFrame]:
    """By topic and table, a relation with the columns that the definition reads, and no rows."""
    relations = _empty_relations(kind, topics, spark, tables)
    return {name: spark.sql(f"SELECT * FROM {relation}") for name, relation in relations.items()}


def empty_view(
    kind: Kind, topics: Topics, spark: SparkSession, watermark: str | None = None, tables: Tables = NONE
) -> DataFrame:
    """The view over no rows; `watermark` is a SQL literal for every topic."""
    relations = _empty_relations(kind, topics, spark, tables)
    if is_stored(kind):
        relations = {kind.name: nothing(_states(kind, topics, spark))}
    upstream = upstream_topics(kind, tables)
    late_after = {name: topics[name].contract.late_after or timedelta(0) for name in upstream}
    watermarks = {} if watermark is None else dict.fromkeys(upstream, watermark)
    return spark.sql(kind.view(relations, ViewClock(watermarks=watermarks, late_after=late_after)))


def nothing(columns: Iterable[tuple[str, str]]) -> str:
    """A relation in SQL text with these columns and no rows."""
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS {quote.name(name)}" for name, type_ in columns)
    return f"(SELECT {nulls} WHERE false)"


def _empty_relations(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables) -> dict[str, str]:
    """What follows FROM for each topic and table that the definition reads: columns, and no rows.

    Of a table the columns alone, not its text: what makes them is the concern of its own fingerprint.
    """
    found = {name: nothing(topics[name].columns) for name in kind.inputs}
    for name in kind.reads:
        table = tables[name]
        if kind.reads_states and is_stored(table):
            found[name] = nothing(_states(table, topics, spark))
        else:
            found[name] = nothing(columns(table, topics, spark, tables))
    return found


def _stepped(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables) -> dict[str, DataFrame]:
    """By table whose states it reads, no rows after its steps."""
    found = {}
    for name in kind.reads if kind.reads_states else ():
        for rows in empty_rows(tables[name], topics, spark, tables).values():
            if (stepped := tables[name].after_steps(rows)) is not None:
                found[name] = stepped
    return found


def _states(kind: StoredKind, topics: Topics, spark: SparkSession) -> list[tuple[str, str]]:
    (rows,) = empty_rows(kind, topics, spark).values()
    found: list[tuple[str, str]] = kind.partial(rows).dtypes
    return found

"""Owns what Spark says of a definition before any row is read: its problems, its columns, its view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs import quote
from jobs.kinds.kind import Kind, Moment, is_stored
from jobs.kinds.raising import can_raise
from jobs.kinds.row_local import first_line, refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.errors import DefinitionError
    from jobs.topics.topic import Topic

Topics = Mapping[str, "Topic"]


def analyse(kind: Kind, topics: Topics, spark: SparkSession) -> None:
    """Raise the first problem of the definition, if it has any."""
    for problem in problems(kind, topics, spark):
        raise problem


def problems(kind: Kind, topics: Topics, spark: SparkSession) -> Iterator[DefinitionError]:
    """Everything that keeps the definition from running alike anywhere, each with its line."""
    from pyspark.errors import PySparkException

    rows = empty_rows(kind, topics, spark)
    found = list(refused(kind, rows)) or list(kind.problems(rows))
    yield from found
    if found:
        return
    try:
        if is_stored(kind):
            kind.merge(kind.partial(rows[kind.inputs[0]]))
        empty_view(kind, topics, spark)
    except PySparkException as error:
        yield kind.error(f"it does not compile: {first_line(error)}")


def warnings(kind: Kind, topics: Topics, spark: SparkSession) -> Iterator[DefinitionError]:
    """Each place of a sound definition that raises for some valid record, with how to write it instead."""
    then = "the table stops for ever at" if is_stored(kind) else "every query fails that reads"
    for stage in kind.stages(empty_rows(kind, topics, spark)):
        for expression in stage.expressions:
            for when, instead in can_raise(expression, stage.rows):
                why = f"{expression.what}: {then} a record for which {when}"
                yield kind.error_at_text(expression.sql, why, f"write {instead}")


def columns(kind: Kind, topics: Topics, spark: SparkSession) -> list[tuple[str, str]]:
    """(name, Spark type) of the view's columns."""
    return empty_view(kind, topics, spark).dtypes


def empty_rows(kind: Kind, topics: Topics, spark: SparkSession) -> dict[str, DataFrame]:
    """By topic, a relation with the columns that the definition reads, and no rows."""
    return {name: spark.sql(f"SELECT * FROM {_nothing(topics[name].columns)}") for name in kind.inputs}


def empty_view(kind: Kind, topics: Topics, spark: SparkSession, watermark: str | None = None) -> DataFrame:
    """The view over no rows; `watermark` is a SQL literal for every topic."""
    relations = {name: _nothing(topics[name].columns) for name in kind.inputs}
    if is_stored(kind):
        (rows,) = empty_rows(kind, topics, spark).values()
        relations = {kind.name: _nothing(kind.partial(rows).dtypes)}
    late_after = {name: topics[name].contract.late_after or timedelta(0) for name in kind.inputs}
    watermarks = {} if watermark is None else dict.fromkeys(kind.inputs, watermark)
    return spark.sql(kind.view(relations, Moment(watermarks=watermarks, late_after=late_after)))


def _nothing(columns: Iterable[tuple[str, str]]) -> str:
    """A relation in SQL text with these columns and no rows."""
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS {quote.name(name)}" for name, type_ in columns)
    return f"(SELECT {nulls} WHERE false)"

"""Owns partial states: computed from rows, merged with each other. Speed and batch both run exactly this."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobs import quote
from jobs.kinds.measure import Part
from jobs.kinds.table import Aggregate, Events, Latest, Table
from jobs.topics.topic import COORDINATE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.topics.topic import Topic

COORDINATE_COLUMNS = tuple(name for name, _ in COORDINATE)
ORDER_END = ("_epoch", "_partition", "_offset")
"""Every order ends in the coordinate: ties and NULLs would otherwise be decided by the cut."""
HASH_SQL = "xxhash64(`_epoch`, `_partition`, `_offset`)"

COMPANIONS = (
    Part(name="_rows", from_rows="count(1)", merge="sum(`_rows`)"),
    Part(name="_hash_low", from_rows="sum(`_hash` & 4294967295)", merge="sum(`_hash_low`)"),
    Part(name="_hash_high", from_rows="sum(shiftrightunsigned(`_hash`, 32))", merge="sum(`_hash_high`)"),
)
"""Exact evidence of which records were counted, so that no measure's error can hide a lost one."""


def source_columns(topic: Topic) -> tuple[tuple[str, str], ...]:
    """(name, Spark type) of the rows that definitions over this topic read."""
    return topic.columns


def key_columns(table: Table) -> list[str]:
    """The columns that identify a row: keys, then window_start; the coordinate for Events."""
    return list(table.key_columns)


def order_columns(table: Latest) -> tuple[str, ...]:
    """The state columns that decide which row of a key is the newest."""
    return (*(f"_order_{index}" for index in range(len(table.order))), *ORDER_END)


def steps(table: Table, rows: DataFrame) -> DataFrame:
    """The row-local steps: explode, where, columns. Out come `columns` and the coordinate columns."""
    from pyspark.sql import functions as F

    if isinstance(table, Aggregate) and table.explode:
        array = F.expr(table.explode.array)
        rows = rows.select("*", F.explode(array).alias(table.explode.name))
    if table.where is not None:
        rows = rows.where(F.expr(table.where))
    shown = [F.expr(sql).alias(name) for name, sql in table.columns.items()]
    return rows.select(*shown, *COORDINATE_COLUMNS)


def partial(table: Table, rows: DataFrame) -> DataFrame:
    """The state of these rows: one row per key (and window). Events: the rows themselves."""
    from pyspark.sql import functions as F

    stepped = steps(table, rows)
    if isinstance(table, Events):
        return stepped
    types = dict(stepped.dtypes)
    stepped = stepped.withColumn("_hash", F.expr(HASH_SQL))
    if isinstance(table, Latest):
        return _newest(table, _ordered(table, stepped), from_rows=True)
    assert isinstance(table, Aggregate)
    if table.window:
        on = quote.name(table.window.on)
        stepped = stepped.where(F.expr(f"{on} IS NOT NULL")).withColumn("window_start", _window_start(table))
    measured = {name: types.get(measure.of or "", "") for name, measure in table.measures.items()}
    return stepped.groupBy(*map(quote.name, table.key_columns)).agg(
        *(F.expr(part.from_rows).alias(part.name) for part in _parts(table, measured))
    )


def merge(table: Table, partials: DataFrame) -> DataFrame:
    """One state per key (and window) out of many; the same columns as `partial`. Events: nothing to merge."""
    from pyspark.sql import functions as F

    if isinstance(table, Events):
        return partials
    if isinstance(table, Latest):
        return _newest(table, partials, from_rows=False)
    assert isinstance(table, Aggregate)
    types = dict(partials.dtypes)
    # a sum's state tells what its parts are; the other measures merge alike for every type
    measured = {name: types.get(f"{name}__sum", "") for name in table.measures}
    return partials.groupBy(*map(quote.name, table.key_columns)).agg(
        *(F.expr(part.merge).alias(part.name) for part in _parts(table, measured))
    )


def _parts(table: Aggregate, types: dict[str, str]) -> list[Part]:
    """All state columns in order; `types` says per measure what type it measures."""
    measured = [part for name, measure in table.measures.items() for part in measure.parts(name, types[name])]
    return [*measured, *COMPANIONS]


def _window_start(table: Aggregate) -> Column:
    from pyspark.sql import functions as F

    assert table.window is not None
    micros = f"unix_micros({quote.name(table.window.on)})"
    size = table.window.length // timedelta(microseconds=1)
    # integers, not window(): that one expands rows and hides the column from pushed filters
    return F.expr(f"timestamp_micros({micros} - pmod({micros}, {size}))")


def _ordered(table: Latest, stepped: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    deleted = (
        "false" if table.delete_when is None else f"coalesce({quote.expression(table.delete_when)}, false)"
    )
    order = {f"_order_{index}": F.col(quote.name(name)) for index, name in enumerate(table.order)}
    return stepped.withColumns({"_deleted": F.expr(deleted), **order})


def _newest(table: Latest, rows: DataFrame, *, from_rows: bool) -> DataFrame:
    from pyspark.sql import functions as F

    order = order_columns(table)
    # max of one struct: its head decides, and the head is unique because it ends in the coordinate
    winner = F.expr(f"max(struct({quote.names((*order, '_deleted', *table.values))}))").alias("_winner")
    companions = [F.expr(part.from_rows if from_rows else part.merge).alias(part.name) for part in COMPANIONS]
    newest = rows.groupBy(*map(quote.name, table.keys)).agg(winner, *companions)
    picked = [
        F.col("_winner").getField(name).alias(name) for name in ("_deleted", *order, *table.values)
    ]  # fmt: skip
    keys = [F.col(quote.name(key)) for key in table.keys]
    return newest.select(*keys, *picked, *(part.name for part in COMPANIONS))

"""Owns the text of a table's view: merge at read, in plain Spark SQL that every reader runs."""

from __future__ import annotations

from datetime import timedelta

from jobs import quote
from jobs.kinds.state import order_columns
from jobs.kinds.table import Aggregate, Events, Latest, Table


def view_sql(
    table: Table, relation_sql: str, watermark_sql: str, *, late_after: timedelta | None = None
) -> str:
    """SELECT text over `relation_sql` (what follows FROM): partial rows, or for Events the log's valid rows.

    `watermark_sql` is a scalar expression, the log's watermark. `final` is NULL where `late_after` (the topic
    contract's) is not given. Filters on keys and windows are pushed through to the relation's scan.
    """
    if isinstance(table, Events):
        return _events(table, relation_sql)
    if isinstance(table, Latest):
        return _latest(table, relation_sql)
    assert isinstance(table, Aggregate)
    return _aggregate(table, relation_sql, watermark_sql, late_after)


def _events(table: Events, relation: str) -> str:
    shown = [f"{quote.expression(sql)} AS {quote.name(name)}" for name, sql in table.columns.items()]
    where = f"\nWHERE {quote.expression(table.where)}" if table.where is not None else ""
    columns = ", ".join([*shown, quote.names(("_epoch", "_partition", "_offset", "_timestamp"))])
    return f"SELECT {columns}\nFROM {relation}{where}"


def _latest(table: Latest, relation: str) -> str:
    winner = quote.names((*order_columns(table), "_deleted", *table.values))
    values = ", ".join(f"`_winner`.{quote.name(name)} AS {quote.name(name)}" for name in table.values)
    keys = quote.names(table.keys)
    return (
        f"SELECT {keys}, {values}\n"
        f"FROM (SELECT {keys}, max(struct({winner})) AS `_winner` FROM {relation} GROUP BY {keys})\n"
        f"WHERE NOT `_winner`.`_deleted`"
    )


def _aggregate(table: Aggregate, relation: str, watermark: str, late_after: timedelta | None) -> str:
    keys = quote.names(table.key_columns)
    values = ",\n  ".join(
        f"{measure.value(name)} AS {quote.name(name)}" for name, measure in table.measures.items()
    )
    merged = f"SELECT {keys},\n  {values}\nFROM {relation}\nGROUP BY {keys}"
    if table.window is None:
        return merged
    end = f"`window_start` + {_interval(table.window.length)}"
    final = "CAST(NULL AS BOOLEAN)"
    if late_after is not None:
        final = (
            f"coalesce(`window_start` + {_interval(table.window.length + late_after)} <= {watermark}, false)"
        )
    measured = quote.names(tuple(table.measures))
    shown = ", ".join([*map(quote.name, table.keys), "`window_start`", f"{end} AS `window_end`", measured])
    return f"SELECT {shown},\n  {final} AS `final`\nFROM (\n{merged}\n)"


def _interval(length: timedelta) -> str:
    return f"INTERVAL '{length // timedelta(seconds=1)}' SECOND"

"""Aggregate: measures of all rows with equal keys, and in a window of time where there is one."""

from __future__ import annotations

from twinlake.witness.clocks import final, of_tables
from twinlake.witness.grouped import Measures
from twinlake.witness.question import UNITED
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import micros, timestamp
from twinlake.witness.types import BOOLEAN, TIMESTAMP, identifier
from twinlake.witness.windows import WINDOW, windowed

START, END, FINAL = "window_start", "window_end", "final"


def aggregate(asked: Asked) -> Result:
    definition, keys = asked.definition, tuple(asked.definition["keys"])
    rows = stepped(asked.database, asked.question, definition)
    is_exploded = any(one.get("explode") for one in definition.get(UNITED, [definition]))
    measures = Measures(definition["measures"], rows.types, is_exploded=is_exploded)
    columns = {name: Shown(rows.types[name]) for name in keys}
    window, (topic,) = definition.get("window"), definition["inputs"]
    if window is None:
        found = measures.sql(rows.relation, keys)
        source = Source(topic, f"SELECT * FROM {rows.relation}", keys)
        return Result(found, keys, columns | measures.shown, sources=(source,))
    held = windowed(asked.database, rows.relation, window, "_local_windows")
    relation = asked.database.view("_windowed", held.sql)
    found = measures.sql(relation, (*keys, *held.keys))
    clocks = of_tables(asked.question, definition, window["on"])
    is_final = final(held.end, 0, clocks, inclusive=False)
    sql = (
        f"SELECT *, {timestamp(identifier(WINDOW))} AS {START}, {timestamp(held.end)} AS {END},"
        f" {is_final} AS {FINAL} FROM ({found})"
    )
    if definition.get("retention") and clocks[0].at is not None:
        # a row is shown until the clock is so far past its end
        sql += f" WHERE {held.end} + {micros(definition['retention'])} > {clocks[0].at}"
    columns |= {START: Shown(TIMESTAMP), END: Shown(TIMESTAMP)}
    started = f"SELECT *, {timestamp(identifier(WINDOW))} AS {START} FROM {relation}"
    source = Source(topic, started, (*keys, START))
    return Result(sql, (*keys, START), columns | measures.shown, {FINAL: Shown(BOOLEAN)}, sources=(source,))


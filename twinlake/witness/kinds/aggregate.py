"""Aggregate: measures of all rows with equal keys, and in a window of time where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.witness.clocks import final, of_tables
from twinlake.witness.grouped import Measures
from twinlake.witness.question import UNITED
from twinlake.witness.refused import Refused
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import cell, micros, timestamp
from twinlake.witness.types import BOOLEAN, TIMESTAMP, identifier

START, END, FINAL = "window_start", "window_end", "final"
WINDOW = "_window"
"""A window's start in microseconds."""


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
    size = micros(window["size"])
    windowed = asked.database.view("_windowed", in_windows(rows.relation, window))
    found = measures.sql(windowed, (*keys, WINDOW))
    ends = f"{identifier(WINDOW)} + {size}"
    clocks = of_tables(asked.question, definition, window["on"])
    is_final = final(identifier(WINDOW), size, clocks, inclusive=False)
    sql = (
        f"SELECT *, {timestamp(identifier(WINDOW))} AS {START}, {timestamp(ends)} AS {END},"
        f" {is_final} AS {FINAL} FROM ({found})"
    )
    if definition.get("retention") and clocks[0].at is not None:
        # a row is shown until the clock is so far past its end
        sql += f" WHERE {ends} + {micros(definition['retention'])} > {clocks[0].at}"
    columns |= {START: Shown(TIMESTAMP), END: Shown(TIMESTAMP)}
    started = f"SELECT *, {timestamp(identifier(WINDOW))} AS {START} FROM {windowed}"
    source = Source(topic, started, (*keys, START))
    return Result(sql, (*keys, START), columns | measures.shown, {FINAL: Shown(BOOLEAN)}, sources=(source,))


def in_windows(relation: str, window: Mapping[str, Any]) -> str:
    """SELECT text: the rows that have a time, once for each window [start, start + size) that holds it."""
    at = f"epoch_us({identifier(window['on'])})"
    timed = f"SELECT *, {at} AS _at FROM {relation} WHERE {identifier(window['on'])} IS NOT NULL"
    size = micros(window["size"])
    if window["kind"] == "tumbling":
        return f"SELECT *, {cell('_at', size)} AS {WINDOW} FROM ({timed})"
    if window["kind"] != "hopping":
        raise Refused(f"window {window['kind']}", "the witness does not know this window")
    every = micros(window["every"])
    # the last window that begins at or before the time, and those before it that reach so far
    hops = f"(SELECT unnest(range(0, {size}, {every})) AS _before)"
    return f"SELECT * EXCLUDE (_before), {cell('_at', every)} - _before AS {WINDOW} FROM ({timed}), {hops}"

"""Owns which windows of time rows are in: [start, end) by their column of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinlake.witness.database import Database
from twinlake.witness.local_days import local_windows
from twinlake.witness.refused import Refused
from twinlake.witness.text import cell, micros
from twinlake.witness.types import identifier

WINDOW, UNTIL = "_window", "_window_end"
"""A window's start in microseconds, and where its length is not always the same its end."""


@dataclass(frozen=True)
class Windowed:
    """Rows that have a time, once for each window that holds it."""

    sql: str
    """SELECT text."""
    keys: tuple[str, ...]
    """The columns that say which window."""
    end: str
    """SQL over these of where it ends, in microseconds."""


def windowed(database: Database, relation: str, window: Mapping[str, Any], name: str) -> Windowed:
    """`name` is of a relation that may be made for it; Refused for what the witness does not know."""
    on = identifier(window["on"])
    timed = f"SELECT *, epoch_us({on}) AS _at FROM {relation} WHERE {on} IS NOT NULL"
    if window["kind"] not in ("tumbling", "hopping"):
        raise Refused(f"window {window['kind']}", "the witness does not know this window")
    if window.get("time_zone") is not None:
        first, last = database.one(f"SELECT min(_at), max(_at) FROM ({timed})")
        windows = local_windows(database, window, first or 0, last or 0, name)
        held = f"({timed}) AS r JOIN {windows} AS w ON r._at >= w._begin AND r._at < w._until"
        sql = f"SELECT r.*, w._begin AS {WINDOW}, w._until AS {UNTIL} FROM {held}"
        return Windowed(sql, (WINDOW, UNTIL), identifier(UNTIL))
    size = micros(window["size"])
    end = f"({identifier(WINDOW)} + {size})"
    if window["kind"] == "tumbling":
        return Windowed(f"SELECT *, {cell('_at', size)} AS {WINDOW} FROM ({timed})", (WINDOW,), end)
    every = micros(window["every"])
    # the last window that begins at or before the time, and those before it that reach so far
    hops = f"(SELECT unnest(range(0, {size}, {every})) AS _before)"
    start = f"{cell('_at', every)} - _before"
    rows = f"SELECT * EXCLUDE (_before), {start} AS {WINDOW} FROM ({timed}), {hops}"
    return Windowed(f"{rows} WHERE {start} + {size} > _at", (WINDOW,), end)

"""Trailing: each record with measures of those of its key from so long before it on, up to it."""

from __future__ import annotations

from twinlake.base.times import parse_duration
from twinlake.witness.clocks import final, of_tables
from twinlake.witness.grouped import Measures
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_ID, RECORD_NUMBER, cell, micros, names, timestamp
from twinlake.witness.types import BOOLEAN, TIMESTAMP, identifier

CELL, FINAL = "_cell", "final"
_AT, _TRAILED = "_at", "_trailed"


def trailing(asked: Asked) -> Result:
    definition, keys = asked.definition, names(asked.definition["keys"])
    rows = stepped(asked.database, asked.question, definition)
    on = identifier(definition["on"])
    timed = f"SELECT *, epoch_us({on}) AS {_AT} FROM {rows.relation} WHERE {on} IS NOT NULL"
    of_key = f"PARTITION BY {keys} ORDER BY {_AT}"
    # how many rows of the key come before a row, and how many of them before its windows
    counts = [f"row_number() OVER ({of_key}, {RECORD_NUMBER}) - 1 AS _rows_before"]
    for number, (last, _) in enumerate(definition["last"]):
        older = f"RANGE BETWEEN UNBOUNDED PRECEDING AND {micros(last) + 1} PRECEDING"
        counts.append(f"count(*) OVER ({of_key} {older}) AS _rows_older_{number}")
    numbered = asked.database.view(_TRAILED, f"SELECT *, {', '.join(counts)} FROM ({timed})")
    columns = {name: Shown(type_) for name, type_ in rows.types.items()}
    found, upto = f"SELECT * FROM {numbered}", "CURRENT ROW" if definition["with_itself"] else "1 PRECEDING"
    for number, (_, listed) in enumerate(definition["last"]):
        measures = Measures(listed, rows.types)
        frame = f"ROWS BETWEEN _rows_before - _rows_older_{number} PRECEDING AND {upto}"
        found = measures.framed(f"({found})", f"{of_key}, {RECORD_NUMBER} {frame}")
        columns |= measures.shown
    clocks = of_tables(asked.question, definition, definition["on"])
    sql = (
        f"SELECT *, {timestamp(cell(_AT, micros(parse_duration(definition['cell']))))} AS {CELL},"
        f" {final(_AT, 0, clocks, inclusive=True)} AS {FINAL} FROM ({found})"
    )
    (topic,) = definition["inputs"]
    source = Source(topic, f"SELECT * FROM {rows.source}", RECORD_ID)
    columns[CELL] = Shown(TIMESTAMP)
    return Result(sql, RECORD_ID, columns, {FINAL: Shown(BOOLEAN)}, sources=(source,))

"""Sessions: measures per stretch of a key's records that no pause longer than the gap interrupts."""

from __future__ import annotations

from twinlake.witness.clocks import final, of_tables
from twinlake.witness.grouped import Measures
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import micros, names, timestamp
from twinlake.witness.types import BOOLEAN, TIMESTAMP, identifier

START, END, FINAL = "session_start", "session_end", "final"
_SESSION, _LAST = "_session", "_last"


def sessions(asked: Asked) -> Result:
    definition, keys = asked.definition, tuple(asked.definition["keys"])
    rows = stepped(asked.database, asked.question, definition)
    measures = Measures(definition["measures"], rows.types)
    on, gap = identifier(definition["on"]), micros(definition["gap"])
    timed = f"SELECT *, epoch_us({on}) AS _at FROM {rows.relation} WHERE {on} IS NOT NULL"
    order = f"PARTITION BY {names(keys)} ORDER BY _at"
    begun = f"SELECT *, coalesce(_at - lag(_at) OVER ({order}) > {gap}, true) AS _begins FROM ({timed})"
    # all rows of one time belong together: the first of them may be any, and the others begin nothing
    started = f"max(CASE WHEN _begins THEN _at END) OVER ({order} RANGE UNBOUNDED PRECEDING)"
    of_session = asked.database.view("_in_sessions", f"SELECT *, {started} AS {_SESSION} FROM ({begun})")
    found = measures.sql(of_session, (*keys, _SESSION), {_LAST: "max(_at)"})
    clocks = of_tables(asked.question, definition, definition["on"])
    is_final = final(_LAST, gap, clocks, inclusive=True)
    sql = (
        f"SELECT *, {timestamp(_SESSION)} AS {START}, {timestamp(_LAST)} AS {END}, {is_final} AS {FINAL}"
        f" FROM ({found})"
    )
    columns = {name: Shown(rows.types[name]) for name in keys}
    columns |= {START: Shown(TIMESTAMP), END: Shown(TIMESTAMP)}
    # a session that is shown, and is none, begins where no session does
    (topic,) = definition["inputs"]
    source = Source(topic, f"SELECT * FROM {rows.relation}", (*keys, START), within=(definition["on"], END))
    return Result(sql, (*keys, START), columns | measures.shown, {FINAL: Shown(BOOLEAN)}, sources=(source,))

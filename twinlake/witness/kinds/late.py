"""Late: of each window the records that came late for it, or too late to be counted in it."""

from __future__ import annotations

from twinlake.witness.clocks import of_table
from twinlake.witness.kinds.aggregate import END, START
from twinlake.witness.log import DISCARDED
from twinlake.witness.refused import Refused
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_NUMBER, timestamp
from twinlake.witness.types import BIGINT, TIMESTAMP
from twinlake.witness.windows import WINDOW, windowed


def late(asked: Asked) -> Result:
    """A record counts once per window, in however many rows it was exploded into."""
    window = asked.definition.get("window")
    if window is None:
        raise Refused("what came late", "the table has no windows")
    rows = stepped(asked.database, asked.question, asked.definition, name="_came_late", late=True)
    clock = of_table(asked.question, asked.definition, window["on"])
    # by the log's own clocks nothing is late
    condition = "" if clock.time == "event_time" else f" WHERE {DISCARDED}"
    came = f"(SELECT * FROM {rows.relation}{condition})"
    held = windowed(asked.database, came, window, "_late_local_windows")
    which = ", ".join(held.keys)
    counted = f"SELECT DISTINCT {which}, {RECORD_NUMBER}, _timestamp, {DISCARDED} FROM ({held.sql})"
    sql = (
        f"SELECT {timestamp(WINDOW)} AS {START}, {timestamp(held.end)} AS {END},"
        f" count(*) FILTER (WHERE NOT {DISCARDED}) AS late, count(*) FILTER (WHERE {DISCARDED}) AS discarded,"
        f" min(_timestamp) AS first_arrived, max(_timestamp) AS last_arrived"
        f" FROM ({counted}) GROUP BY {which}"
    )
    times = dict.fromkeys((START, END, "first_arrived", "last_arrived"), Shown(TIMESTAMP))
    (topic,) = asked.definition["inputs"]
    source = Source(topic, f"SELECT *, {timestamp(WINDOW)} AS {START} FROM ({held.sql})", (START,))
    columns = times | dict.fromkeys(("late", "discarded"), Shown(BIGINT))
    return Result(sql, (START,), columns, sources=(source,))

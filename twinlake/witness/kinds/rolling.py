"""Rolling: an Aggregate's measures over lengths of time that end before the window of the watermark."""

from __future__ import annotations

from twinlake.witness.clocks import of_table
from twinlake.witness.grouped import Measures
from twinlake.witness.kinds.aggregate import END, START
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import cell, micros, timestamp
from twinlake.witness.types import STRING, TIMESTAMP, identifier, text_literal

LAST = "last"


def rolling(asked: Asked) -> Result:
    """Without a watermark there are no rows."""
    of = asked.question.reads[asked.definition["of"]].definition
    keys, window = tuple(of["keys"]), of["window"]
    # what Spark may have stepped are rows of the Aggregate's topic
    rows = stepped(asked.database, asked.question, of)
    measures = Measures(of["measures"], rows.types, is_exploded=bool(of.get("explode")))
    at = of_table(asked.question, of, window["on"]).at
    end = "CAST(NULL AS BIGINT)" if at is None else cell(f"CAST({at} AS BIGINT)", micros(window["size"]))
    parts, behind = [], []
    for length in asked.definition["last"]:
        start = f"{end} - {micros(length)}"
        time = f"epoch_us({identifier(window['on'])})"
        within = f"(SELECT * FROM {rows.relation} WHERE {time} >= {start} AND {time} < {end})"
        parts.append(
            f"SELECT *, {text_literal(length)} AS {LAST}, {timestamp(start)} AS {START},"
            f" {timestamp(end)} AS {END} FROM ({measures.sql(within, keys)})"
        )
        behind.append(f"SELECT *, {text_literal(length)} AS {LAST} FROM {within}")
    columns = {LAST: Shown(STRING), **{name: Shown(rows.types[name]) for name in keys}}
    bounds = {START: Shown(TIMESTAMP), END: Shown(TIMESTAMP)}
    (topic,) = of["inputs"]
    source = Source(topic, " UNION ALL ".join(behind), (LAST, *keys))
    found = " UNION ALL ".join(parts)
    return Result(found, (LAST, *keys), columns | measures.shown, bounds, sources=(source,))

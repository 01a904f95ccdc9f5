"""Rolling: an Aggregate's measures over lengths of time that end before the window of the watermark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from twinlake.witness.clocks import of_table
from twinlake.witness.grouped import Measures
from twinlake.witness.kinds.aggregate import END, START
from twinlake.witness.local_days import local_windows
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
    end, starts = _ranges(asked, window, at)
    parts, behind = [], []
    for length in asked.definition["last"]:
        start = starts[length]
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


def _ranges(asked: Asked, window: Mapping[str, Any], at: int | None) -> tuple[str, dict[str, str]]:
    """SQL of where the window of the watermark begins, and by length of where the windows of it do."""
    lengths = asked.definition["last"]
    if at is None:
        return "CAST(NULL AS BIGINT)", dict.fromkeys(lengths, "CAST(NULL AS BIGINT)")
    size = micros(window["size"])
    if window.get("time_zone") is None:
        end = cell(f"CAST({at} AS BIGINT)", size)
        return end, {length: f"{end} - {micros(length)}" for length in lengths}
    first = at - max(map(micros, lengths)) - size
    windows = local_windows(asked.database, window, first, at, "_local_windows")
    begins = [row[0] for row in asked.database.run(f"SELECT _begin FROM {windows} ORDER BY _begin")]
    number = bisect_right(begins, at) - 1
    return str(begins[number]), {length: str(begins[number - micros(length) // size]) for length in lengths}

"""TopRows: of each key the rows that come first by an order, each with its place."""

from __future__ import annotations

from twinlake.witness.question import UNITED
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_NUMBER, in_order, names
from twinlake.witness.types import INT

PLACE = "place"


def top_rows(asked: Asked) -> Result:
    definition = asked.definition
    keys, values = tuple(definition["keys"]), tuple(definition["values"])
    rows = stepped(asked.database, asked.question, definition)
    order, own = in_order(definition["order"], rows.types), in_order(values, rows.types)
    # records of two topics may have one record id
    ties = own if UNITED in definition else []
    greatest = ", ".join(f"{sql} DESC" for sql in (*order, RECORD_NUMBER, *ties))
    numbered = (
        f"SELECT *, CAST(row_number() OVER (PARTITION BY {names(keys)} ORDER BY {greatest}) AS INTEGER)"
        f" AS {PLACE} FROM {rows.relation}"
    )
    shown = names((*keys, PLACE, *values))
    sql = f"SELECT {shown} FROM ({numbered}) WHERE {PLACE} <= {int(definition['rows'])}"
    (topic,) = definition["inputs"]
    of_key = Source(topic, f"SELECT * FROM {rows.relation}", keys, newest_first=True)
    columns = {name: Shown(rows.types[name]) for name in (*keys, *values)}
    return Result(sql, (*keys, PLACE), {**columns, PLACE: Shown(INT)}, sources=(of_key,))

"""History: each version of a key's row, from the row that began it until the next one or a delete."""

from __future__ import annotations

from twinlake.witness.expressions import translate
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_NUMBER, in_order, names, timestamp
from twinlake.witness.types import BOOLEAN, TIMESTAMP, identifier

VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"
_AT, _ROW, _RUN, _FIRST, _BEGUN, _ENDED = "_at", "_row", "_run", "_first", "_begun", "_ended"


def history(asked: Asked) -> Result:
    definition = asked.definition
    keys, values, order = (tuple(definition[name]) for name in ("keys", "values", "order"))
    rows = stepped(asked.database, asked.question, definition)
    key = names(keys)
    at = f"epoch_us({identifier(order[0] if order else '_timestamp')})"
    if not order:  # in a partition the log's order holds, whatever Kafka's clock did
        at = f"max({at}) OVER (PARTITION BY {key}, _partition ORDER BY {RECORD_NUMBER})"
    row = f"struct_pack({', '.join(f'{identifier(name)} := {identifier(name)}' for name in values)})"
    if (condition := definition.get("delete_when")) is not None:
        row = f"CASE WHEN NOT coalesce({translate(condition, rows.types).sql}, false) THEN {row} END"
    further = in_order(order[1:], rows.types)
    parts = ", ".join(f"o{number} := {sql}" for number, sql in enumerate((*further, RECORD_NUMBER)))
    timed = (
        f"SELECT {key}, {at} AS {_AT}, {row} AS {_ROW}, struct_pack({parts}) AS _rank FROM {rows.relation}"
    )
    # of each time its last row, packed: arg_max passes over NULL, which a delete is
    at_once = (
        f"SELECT {key}, {_AT}, arg_max(struct_pack(it := {_ROW}), _rank).it AS {_ROW}"
        f" FROM ({timed}) WHERE {_AT} IS NOT NULL GROUP BY {key}, {_AT}"
    )
    over = f"(PARTITION BY {key} ORDER BY {_AT})"
    changes = f"SELECT *, {_ROW} IS DISTINCT FROM lag({_ROW}) OVER {over} AS _changes FROM ({at_once})"
    runs = f"SELECT *, count(*) FILTER (WHERE _changes) OVER {over} AS {_RUN} FROM ({changes})"
    begun = (
        f"SELECT {key}, min({_AT}) AS {_BEGUN}, arg_min(struct_pack(it := {_ROW}), {_AT}).it AS {_FIRST}"
        f" FROM ({runs}) GROUP BY {key}, {_RUN}"
    )
    ended = f"SELECT *, lead({_BEGUN}) OVER (PARTITION BY {key} ORDER BY {_BEGUN}) AS {_ENDED} FROM ({begun})"
    shown = ", ".join(f"{_FIRST}.{identifier(name)} AS {identifier(name)}" for name in values)
    sql = (
        f"SELECT {key}, {timestamp(_BEGUN)} AS {VALID_FROM}, {timestamp(_ENDED)} AS {VALID_TO},"
        f" {_ENDED} IS NULL AS {IS_CURRENT}, {shown} FROM ({ended}) WHERE {_FIRST} IS NOT NULL"
    )
    columns = {name: Shown(rows.types[name]) for name in (*keys, *values)}
    columns |= {VALID_FROM: Shown(TIMESTAMP), VALID_TO: Shown(TIMESTAMP), IS_CURRENT: Shown(BOOLEAN)}
    (topic,) = definition["inputs"]
    of_key = Source(topic, f"SELECT * FROM {rows.relation}", keys, newest_first=True)
    return Result(sql, (*keys, VALID_FROM), columns, sources=(of_key,))

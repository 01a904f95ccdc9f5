"""Latest: of each key the newest row, unless it is a delete, or older than a snapshot or a truncate."""

from __future__ import annotations

from twinlake.witness.expressions import translate
from twinlake.witness.kinds.barriers import Barriers
from twinlake.witness.question import UNITED
from twinlake.witness.refused import Refused
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_NUMBER, in_order, names
from twinlake.witness.types import identifier

DELETED, _NEWEST = "_deleted", "_newest"


def latest(asked: Asked) -> Result:
    definition, database = asked.definition, asked.database
    keys, values = tuple(definition["keys"]), tuple(definition["values"])
    barriers = Barriers.of(definition)
    if barriers and asked.question.stepped is not None:
        raise Refused("snapshot", "barriers are of the topic's rows, and Spark has written the columns alone")
    rows = stepped(database, asked.question, definition, barriers.columns)
    deleted = "false"
    if (condition := definition.get("delete_when")) is not None:
        deleted = f"coalesce({translate(condition, rows.types).sql}, false)"
    order, own = in_order(definition["order"], rows.types), in_order(values, rows.types)
    # records of two topics may have one record id
    ties = (deleted, *own) if UNITED in definition else ()
    parts = ", ".join(f"o{number} := {sql}" for number, sql in enumerate((*order, RECORD_NUMBER, *ties)))
    kept = (*values, *barriers.kept)
    packed = (f"{identifier(name)} := {identifier(name)}" for name in dict.fromkeys(kept))
    newest = ", ".join((f"{DELETED} := {deleted}", *packed))
    key = f"struct_pack({parts})" if order else RECORD_NUMBER
    source = f"{rows.relation}{barriers.without_truncates}"
    found = (
        f"SELECT {names(keys)}, arg_max(struct_pack({newest}), {key}) AS {_NEWEST} FROM {source}"
        f" GROUP BY {names(keys)}"
    )
    shown = ", ".join(
        (names(keys), *(f"{_NEWEST}.{identifier(name)} AS {identifier(name)}" for name in values))
    )
    hidden = barriers.hides(database, rows.source, rows.source_types, _NEWEST)
    sql = f"SELECT {shown} FROM ({found}) WHERE NOT {_NEWEST}.{DELETED} AND NOT {hidden}"
    (topic,) = definition["inputs"]
    of_key = Source(topic, f"SELECT * FROM {source}", keys, newest_first=True)
    columns = {name: Shown(rows.types[name]) for name in (*keys, *values)}
    return Result(sql, keys, columns, sources=(of_key,))

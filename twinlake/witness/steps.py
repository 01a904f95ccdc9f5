"""Owns the row-local steps of a definition: explode, then where, then columns, over a topic's records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.witness.database import Database, Types
from twinlake.witness.expressions import translate
from twinlake.witness.log import DISCARDED, RECORD, topic_rows
from twinlake.witness.question import UNITED, Question
from twinlake.witness.refused import Refused
from twinlake.witness.text import RECORD_NUMBER, names, record_number
from twinlake.witness.types import identifier

STEPPED = "_stepped"
_KEPT = tuple(name for name in RECORD if name != "_ingested_at")


@dataclass(frozen=True)
class Stepped:
    """The rows after all steps: the definition's columns, the record id and time, RECORD_NUMBER."""

    relation: str
    types: Types
    source: str
    """The topic's rows, of which these were made."""
    source_types: Types


def stepped(
    database: Database,
    question: Question,
    definition: Mapping[str, Any],
    beside: Mapping[str, str] = {},
    name: str = STEPPED,
    *,
    late: bool = False,
) -> Stepped:
    """Make the relation; `beside` are further columns, each an expression over the topic's rows. With `late`
    of records that came late, and with DISCARDED."""
    if question.stepped is not None and not late:
        return _by_spark(database, question, beside, name)
    if UNITED in definition:
        return _united(database, question, definition[UNITED], name)
    (topic,) = definition["inputs"]
    source = f"{name}_of"
    rows = topic_rows(database, source, question.topics[topic], late=late)
    types, relation = dict(rows), identifier(source)
    if explode := definition.get("explode"):
        array = translate(explode["array"], types)
        if array.type.name != "array":
            raise Refused(explode["array"], f"it is {array.type.spark}, not an array")
        element = identifier(explode["name"])
        relation = f"(SELECT *, unnest({array.sql}) AS {element} FROM {relation})"
        types[explode["name"]] = array.type.element
    made = {column: translate(sql, types) for column, sql in definition["columns"]}
    more = {column: translate(sql, types) for column, sql in beside.items()}
    shown = [f"{one.sql} AS {identifier(column)}" for column, one in (made | more).items()]
    more_of = f", {DISCARDED}" if late else ""
    where = definition.get("where")
    condition = f" WHERE {translate(where, types).sql}" if where is not None else ""
    found = database.view(
        name, f"SELECT {', '.join((*shown, *_KEPT))}, {RECORD_NUMBER}{more_of} FROM {relation}{condition}"
    )
    kept = {column: RECORD[column] for column in _KEPT}
    shown_types = {column: one.type for column, one in (made | more).items()}
    return Stepped(found, shown_types | kept, identifier(source), rows)


def _united(
    database: Database, question: Question, tables: Sequence[Mapping[str, Any]], name: str
) -> Stepped:
    """The rows of all, with the columns that each of them has."""
    each = [stepped(database, question, one, name=f"{name}_{n}") for n, one in enumerate(tables)]
    shared = [column for column in each[0].types if all(column in one.types for one in each)]
    for column in shared:
        if any(one.types[column] != each[0].types[column] for one in each):
            raise Refused(column, "it is of another type in another topic")
    selected = names((*shared, RECORD_NUMBER))
    rows = " UNION ALL ".join(f"SELECT {selected} FROM {one.relation}" for one in each)
    types = {column: each[0].types[column] for column in shared}
    return Stepped(database.view(name, rows), types, each[0].source, each[0].source_types)


def _by_spark(database: Database, question: Question, beside: Mapping[str, str], name: str) -> Stepped:
    assert question.stepped is not None
    rows, types = database.rows(f"{name}_by_spark", question.stepped)
    for column in beside:
        if column not in types:
            raise Refused(beside[column], "Spark has not computed it beside the columns")
    number = record_number("_epoch", "_partition", "_offset")
    found = database.view(name, f"SELECT *, {number} AS {RECORD_NUMBER} FROM {rows}")
    return Stepped(found, types, rows, types)

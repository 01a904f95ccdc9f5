"""Owns the two sides of a join, rows of tables of events as they show them or as their logs give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinlake.witness.clocks import Clock, final, of_table
from twinlake.witness.database import Types
from twinlake.witness.expressions import translate
from twinlake.witness.refused import Refused
from twinlake.witness.result import Asked, Result, Shown, Source
from twinlake.witness.steps import stepped
from twinlake.witness.text import RECORD_ID, RECORD_NUMBER, cell, micros, names, record_number, timestamp
from twinlake.witness.types import BIGINT, BOOLEAN, INT, TIMESTAMP, identifier, struct

CELL, HOME, FINAL = "_cell", "_home", "final"
AT, DELETED = "_at", "_deleted"
LEFT, RIGHT = "left", "right"
SIDES = {LEFT: "l", RIGHT: "r"}
KEYS = {side: tuple(f"_{side}{name}" for name in RECORD_ID) for side in SIDES}
_ROW, _HOME_CELL = "_row", "_home_cell"


@dataclass(frozen=True)
class Side:
    """`relation` has the keys, RECORD_NUMBER, DELETED, the time in microseconds and that of its own cell, and
    the whole row as a struct of the columns that expressions can name."""

    relation: str
    types: Types
    """Of the row's columns."""
    clock: Clock
    topic: str


def sides(asked: Asked, delete_when: str | None = None) -> dict[str, Side]:
    """Both; a join of a table with itself has two of one table. `delete_when` is of right rows."""
    return {LEFT: _side(asked, LEFT, None), RIGHT: _side(asked, RIGHT, delete_when)}


def _side(asked: Asked, side: str, delete_when: str | None) -> Side:
    name = asked.definition[side]
    read = asked.question.reads[name]
    store = read.definition.get("store")
    if store is None:
        raise Refused(f"table {name}", "it is not a table of events with a store")
    if read.shown is not None:
        rows, types = asked.database.rows(f"_{side}_shown", read.shown)
    else:
        own = stepped(asked.database, asked.question, read.definition, name=f"_{side}_events")
        rows, types = own.relation, own.types
    at = f"epoch_us({identifier(store['on'])})"
    # a row without a time lies in the cell of 1970
    home = f"coalesce({cell(at, micros(store['cell']))}, 0)"
    types = types | {CELL: TIMESTAMP, HOME: BOOLEAN}
    celled = f"(SELECT *, {home} AS {_HOME_CELL}, {timestamp(home)} AS {CELL}, true AS {HOME} FROM {rows})"
    whole = ", ".join(f"{identifier(column)} := {identifier(column)}" for column in types)
    deleted = "false" if delete_when is None else f"coalesce({translate(delete_when, types).sql}, false)"
    found = asked.database.view(
        f"_{side}",
        f"SELECT {names(asked.definition['on'])}, {record_number(*RECORD_ID)} AS {RECORD_NUMBER},"
        f" {at} AS {AT}, {_HOME_CELL}, struct_pack({whole}) AS {_ROW}, {deleted} AS {DELETED} FROM {celled}",
    )
    (topic,) = read.definition["inputs"]
    return Side(found, types, of_table(asked.question, read.definition, store["on"]), topic)


def same_on(on: Sequence[str]) -> str:
    """The condition that the keys of `l` and `r` are equal: NULL matches nothing."""
    return " AND ".join(f"l.{identifier(key)} = r.{identifier(key)}" for key in on)


def joined(asked: Asked, both: Mapping[str, Side], pairs: str, reach: Mapping[str, int]) -> Result:
    """What a join shows of pairs: SELECT text with the columns `l` and `r`, RECORD_NUMBERs of a left and a
    right row, NULL where one has no partner. `reach`: how long after a row of a side another one may join it.
    """
    definition = asked.definition
    on = tuple(definition["on"])
    rows = {side: struct(*both[side].types.items()) for side in SIDES}
    made = {name: translate(sql, rows) for name, sql in definition["columns"]}
    types = {name: both[LEFT].types[name] for name in on} | {name: one.type for name, one in made.items()}
    shown = [
        f'coalesce("{LEFT}".{identifier(key)}, "{RIGHT}".{identifier(key)}) AS {identifier(key)}'
        for key in on
    ]
    shown += [f"{one.sql} AS {identifier(name)}" for name, one in made.items()]
    finals, clocks = {}, list(dict.fromkeys(side.clock for side in both.values()))
    for side, row in SIDES.items():
        shown += [f'"{side}".{name} AS {key}' for name, key in zip(RECORD_ID, KEYS[side], strict=True)]
        types |= dict(zip(KEYS[side], (INT, INT, BIGINT), strict=True))
        finals[side] = final(f"{row}{AT}", reach[side], clocks, inclusive=True)
    shown.append(f"{timestamp(f'coalesce(l{_HOME_CELL}, r{_HOME_CELL})')} AS {CELL}")
    shown.append(f'CASE WHEN "{LEFT}" IS NOT NULL THEN {finals[LEFT]} ELSE {finals[RIGHT]} END AS {FINAL}')
    kept = ", ".join(
        f'{row}.{_ROW} AS "{side}", {row}.{AT} AS {row}{AT}, {row}.{_HOME_CELL} AS {row}{_HOME_CELL}'
        for side, row in SIDES.items()
    )
    met = " ".join(
        f"LEFT JOIN {both[side].relation} AS {row} ON p.{row} = {row}.{RECORD_NUMBER}"
        for side, row in SIDES.items()
    )
    columns = {name: Shown(type_) for name, type_ in (types | {CELL: TIMESTAMP}).items()}
    sql = f"SELECT {', '.join(shown)} FROM (SELECT {kept} FROM ({pairs}) AS p {met})"
    sources = tuple(_source(side, both[side]) for side in SIDES)
    return Result(sql, (*KEYS[LEFT], *KEYS[RIGHT]), columns, {FINAL: Shown(BOOLEAN)}, sources=sources)


def _source(side: str, of: Side) -> Source:
    """A pair's key names its two records."""
    ids = ", ".join(
        f"{_ROW}.{name} AS {name}, {_ROW}.{name} AS {key}"
        for name, key in zip(RECORD_ID, KEYS[side], strict=True)
    )
    return Source(of.topic, f"SELECT {ids} FROM {of.relation}", KEYS[side])

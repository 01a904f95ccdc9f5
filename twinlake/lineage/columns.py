"""Owns which columns of a definition's inputs each column of its view is made of, by the definition alone.

No engine is asked, and no record is read. An expression is made of the columns that it names; one that is not
understood, of every column that stands in its text as a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.lineage import lineage as traced

from twinlake.kinds import sessions
from twinlake.kinds.kind import Kind
from twinlake.kinds.late import FINAL
from twinlake.kinds.store import CELL
from twinlake.kinds.windows import END, START
from twinlake.topics import record_id
from twinlake.witness.names import used
from twinlake.witness.refused import Refused
from twinlake.witness.rules.parser import parse


class Source(NamedTuple):
    """A column of a topic's rows or of a table's view."""

    owner: str
    column: str


Sources = tuple[Source, ...]
Columns = Mapping[str, Iterable[str]]
"""By topic or table, the names of the columns that a definition may read of it."""


class Made(NamedTuple):
    """What a view is made of."""

    columns: Mapping[str, Sources]
    """By column of the view."""
    rows: Sources
    """What decides which rows there are, and into which they go: conditions, keys of joins, orders."""


def made_of(table: Kind, inputs: Columns) -> Made:
    """The sources of each column of a sound, bound definition's view; `inputs` has the columns of every topic
    in its `inputs` and of every table in its `reads`. A kind of a package is made of all that it reads."""
    maker = _KINDS.get(table.kind, _of_all)
    found = maker(table, {name: list(columns) for name, columns in inputs.items()})
    return Made({name: _once(found.columns.get(name, ())) for name in table.output}, _once(found.rows))


def _of_steps(table: Any, inputs: Columns) -> tuple[Mapping[str, Sources], Sources]:
    """What each column of the row-local steps is made of, and what decides which rows there are."""
    (topic,) = table.inputs
    known: dict[str, Sources] = {name: (Source(topic, name),) for name in inputs[topic]}
    explode = getattr(table, "explode", None)
    elements = () if explode is None else tuple(_named(explode.array, known))
    if explode is not None:
        known[explode.name] = elements
    kept = () if table.where is None else tuple(_named(table.where, known))
    return {name: tuple(_named(sql, known)) for name, sql in table.columns.items()}, (*elements, *kept)


def _of_aggregate(table: Any, inputs: Columns) -> Made:
    steps, rows = _of_steps(table, inputs)
    on = getattr(table, "on", None) or (table.window.on if table.window else None)
    time = steps[on] if on else ()
    times = (START, END, sessions.START, sessions.END, FINAL)
    found = {name: steps[name] for name in table.keys} | dict.fromkeys(times, time)
    for name, measure in table.measures.items():
        found[name] = tuple(one for column in measure.columns for one in steps[column])
    return Made(found, (*rows, *(one for name in table.keys for one in steps[name]), *time))


def _of_trailing(table: Any, inputs: Columns) -> Made:
    steps, rows = _of_steps(table, inputs)
    (topic,) = table.inputs
    time, keys = steps[table.on], tuple(one for name in table.keys for one in steps[name])
    found = {name: (Source(topic, name),) for name in record_id.NAMES} | dict(steps)
    for measures in table.last.values():
        for name, measure in measures.items():
            found[name] = tuple(one for column in measure.columns for one in steps[column])
    return Made(found | {CELL: time, FINAL: time}, (*rows, *keys, *time))


def _of_latest(table: Any, inputs: Columns) -> Made:
    steps, rows = _of_steps(table, inputs)
    deciding = (*table.keys, *table.order)
    deleted = () if table.delete_when is None else tuple(_named(table.delete_when, steps))
    return Made(steps, (*rows, *(one for name in deciding for one in steps[name]), *deleted))


def _of_events(table: Any, inputs: Columns) -> Made:
    steps, rows = _of_steps(table, inputs)
    (topic,) = table.inputs
    return Made({name: (Source(topic, name),) for name in table.implied} | dict(steps), rows)


def _of_join(table: Any, inputs: Columns) -> Made:
    sides = {"left": table.left, "right": table.right}
    known = {
        f"{side}.{name}".lower(): (Source(owner, name),)
        for side, owner in sides.items()
        for name in inputs[owner]
    }
    keys = {name: tuple(Source(owner, name) for owner in sides.values()) for name in table.on}
    found = {name: tuple(_named(sql, known)) for name, sql in table.columns.items()}
    for side, owner in sides.items():
        found |= {f"_{side}{name}": (Source(owner, name),) for name in record_id.KEY}
    times = tuple(Source(owner, table.table(owner).kept.on) for owner in sides.values())
    deciding = (*(one for sources in keys.values() for one in sources), *times)
    return Made(keys | found | {CELL: times[:1], FINAL: times}, deciding)


def _of_rolling(table: Any, inputs: Columns) -> Made:
    columns = set(inputs[table.of])
    found = {name: (Source(table.of, name if name in columns else END),) for name in table.output}
    return Made(found, (Source(table.of, END),))


def _of_query(table: Any, inputs: Columns) -> Made:
    known: dict[str, Sources] = {}
    for owner, columns in inputs.items():
        for name in columns:
            known[name.lower()] = (*known.get(name.lower(), ()), Source(owner, name))
    try:
        tree = parse(table.sql)
        found = {name: tuple(_leaves(name, tree, inputs)) for name in table.output}
    except Exception:  # of what sqlglot cannot follow it says so in many ways
        words = tuple(_words(table.sql, known))
        return Made(dict.fromkeys(table.output, words), words)
    deciding = (exp.Where, exp.Having, exp.Group, exp.Join, exp.Order, exp.Qualify)
    using = (one for join in tree.find_all(exp.Join) for one in join.args.get("using") or ())
    named = (one for node in tree.find_all(*deciding) for one in node.find_all(exp.Column))
    rows = [one for each in (*named, *using) for one in known.get(each.name.lower(), ())]
    if tree.find(exp.Distinct):  # of the columns themselves
        rows += [one for sources in found.values() for one in sources]
    return Made(found, tuple(rows))


def _of_all(table: Kind, inputs: Columns) -> Made:
    everything = tuple(Source(owner, name) for owner, columns in inputs.items() for name in columns)
    return Made(dict.fromkeys(table.output, everything), everything)


_KINDS = {
    "aggregate": _of_aggregate, "sessions": _of_aggregate, "trailing": _of_trailing, "latest": _of_latest,
    "events": _of_events,
    "interval_join": _of_join, "as_of_join": _of_join, "rolling": _of_rolling, "derived": _of_query,
}  # fmt: skip


def _leaves(column: str, tree: exp.Expression, inputs: Columns) -> Iterator[Source]:
    """The columns of tables at which a column of a SELECT ends, through all that it names itself."""
    owners = {name.lower(): name for name in inputs}
    schema = {name: dict.fromkeys(columns, "unknown") for name, columns in inputs.items()}
    for node in traced(column, tree.copy(), schema=schema, dialect="spark").walk():
        if node.downstream or not isinstance(node.source, exp.Table):
            continue
        if owner := owners.get(node.source.name.lower()):
            small = node.name.rpartition(".")[2].strip("`\"").lower()  # names lose their capitals on the way
            yield from (Source(owner, one) for one in inputs[owner] if one.lower() == small)


def _named(sql: str, known: Mapping[str, Sources]) -> Iterator[Source]:
    """What an expression over columns of these names, which may have a side before them, is made of."""
    small = {name.lower(): sources for name, sources in known.items()}
    try:
        parts = used(parse(sql)).columns
    except Refused:
        yield from _words(sql, known)
        return
    for first, *fields in parts:
        qualified = ".".join((first, *fields[:1])).lower()
        yield from small.get(qualified, small.get(first.lower(), ()))


def _words(sql: str, known: Mapping[str, Sources]) -> Iterator[Source]:
    for name, sources in known.items():
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE):
            yield from sources


def _once(sources: Iterable[Source]) -> Sources:
    return tuple(dict.fromkeys(sources))

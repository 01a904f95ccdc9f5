"""Starting: a first definition of each kind over a topic or table, for a person to go on from.

What it counts, adds up and groups by is a guess from names and types; that it is sound is not. A kind that
reads tables gets those that it needs of a topic beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.base.times import format_duration
from twinlake.kinds import guess
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import KINDS
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.dependencies import unknown
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.guess import Rows, free_name
from twinlake.kinds.history import History
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind, grid_of
from twinlake.kinds.latest import Latest, mirror
from twinlake.kinds.making import Making, common, joined, sides
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.selecting import matched, selected
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.union import Union
from twinlake.kinds.windows import Tumbling
from twinlake.topics.spark_type import Struct, parse
from twinlake.topics.topic import Topic

NEAR = "5 minutes"
"""How far apart the rows are that an interval join begins with."""


def starting(
    kind: str, name: str, sources: Sequence[str], topics: Mapping[str, Topic], tables: Iterable[Kind]
) -> tuple[Kind, ...]:
    """The definitions that a file of the table needs, the asked one last, each bound to what it reads.

    UsageError for sources of which the kind cannot be made; `tables` are those that there are.
    """
    known = _bound(tables)
    made = _MAKERS[named(kind)](Making(name=name, sources=sources, topics=topics, tables=known))
    around = {**known, **{one.name: one for one in made}}
    for one in made:
        for wrong in unknown(one, around):
            raise UsageError(
                f"no {named(kind)} can be made of {', '.join(sources)}", wrong.why_text, wrong.remedy
            )
    bound = _bound(around.values())
    return tuple(bound[one.name] for one in made)


def sources_needed(kind: str) -> tuple[int, int]:
    """Of how many topics or tables a table of the kind can be made: (least, most)."""
    return _SOURCES.get(named(kind), (1, 1))


def named(kind: str) -> str:
    """The kind as its JSON has it: `IntervalJoin` and `interval-join` are `interval_join`. UsageError for one
    that nobody can begin with."""
    wanted = re.sub(r"[-_]", "", kind).lower()
    for name in _MAKERS:
        if name.replace("_", "") == wanted:
            return name
    there = f"{kind} is a kind that a package brings: see its docs" if kind in KINDS else "there is none"
    raise UsageError(f"no table of kind {kind!r} can be begun", there, f"known: {', '.join(_MAKERS)}")


def _bound(tables: Iterable[Kind]) -> dict[str, Kind]:
    """Those whose tables are all there and fit, each with their definitions; what is wrong, `check` says."""
    found: dict[str, Kind] = {}
    left = list(tables)
    while ready := [one for one in left if all(read in found for read in one.reads)]:
        found |= {one.name: one.bound(found) for one in ready if not any(one.unfit(found))}
        left = [one for one in left if one not in ready]
    return found


def _aggregate(making: Making, window: str | None = "1 minute", name: str = "") -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    key, number = guess.group(rows), guess.amount(rows)
    columns = rows.only(key, number, rows.time if window else None)
    if key is None and window is None:
        key, columns = "everything", {"everything": "'all'", **columns}
    return (
        Aggregate(
            name=name or making.name, inputs=(rows.topic,), columns=columns,
            keys=(key,) if key else (),
            window=Tumbling(on=rows.time, size=window) if window else None,
            measures=_measures(rows, (key, number), {number: Sum(number)} if number else {}),
        ),
    )  # fmt: skip


def _events(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    return (Events(name=making.name, inputs=(rows.topic,), columns=dict(rows.columns)),)


def _keyed(rows: Rows) -> tuple[tuple[str, ...], dict[str, str]]:
    """By what rows belong together, and all columns; of a topic that says nothing of it, all of them do."""
    keys = rows.keys or tuple(filter(None, [guess.entity(rows) or guess.group(rows) or rows.unique]))
    return (keys, dict(rows.columns)) if keys else (("everything",), {"everything": "'all'", **rows.columns})


def _top_rows(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    keys, columns = _keyed(rows)
    return (
        TopRows(
            name=making.name, inputs=(rows.topic,), columns=columns, keys=keys, order=(rows.time,), rows=10,
            values=tuple(one for one in columns if one not in keys),
        ),
    )  # fmt: skip


def _latest(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    if rows.change_data:
        return (_mirrored(making.name, rows),)
    keys, columns = _keyed(rows)
    return (
        Latest(
            name=making.name, inputs=(rows.topic,), columns=columns, keys=keys, order=(rows.time,),
            values=tuple(one for one in columns if one not in keys),
        ),
    )  # fmt: skip


def _history(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    if rows.change_data:
        now = _mirrored(making.name, rows)
        return (
            History(
                name=making.name, inputs=now.inputs, where="op <> 't'", columns=now.columns, keys=now.keys,
                values=now.values, delete_when=now.delete_when,
            ),
        )  # fmt: skip
    keys, columns = _keyed(rows)
    # with its time or its own id among them every row would be another version
    values = [one for one in columns if one not in (*keys, rows.time, rows.unique)] or [rows.time]
    shown = (*keys, *values, rows.time)
    return (
        History(
            name=making.name, inputs=(rows.topic,), keys=keys, order=(rows.time,), values=tuple(values),
            columns={name: sql for name, sql in columns.items() if name in shown},
        ),
    )  # fmt: skip


def _mirrored(name: str, rows: Rows) -> Latest:
    """The rows of a database's table, by the first column as its key."""
    inside = parse(rows.types["after"])
    fields = [field for field, _ in inside.fields] if isinstance(inside, Struct) else []
    key = "id" if "id" in fields else fields[0]
    values = [one for one in fields if one != key] or [key]
    return Latest(
        name=name, inputs=(rows.topic,), **mirror(rows.change_data or "", keys=(key,), values=values)
    )


def _sessions(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    key = guess.entity(rows) or guess.group(rows)
    columns = rows.only(key, rows.time)
    if key is None:
        key, columns = "everything", {"everything": "'all'", **columns}
    return (
        Sessions(
            name=making.name, inputs=(rows.topic,), columns=columns, keys=(key,), on=rows.time,
            gap="30 minutes", measures=_measures(rows, (key,), {}),
        ),
    )  # fmt: skip


def _trailing(making: Making) -> tuple[Kind, ...]:
    rows = making.rows(making.sources[0])
    key, columns = guess.entity(rows) or guess.group(rows), dict(rows.columns)
    if key is None:
        key, columns = "everything", {"everything": "'all'", **columns}
    number = guess.amount(rows)
    (count,) = lately = _measures(rows, columns, {})
    total = {free_name(f"total_{number}", columns, "total"): Sum(number)} if number else {}
    in_1_hour: dict[str, Measure] = {free_name(f"{count}_in_1_hour", columns, count): Count()}
    return (
        Trailing(
            name=making.name, inputs=(rows.topic,), columns=columns, keys=(key,), on=rows.time,
            last={"5 minutes": {**lately, **total}, "1 hour": in_1_hour},
        ),
    )  # fmt: skip


def _interval_join(making: Making) -> tuple[Kind, ...]:
    left, right, beside, on = sides(making, NEAR)
    store = right.kept
    reach = format_duration(store.reach_ahead) if store and store.reach_ahead else "0 seconds"
    join = IntervalJoin(
        name=making.name, left=left.name, right=right.name, on=on, before=reach,
        columns=joined(left, right, on),
    )  # fmt: skip
    return (*beside, join)


def _as_of_join(making: Making) -> tuple[Kind, ...]:
    left, right, beside, on = sides(making, "0 seconds")
    join = AsOfJoin(
        name=making.name, left=left.name, right=right.name, on=on, columns=joined(left, right, on)
    )
    return (*beside, join)


def _rolling(making: Making) -> tuple[Kind, ...]:
    source = making.sources[0]
    table = making.table(source)
    if table is None or (table.unwindowed("last") is None and source in making.topics):
        (of,) = _aggregate(making, name=f"{making.name}_minutes")
        return (of, Rolling(name=making.name, of=of.name, last=("5 minutes", "1 hour")))
    grid = grid_of(table)
    lengths = tuple(format_duration(grid.size * times) for times in (5, 60)) if grid else ("5 minutes",)
    return (Rolling(name=making.name, of=source, last=lengths),)


def _union(making: Making) -> tuple[Kind, ...]:
    tables = [making.table(source) for source in making.sources]
    if not any(tables):
        return _counted_together(making, [making.rows(source) for source in making.sources])
    if topics := [source for source, table in zip(making.sources, tables, strict=True) if table is None]:
        raise UsageError(
            f"{making.name} cannot be made of {', '.join(making.sources)}",
            f"it shows tables as one, and {', '.join(topics)} is a topic", "make a table of it first",
        )  # fmt: skip
    return (Union(name=making.name, of=tuple(making.sources)),)


def _counted_together(making: Making, topics: Sequence[Rows]) -> tuple[Kind, ...]:
    """The records of two topics per minute, by a column that both have."""
    key = common(making, [None] * len(topics), topics)
    at, count = ("at" if key != "at" else "time", "records" if key != "records" else "number_of_records")
    counts = tuple(
        Aggregate(
            name=f"{making.name}_{rows.topic}", inputs=(rows.topic,), keys=(key,),
            columns={key: rows.columns[key], at: rows.columns[rows.time]},
            window=Tumbling(on=at, size="1 minute"), measures={count: Count()},
        )
        for rows in topics
    )  # fmt: skip
    return (*counts, Union(name=making.name, of=tuple(one.name for one in counts)))


def _derived(making: Making) -> tuple[Kind, ...]:
    tables = [making.table(source) for source in making.sources]
    there = [one for one in tables if one is not None]
    if len(there) < len(tables):
        if len(tables) > 1:
            topics = [one for one in making.sources if one not in making.tables]
            raise UsageError(
                f"{making.name} cannot be made of {', '.join(making.sources)}",
                f"it reads tables, and {', '.join(topics)} is a topic", "make a table of it first",
            )  # fmt: skip
        return _top_ten(making)
    return (selected(making.name, there[0]) if len(there) == 1 else matched(making.name, *there),)


def _top_ten(making: Making) -> tuple[Kind, ...]:
    """The most frequent keys of a topic."""
    (counts,) = _aggregate(making, None, f"{making.name}_counts")
    key, measure = counts.output[0], counts.output[1]
    sql = f"""
        SELECT {quote.names((key, measure, "place"))}
        FROM (
          SELECT {quote.names((key, measure))},
            row_number() OVER (ORDER BY {quote.name(measure)} DESC, {quote.name(key)}) AS place
          FROM {counts.name}
        )
        WHERE place <= 10
    """
    derived = Derived(
        name=making.name, reads=(counts.name,), columns=(key, measure, "place"), keys=(key,), by=(), sql=sql
    )
    return (counts, derived)


def _measures(rows: Rows, taken: Iterable[str | None], more: Mapping[str, Measure]) -> dict[str, Measure]:
    """How many records there are, by the topic's name, and more."""
    used = {one.lower() for one in taken if one}
    names = (re.sub("__+", "_", rows.topic), "records", "number_of_records")
    count = next(one for one in names if one.lower() not in {*used, *guess.VIEWS_OWN})
    return {count: Count(), **more}


_SOURCES = {IntervalJoin.kind: (2, 2), AsOfJoin.kind: (2, 2), Derived.kind: (1, 2), Union.kind: (2, 2)}
"""Those that are not of one."""
_MAKERS: Mapping[str, Callable[[Making], tuple[Kind, ...]]] = {
    Aggregate.kind: _aggregate,
    Events.kind: _events,
    Latest.kind: _latest,
    TopRows.kind: _top_rows,
    History.kind: _history,
    Trailing.kind: _trailing,
    Sessions.kind: _sessions,
    IntervalJoin.kind: _interval_join,
    AsOfJoin.kind: _as_of_join,
    Rolling.kind: _rolling,
    Union.kind: _union,
    Derived.kind: _derived,
}

"""Writing: the SQL statement that a definition is. What is written is read back before it is given out.

An expression stays as its author wrote it, but for white space and comments around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from twinlake.base import quote
from twinlake.base.errors import DefinitionError, UsageError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.measure import MEASURED
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.sql_form import fields, functions, header
from twinlake.kinds.sql_form.reading import ALL_KEYS, SAID_BY_SQL, definition
from twinlake.kinds.sql_form.text import named
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.windows import Hopping, Tumbling

KINDS = tuple(kind.kind for kind in SAID_BY_SQL)
"""Those with a form in SQL."""
_FOUND = "columns"
"""The key that is left out where a query's own columns say the same."""
LINE = 88
"""What is longer is written on several lines."""
_INDENT = "  "
_EXPRESSIONS = ("where", "delete_when", "truncate_when")


def statement(table: Kind, about: str = "", in_order: bool = True) -> str:
    """The text of a file that defines it; UsageError where SQL has no form for it, or for a part of it.

    Of a table that is not there yet the columns need not be `in_order`, which may be shorter.
    """
    kind = type(table)
    if kind not in SAID_BY_SQL:
        raise UsageError(
            f"table {table.name} has no form in SQL", f"it is of kind {table.kind}",
            f"kinds with one: {', '.join(KINDS)}; write it in Python",
        )  # fmt: skip
    wanted = plain(table)
    said = fields.written(wanted, fields.keys(kind, SAID_BY_SQL[kind]))
    shorter = {key: value for key, value in said.items() if value and key != _FOUND}
    why = "something of it is not said in SQL"
    for text in _statements(wanted):
        for top in (shorter, said):
            written = f"{header.text(about, top, ALL_KEYS)}{text}\n"
            try:
                found = definition(written, table.name)
            except UsageError as error:
                why = error.why_text if isinstance(error, DefinitionError) else error.what
                continue
            if as_json(found, in_order) == as_json(wanted, in_order):
                return written
    raise UsageError(f"table {table.name} cannot be written in SQL", why, "keep it in Python, or simplify it")


def plain(table: Kind) -> Kind:
    """The same without white space and comments around its expressions; of a whole query without those before
    and after it, and without the indentation that all of its lines have."""
    one = cast("Any", table)
    if isinstance(table, Derived):
        return replace(table, sql=_dedented(_bare(table.sql)))
    changed: dict[str, Any] = {"columns": {name: _bare(sql) for name, sql in one.columns.items()}}
    changed |= {at: _bare(sql) for at in _EXPRESSIONS if (sql := getattr(one, at, None)) is not None}
    if getattr(one, "explode", None):
        changed["explode"] = replace(one.explode, array=_bare(one.explode.array))
    return cast("Kind", replace(one, **changed))


def as_json(table: Kind, in_order: bool = True) -> str:
    """Two definitions are the same where this is: the order of columns counts, and 1 is not 1.0."""
    data = table.to_json()
    return json.dumps(data if in_order else {**data, "columns": sorted(data["columns"])})


def _bare(sql: str) -> str:
    tokens = _tokens(sql)
    return sql[tokens[0].start : tokens[-1].end + 1] if tokens else sql


def _dedented(sql: str) -> str:
    first, *more = sql.split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in more if line.strip()]
    text = "\n".join([first, *(line[min(indents, default=0) :] for line in more)])
    same = [one.text for one in _tokens(text)] == [one.text for one in _tokens(sql)]
    return text if same else sql  # a text of several lines has its own white space


def _tokens(sql: str) -> Sequence[Any]:
    try:
        return list(Spark().tokenize(sql))
    except SqlglotError:
        return ()


def _statements(table: Kind) -> Iterator[str]:
    """The short form first: what it names are the columns, if they come in the same order then."""
    if isinstance(table, Derived):
        yield table.sql
    elif isinstance(table, Events):
        yield _select(_items(table.columns), _source(table))
    else:
        columns = cast("Any", table).columns
        written = _grouped if isinstance(table, Aggregate | Sessions) else _numbered
        yield written(table, columns, _source(table))
        inner = _select(_items(columns), _source(table, _INDENT), _INDENT)
        yield written(table, {name: named(name) for name in columns}, f"FROM (\n{inner}\n)")


def _select(items: Sequence[str], rest: str, indent: str = "") -> str:
    """On one line where that is short; no line of an expression is moved."""
    short = f"{indent}SELECT {', '.join(items)}"
    if len(short) > LINE or "\n" in short:
        break_ = f"\n{indent}{_INDENT}"
        short = f"{indent}SELECT{break_}{f',{break_}'.join(items)}"
    return f"{short}\n{indent}{rest}"


def _items(columns: Mapping[str, str]) -> list[str]:
    return [_item(name, sql) for name, sql in columns.items()]


def _item(name: str, sql: str) -> str:
    return sql if sql in (named(name), quote.name(name)) else f"{sql} AS {named(name)}"


def _source(table: Kind, indent: str = "") -> str:
    one = cast("Any", table)
    lines = [f"FROM {named(one.inputs[0])}"]
    if explode := getattr(one, "explode", None):
        lines.append(f"LATERAL VIEW explode({explode.array}) AS {named(explode.name)}")
    if one.where is not None:
        lines.append(f"WHERE {one.where}")
    return f"\n{indent}".join(lines)


def _grouped(table: Any, columns: Mapping[str, str], source: str) -> str:
    keys = [_item(name, columns[name]) for name in table.keys]
    measures = []
    for name, measure in table.measures.items():
        taken = {
            column: columns[column] if at == "of" and column == name else named(column)
            for at in MEASURED
            if (column := getattr(measure, at, None)) is not None
        }
        call = functions.written(measure, taken)
        if call is None:
            why = f"no function is the measure {name} ({measure.kind})"
            raise UsageError(f"table {table.name} has no form in SQL", why, "write it in Python")
        measures.append(f"{call} AS {named(name)}")
    group = [*map(named, table.keys), *_window(table)]
    by = f"\nGROUP BY {', '.join(group)}" if group else ""
    return f"{_select([*keys, *measures], source)}{by}"


def _window(table: Any) -> Iterator[str]:
    if isinstance(table, Sessions):
        yield f"session({named(table.on)}, {quote.string(table.gap)})"
    elif isinstance(table.window, Tumbling | Hopping):
        one = table.window
        texts = [one.size, *([one.every] if isinstance(one, Hopping) else []), one.time_zone]
        said = ", ".join(quote.string(text) for text in texts if text is not None)
        yield f"{'hop' if isinstance(one, Hopping) else 'tumble'}({named(one.on)}, {said})"


def _numbered(table: Any, columns: Mapping[str, str], source: str) -> str:
    items = [_item(name, columns[name]) for name in (*table.keys, *table.values)]
    order = ", ".join(f"{named(name)} DESC" for name in table.order)
    within = f"PARTITION BY {', '.join(map(named, table.keys))}{f' ORDER BY {order}' if order else ''}"
    rows = f"<= {table.rows}" if isinstance(table, TopRows) else "= 1"
    return f"{_select(items, source)}\nQUALIFY row_number() OVER ({within}) {rows}"

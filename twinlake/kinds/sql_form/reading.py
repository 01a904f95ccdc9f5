"""Reading: the definition that one SQL statement is. Which kind it is of, the statement itself says.

- `-- reads: a, b` on top: Derived, and the statement is its SELECT as it stands
- measures, or GROUP BY: Aggregate; with `session(...)` among what is grouped by: Sessions
- QUALIFY row_number() OVER (PARTITION BY ...) = 1: Latest; `<= 10`: TopRows
- anything else: Events

The columns of the row-local steps are those of a SELECT in brackets after FROM. Without one they are what the
statement names, in the order in which it is read: what is selected, then what it is grouped or numbered by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import Token

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.definition import Place
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.sql_form import clauses, fields, functions, header
from twinlake.kinds.sql_form.clauses import Select
from twinlake.kinds.sql_form.columns import Columns, listed, refuse_rows_of_others
from twinlake.kinds.sql_form.grouped import grouped
from twinlake.kinds.sql_form.numbered import numbered
from twinlake.kinds.sql_form.text import Span, SqlText, place
from twinlake.kinds.steps import Explode
from twinlake.kinds.top_rows import TopRows

_STEPS = ("name", "inputs", "where", "columns")
SAID_BY_SQL: Mapping[type[Any], tuple[str, ...]] = {
    Aggregate: (*_STEPS, "explode", "keys", "window", "measures"),
    Sessions: (*_STEPS, "keys", "on", "gap", "measures"),
    Latest: (*_STEPS, "keys", "order", "values"),
    TopRows: (*_STEPS, "keys", "order", "rows", "values"),
    Events: _STEPS,
    Derived: ("name", "inputs", "sql"),
}
"""The kinds that have a form in SQL, with the fields that the statement says; the others stand on top."""
ALL_KEYS = {name for kind, said in SAID_BY_SQL.items() for name in fields.keys(kind, said)}


def read(file: Path) -> Kind:
    """The definition in a file, which is called as the file; DefinitionError with line and column."""
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        source = SqlText(text="", table=file.stem, file=str(file))
        raise source.wrong(0, "it is not UTF-8", "save it as UTF-8") from error
    return definition(text, file.stem, str(file))


def definition(text: str, name: str, file: str = "") -> Kind:
    """The definition of this name that the text is."""
    source = SqlText(text=text, table=name, file=file)
    top = header.read(text)
    for one in top.nearly:
        if one.key in ALL_KEYS:
            why = "this is no key, and reads like one"
            raise source.wrong(one.key_at, why, f"write `-- {one.key}: value`")
    tokens = clauses.statement(source)
    common: dict[str, Any] = {"name": name, "place": Place(file=file, line=place(text, tokens[0].start)[0])}
    if any(one.key == "reads" for one in top.said):
        return _derived(source, top, tokens, common)
    kind, said = _said(source, clauses.select(source, tokens))
    known = fields.keys(kind, SAID_BY_SQL[kind])
    on_top = fields.made(kind, fields.read(source, top.said, known, f"a table of kind {kind.kind}"))
    found: Kind = kind(**common, **said, **on_top)
    return found


def _said(source: SqlText, outer: Select) -> tuple[type[Any], dict[str, Any]]:
    """The kind, and the fields that the statement says."""
    inner = outer.rows if isinstance(outer.rows, Select) else None
    rows = inner or outer
    if isinstance(rows.rows, Select):
        why = "a SELECT within two others has no kind"
        raise source.wrong(rows.rows.start, why, "put the inner two together")
    for one in (*outer.spans, *rows.spans):
        refuse_rows_of_others(one)
    if inner:
        _refuse_misplaced(outer, inner)
    columns = listed(source, inner.items) if inner else Columns({}, listed=False)
    kind: type[Any]
    if outer.group or any(functions.is_one(one.expression) for one in outer.items):
        kind, more = grouped(outer, columns)
    elif outer.qualify:
        kind, more = numbered(outer, outer.qualify, columns)
    elif inner:
        raise source.wrong(inner.start, "a SELECT in brackets has no kind here", "put both SELECTs together")
    else:
        kind, more, columns = Events, {}, listed(source, outer.items)
    if rows.explode:
        name, array = rows.explode
        if "explode" not in SAID_BY_SQL[kind]:
            raise array.wrong(f"a table of kind {kind.kind} has no LATERAL VIEW", "GROUP BY, and count(*)")
        more["explode"] = Explode(name=name, array=array.text)
    where = rows.where.text if rows.where else None
    return kind, {"inputs": (rows.rows.text,), "where": where, "columns": columns.by_name, **more}


def _refuse_misplaced(outer: Select, inner: Select) -> None:
    """DefinitionError for a clause that belongs to the other SELECT."""
    for one in (outer.where, outer.explode[1] if outer.explode else None):
        if one:
            raise one.wrong("it stands after a SELECT in brackets", "write it in that SELECT")
    for one in (*inner.group[:1], inner.qualify):
        if one:
            raise one.wrong("it stands in a SELECT in brackets", "write it after the brackets")


def _derived(source: SqlText, top: header.Header, tokens: Sequence[Token], common: Mapping[str, Any]) -> Kind:
    known = fields.keys(Derived, SAID_BY_SQL[Derived])
    said = fields.read(source, top.said, known, "a table of kind derived")
    reads = next(one for one in top.said if one.key == "reads")
    if not said["reads"]:
        remedy = "name those after FROM and JOIN, with commas"
        raise source.wrong(reads.key_at, "reads names no table", remedy)
    if "keys" not in said:
        raise source.wrong(reads.key_at, "it has no keys", "write `-- keys: ...`: what identifies a row")
    if "columns" not in said:
        said["columns"] = tuple(_shown(source, tokens))
    return Derived(**common, **{"by": (), **said}, sql=Span(source, tokens).text)


def _shown(source: SqlText, tokens: Sequence[Token]) -> Iterator[str]:
    items = tuple(clauses.shown(source, tokens))
    if not items:
        raise source.wrong(tokens[0], "its columns are not clear", "name them on top: `-- columns: a, b`")
    for one in items:
        name = one.name or one.expression.last_name
        if name is None:
            remedy = "write AS name after it, or name all columns on top: `-- columns: a, b`"
            raise source.wrong(one.start, f"{one.expression.text} has no name", remedy)
        yield name

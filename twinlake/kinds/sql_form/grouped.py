"""Grouped: what a statement with measures says, of an Aggregate or of Sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.definition import Definition
from twinlake.kinds.measures.measure import MEASURED, Measure
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.sql_form import functions
from twinlake.kinds.sql_form.clauses import Item, Select
from twinlake.kinds.sql_form.columns import Columns, name_of, selected
from twinlake.kinds.sql_form.text import STRINGS, Span, is_word
from twinlake.kinds.windows import Hopping, Tumbling

_WINDOWS = {
    "tumble": ("tumble(column, '1 minute')", 2, True),
    "hop": ("hop(column, '10 minutes', '1 minute')", 3, True),
    "session": ("session(column, '30 minutes')", 2, False),
}
"""By its function, how a window is written, how many arguments it needs, whether a time zone may follow."""
_OTHERS = {
    "window": "tumble(column, size), or hop(column, size, every)",
    "session_window": "session(column, gap)",
    "tumbling": "tumble(column, size)",
    "hopping": "hop(column, size, every)",
    "date_trunc": "tumble(column, size)",
}
_SHOWN = ("window_start", "window_end", "session_start", "session_end", "final")
_SETS = ("ALL", "ROLLUP", "CUBE", "GROUPING SETS", "WITH")


def grouped(outer: Select, columns: Columns) -> tuple[type[Definition], dict[str, Any]]:
    """The kind, and the fields that the statement says beside its row-local steps."""
    if outer.qualify:
        raise outer.qualify.wrong("QUALIFY beside measures has no kind", "number them in a Derived table")
    windows = [one for one in outer.group if (call := one.call()) and call[0] in _WINDOWS]
    by = [one for one in outer.group if one not in windows]
    for one in by:
        if any(is_word(token, *_SETS) for token in one.tokens) or one.text.isdecimal():
            raise one.wrong(f"GROUP BY {one.text} has no kind", "name the columns that are selected")
    keys, measures = list[str](), dict[str, Measure]()
    for item in outer.items:
        if functions.is_one(item.expression):
            if (name := name_of(item)) in measures:
                raise item.expression.wrong(f"two measures are called {name}", "rename one: AS name")
            measures[name] = _measure(item.expression, name, columns)
        elif why := next(_no_key(item.expression, item, by, bool(measures)), None):
            raise item.expression.wrong(*why)
        else:
            keys.append(columns.select(item))
    for one in by:
        _refuse_unselected(one, outer.items)
    said: dict[str, Any] = {"keys": tuple(keys), "measures": measures}
    if not keys and not windows:
        remedy = "GROUP BY a column or tumble(...); for one row, SELECT 'all' AS everything, and by that"
        raise outer.items[0].expression.wrong("it is grouped by nothing", remedy)
    if len(windows) > 1:
        raise windows[1].wrong("a table has one window", "write another table for the other")
    kind, window = _window(windows[0], columns) if windows else (Aggregate, {})
    return kind, {**said, **window}


def _no_key(one: Span, item: Item, by: Sequence[Span], has_measures: bool) -> Iterator[tuple[str, str]]:
    """Why what is selected, and is no measure, is no key either, and what to do."""
    if any(each.name == item.name is not None or each.same_as(one) for each in by):
        if has_measures:
            yield f"{one.text} follows a measure", "select the keys first, as the table shows them"
    elif item.name in _SHOWN or ((call := one.call()) and call[0] in _WINDOWS):
        yield f"{one.text} is the window's, which the table shows by itself", "leave it out"
    elif token := functions.within(one):
        why = f"{token.text}(...) is a part of another expression"
        yield why, "a measure is one function: compute with measures in a Derived table"
    elif (remedy := functions.instead(one)) is not None:
        yield f"{one.tokens[0].text}(...) is no measure", remedy
    else:
        measures = ", ".join(functions.NAMES)
        yield f"{one.text} is neither grouped by nor a measure", f"group by it, or take one of {measures}"


def _refuse_unselected(one: Span, items: Sequence[Item]) -> None:
    """DefinitionError for what is grouped by and not selected."""
    call = one.call()
    if selected(one, items) is not None:
        return
    if call and call[0] in _OTHERS:
        raise one.wrong(f"{call[0]}(...) is no window here", f"write {_OTHERS[call[0]]}")
    why = f"it is grouped by {one.text}, which is not selected"
    raise one.wrong(why, "select it too: a table shows its keys")


def _measure(one: Span, name: str, columns: Columns) -> Measure:
    function, args = functions.arguments(one)
    taken = {
        index: columns.take(args[index], name if at == "of" else None)
        for index, at in enumerate(function.takes[: len(args)])
        if at in MEASURED
    }
    return functions.measure(function, args, taken)


def _window(one: Span, columns: Columns) -> tuple[type[Definition], dict[str, Any]]:
    """The kind that has it, and the fields that it says."""
    call = one.call()
    assert call is not None, "what is a window is a call"
    function, args = call
    form, needed, has_zone = _WINDOWS[function]
    if not needed <= len(args) <= needed + has_zone:
        more = "; a time zone may follow" if has_zone else ""
        raise one.wrong(f"no window is written like this {function}(...)", f"write {form}{more}")
    on, texts = columns.take(args[0]), [_string(each) for each in args[1:]]
    if function == "session":
        return Sessions, {"on": on, "gap": texts[0]}
    zone = texts[needed - 1] if len(texts) == needed else None
    if function == "tumble":
        return Aggregate, {"window": Tumbling(on=on, size=texts[0], time_zone=zone)}
    return Aggregate, {"window": Hopping(on=on, size=texts[0], every=texts[1], time_zone=zone)}


def _string(one: Span) -> str:
    if len(one.tokens) != 1 or one.tokens[0].token_type not in STRINGS:
        raise one.wrong(f"{one.text} is not a text", "write it in quotes, like '1 minute'")
    return str(one.tokens[0].text)

"""Numbered: what a statement with QUALIFY row_number() says, of Latest or of TopRows."""

from __future__ import annotations

from typing import Any

from twinlake.kinds.definition import Definition
from twinlake.kinds.latest import Latest
from twinlake.kinds.sql_form.clauses import Item, Select
from twinlake.kinds.sql_form.columns import NEWEST, Columns, refuse_measures, selected
from twinlake.kinds.sql_form.text import Span, closing, is_word, split
from twinlake.kinds.top_rows import TopRows

_BEGINS = ["row_number", "(", ")", "over", "("]


def numbered(
    outer: Select, qualify: Span, columns: Columns
) -> tuple[type[Definition], dict[str, Any]]:  # fmt: skip
    """The kind, and the fields that the statement says beside its row-local steps."""
    tokens = qualify.tokens
    ends = closing(tokens, 4) if [one.text.lower() for one in tokens[:5]] == _BEGINS else len(tokens)
    rest = [one.text for one in tokens[ends + 1 :]]
    is_first = rest == ["=", "1"]
    if not is_first and not (len(rest) == 2 and rest[0] == "<=" and rest[1].isdecimal()):
        raise qualify.wrong("this QUALIFY has no kind", f"{NEWEST}, or <= 10 for the first ten of each key")
    refuse_measures(outer.items, "leave it out, or GROUP BY the others")
    names = [columns.select(item) for item in outer.items]
    by, order = _within(Span(qualify.source, tokens[4 : ends + 1]))
    keys = tuple(_column(one, outer.items, columns) for one in by)
    if names[: len(keys)] != list(keys):
        why = f"the table shows {', '.join(keys)} first, and this SELECT does not"
        raise outer.items[0].expression.wrong(why, "select first what follows PARTITION BY, in its order")
    said: dict[str, Any] = {
        "keys": keys,
        "order": tuple(_column(_ordered(one), outer.items, columns) for one in order),
        "values": tuple(names[len(keys) :]),
    }
    return (Latest, said) if is_first else (TopRows, {**said, "rows": int(rest[1])})


def _within(brackets: Span) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """What stands after PARTITION BY, and after ORDER BY."""
    tokens = brackets.tokens[1:-1]
    if not tokens or not is_word(tokens[0], "PARTITION BY"):
        raise brackets.wrong("it is not said of which key", NEWEST)
    at = next((index for index, one in enumerate(tokens) if is_word(one, "ORDER BY")), None)
    parts = (tokens[1:at], () if at is None else tokens[at + 1 :])
    if not parts[0] or (at is not None and not parts[1]):
        raise brackets.wrong("nothing follows PARTITION BY, or ORDER BY", NEWEST)
    by, order = (tuple(split(brackets.source, part)) if part else () for part in parts)
    return by, order


def _column(one: Span, items: tuple[Item, ...], columns: Columns) -> str:
    """A column that rows are numbered by: a selected one, or one more."""
    return selected(one, items) or columns.take(one)


def _ordered(one: Span) -> Span:
    """What rows are ordered by, the greatest first and NULL last."""
    tokens = one.tokens
    if len(tokens) > 2 and is_word(tokens[-2], "NULLS"):
        if not is_word(tokens[-1], "LAST"):
            raise one.wrong("NULL comes after every value", "write NULLS LAST, or leave it out")
        tokens = tokens[:-2]
    if len(tokens) < 2 or not is_word(tokens[-1], "DESC"):
        raise one.wrong(
            "the first row is that with the greatest value",
            "write DESC after it; for the smallest, order by a column that is its negative",
        )
    return Span(one.source, tokens[:-1])

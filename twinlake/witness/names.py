"""Owns which names an expression or a SELECT uses, for whoever knows which there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

_UNITS = {
    "microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week", "month", "quarter",
    "year",
}  # fmt: skip
_OF_UNITS = {"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"}
"""Functions whose first operand may be a unit, which looks like a column."""


@dataclass(frozen=True)
class Used:
    """What a tree names: functions and the first parts of columns as they are written, tables that it does
    not make itself, and the names that it gives, in small letters."""

    functions: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    tables: tuple[str, ...]
    own: frozenset[str]
    makes_names: bool
    """Whether it may have columns whose names it does not say: of VALUES, of what makes rows, of a PIVOT."""
    starred: frozenset[str]
    """What stands before a `.*`."""


def used(tree: exp.Expression) -> Used:
    """Each name once, in the order of the text as far as the tree has it."""
    units = {
        id(node.expressions[0])
        for node in tree.find_all(exp.Anonymous)
        if str(node.this).lower() in _OF_UNITS and node.expressions
    }
    columns = (
        tuple(part.name for part in node.parts)
        for node in tree.find_all(exp.Column)
        if not isinstance(node.this, exp.Star) and not (id(node) in units and node.name.lower() in _UNITS)
        and node.find_ancestor(exp.Hint) is None
    )
    read = (one.name for one in tree.find_all(exp.Table) if one.name and not one.db)
    made = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    return Used(
        functions=tuple(dict.fromkeys(_functions(tree))),
        columns=tuple(dict.fromkeys(columns)),
        tables=tuple(name for name in dict.fromkeys(read) if name.lower() not in made),
        own=frozenset(_given(tree)),
        makes_names=next(tree.find_all(exp.Lateral, exp.Values, exp.Pivot, exp.Unnest), None) is not None
        or any(isinstance(one.this, exp.Anonymous) for one in tree.find_all(exp.Table)),
        starred=frozenset(
            one.table.lower() for one in tree.find_all(exp.Column) if isinstance(one.this, exp.Star)
        ),
    )


def shown_columns(tree: exp.Expression) -> tuple[str, ...] | None:
    """The names of a SELECT's columns; None where not all of them are written there."""
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    names = tuple(
        one.alias_or_name if isinstance(one, exp.Alias | exp.Column) else "" for one in tree.expressions
    )
    return names if names and all(names) and "*" not in names else None


def texts(tree: exp.Expression) -> Iterator[str]:
    """The texts that are written out in it."""
    return (str(node.this) for node in tree.find_all(exp.Literal) if node.is_string)


def casts_what_is_written(tree: exp.Expression) -> bool:
    """Whether something is cast that no column is in, and that is more than one text or number: its value is
    nowhere to be read."""
    return any(
        node.this is not None
        and not isinstance(node.this, (exp.Literal, exp.Null, exp.Boolean))
        and node.this.find(exp.Column) is None
        for node in tree.find_all(exp.Cast, exp.TryCast)
    )


def _functions(tree: exp.Expression) -> Iterator[str]:
    for node in tree.find_all(exp.Anonymous):
        if isinstance(node.parent, (exp.Table, exp.Lateral)):
            continue  # of rows, which Spark lists elsewhere
        if node.find_ancestor(exp.Hint):
            continue
        qualified = isinstance(node.parent, exp.Dot) and node.parent.expression is node
        yield f"{node.parent.this.name}.{node.this}" if qualified and node.parent else str(node.this)


def _given(tree: exp.Expression) -> Iterator[str]:
    for node in tree.find_all(exp.Alias, exp.TableAlias, exp.CTE, exp.Lambda, exp.Subquery):
        if name := node.alias:
            yield name.lower()
        if isinstance(node, exp.TableAlias):
            yield from (one.name.lower() for one in node.args.get("columns") or ())
            yield node.name.lower()
        if isinstance(node, exp.Lambda):
            yield from (one.name.lower() for one in node.expressions)

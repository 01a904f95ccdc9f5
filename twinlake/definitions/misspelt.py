"""Owns the names in a definition's SQL that nobody has: said at once, without Spark, with the near one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from twinlake.base.errors import near
from twinlake.kinds import functions
from twinlake.witness.names import Used, used

_BY_GRAMMAR = {"timestampadd", "timestampdiff", "cast", "try_cast", "identifier"}
"""What looks like a call, and is none of a function that Spark lists: its grammar has them."""


@dataclass(frozen=True)
class Wrong:
    """A word of an expression, and what is wrong with it for sure."""

    word: str
    why: str


def in_expression(tree: exp.Expression, names: Iterable[str]) -> Iterator[Wrong]:
    """Of an expression over columns, or relations, of these names: what Spark would not resolve either."""
    found, known = used(tree), list(names)
    yield from _functions(found, local=True)
    yield from _columns(found, known, {one.lower() for one in known})


def in_query(tree: exp.Expression, tables: Mapping[str, Collection[str]]) -> Iterator[Wrong]:
    """Of a SELECT over these tables, with their columns: the names that are nowhere among them."""
    found = used(tree)
    yield from _functions(found, local=False)
    for name in found.tables:
        if name.lower() not in (one.lower() for one in tables):
            yield Wrong(name, f"it reads {name}, which is not one of its reads{near(name, tables)}")
    columns = {column: None for listed in tables.values() for column in listed}
    small = {one.lower() for one in columns}
    makers = (name for name in found.functions if functions.makes_names(name.lower()))
    if found.makes_names or any(makers) or found.starred & small:
        return  # it may have other columns than those that are written
    anywhere = {"grouping__id", *(one.lower() for one in tables)} | small | found.own
    yield from _columns(found, list(columns), anywhere)


def _functions(found: Used, *, local: bool) -> Iterator[Wrong]:
    known = functions.known()
    for name in found.functions:
        small = name.lower()
        if small in _BY_GRAMMAR:
            continue
        why = functions.foreign(small)
        if why is None and small not in known:
            meant = near(small, known)
            why = f"{name}() is not a built-in function of Spark{meant or ': it would not exist everywhere'}"
        if why is None and local:
            why = functions.not_local(small, known[small])
        if why is not None:
            yield Wrong(name, why)


def _columns(found: Used, known: list[str], anywhere: Collection[str]) -> Iterator[Wrong]:
    for parts in found.columns:
        small = parts[0].lower()
        if small in anywhere or small in found.own:
            continue
        if len(parts) == 1 and (why := functions.foreign(small)):
            yield Wrong(parts[0], why)
        else:
            yield Wrong(parts[0], f"there is no column {parts[0]}{near(parts[0], known)}")

"""Dependencies: which tables a definition reads, in an order in which each comes after those it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from twinlake.kinds.definition import NOT_STORED, Definition
from twinlake.kinds.kind import Kind

if TYPE_CHECKING:
    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.kind import Kind


def ordered(tables: Iterable[Kind]) -> list[Kind]:
    """The definitions, each bound to those it reads and after them; the others keep their order.

    DefinitionError for a table that is not among them, and for a cycle with its path.
    """
    given = {table.name: table for table in tables}
    for table in given.values():
        for error in unknown(table, given):
            raise error
    sorter = TopologicalSorter({name: table.reads for name, table in given.items()})
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        path = error.args[1][::-1]  # graphlib names each before the one that reads it
        first = min(path)  # wherever it was entered, one cycle has one error
        turned = [*path[path.index(first) : -1], *path[: path.index(first)], first]
        why = f"it reads itself: {' -> '.join(turned)}"
        raise given[first].error_at_text(turned[1], why, "leave out one of these reads") from error
    bound: dict[str, Kind] = {}
    for name in order:
        table = given[name]
        bound[name] = table.bound({read: bound[read] for read in table.reads})
    return list(bound.values())


def unknown(table: Kind, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
    """An error for each table that it reads and that is not there; else for each that it cannot read."""
    missing = [name for name in table.reads if name not in tables]
    for name in missing:
        known = ", ".join(sorted(tables.keys() - {table.name})) or "no other table"
        yield table.error_at_text(name, f"it reads table {name!r}, which is not defined", f"known: {known}")
    if not missing:
        yield from table.unfit(tables)


def upstream_tables(table: Kind, tables: Mapping[str, Kind]) -> tuple[str, ...]:
    """Every table that it reads, and those that these read, each after one that reads it."""
    found: dict[str, None] = {}
    for name in table.reads:
        found |= dict.fromkeys((name, *upstream_tables(tables[name], tables)))
    return tuple(found)


def upstream_topics(table: Kind, tables: Mapping[str, Kind]) -> tuple[str, ...]:
    """Every topic that decides what the table shows: its own, and those of the tables that it reads."""
    read = (tables[name] for name in upstream_tables(table, tables))
    return tuple(dict.fromkeys(topic for one in (table, *read) for topic in one.inputs))


D = TypeVar("D", bound="OverTables")


@dataclass(frozen=True, kw_only=True)
class OverTables(Definition):
    """A view kind over states; how they look is known from the definitions in `tables`, once it is bound."""

    reads_states = True
    inputs: tuple[str, ...] = ()
    """Stays empty: it reads tables, not topics."""
    tables: dict[str, Definition] = field(
        default_factory=dict, compare=False, repr=False, metadata=NOT_STORED
    )
    """By name, those of `reads`; of the release, and so no part of the definition."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs:
            raise self.error(f"it reads tables, not topics: {', '.join(self.inputs)}", "leave out `inputs`")

    def bound(self: D, tables: Mapping[str, Any]) -> D:
        """The same, with the definitions of the tables that it reads."""
        return replace(self, tables={name: tables[name] for name in self.reads if name in tables})

    def table(self, name: str) -> Kind:
        """The definition of one of those that it reads."""
        return cast("Kind", self.tables[name])

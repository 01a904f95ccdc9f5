"""Owns what a first definition is made of: topics, tables, and the two sides of what joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinlake.base.errors import UsageError
from twinlake.kinds import guess
from twinlake.kinds.events import Events
from twinlake.kinds.guess import Rows, free_name, rows_of, sql_name
from twinlake.kinds.kind import Kind
from twinlake.kinds.store import Store
from twinlake.topics.topic import Topic

CELL = "1 hour"


@dataclass(frozen=True, kw_only=True)
class Making:
    """What is asked for, and what there is to make it of."""

    name: str
    sources: Sequence[str]
    topics: Mapping[str, Topic]
    tables: Mapping[str, Kind]

    def rows(self, source: str) -> Rows:
        """A topic's; UsageError for what is none."""
        if source in self.topics:
            return rows_of(self.topics[source])
        what = "is a table, and this kind reads a topic" if source in self.tables else "is not there"
        raise UsageError(
            f"{self.name} cannot be made of {source}", f"{source} {what}",
            f"name a topic: {', '.join(self.topics) or 'make one with `twinlake new topic`'}",
        )  # fmt: skip

    def table(self, source: str) -> Kind | None:
        """A table; None for a topic, UsageError for what is neither."""
        if source in self.tables:
            return self.tables[source]
        if source not in self.topics:
            known = ", ".join(dict.fromkeys((*self.topics, *self.tables)))
            raise UsageError(
                f"{self.name} cannot be made of {source}", "there is no topic and no table of this name",
                f"known: {known or 'none; make a topic with `twinlake new topic`'}",
            )  # fmt: skip
        return None


def sides(making: Making, ahead: str) -> tuple[Kind, Kind, tuple[Kind, ...], tuple[str, ...]]:
    """Both sides of a join, those of them that are to be made beside it, and what they are joined on."""
    there = [_kept_table(making, source) for source in making.sources]
    rows = [
        None if table else rows_of(making.topics[source])
        for table, source in zip(there, making.sources, strict=True)
    ]
    key = common(making, there, rows)
    made: dict[str, Kind] = {}
    sides: list[Kind] = []
    for table, side in zip(there, rows, strict=True):
        if side is not None:
            store = Store(keys=(key,), on=side.time, cell=CELL, ahead=ahead)
            kept = Events(
                name=f"kept_{side.topic}", inputs=(side.topic,), columns=dict(side.columns), store=store
            )
            table = made.setdefault(kept.name, kept)
        assert table is not None
        sides.append(table)
    return sides[0], sides[1], tuple(made.values()), (key,)


def _kept_table(making: Making, source: str) -> Kind | None:
    """The table in which joins find the rows of the source, where there is one."""
    table = making.table(source)
    if table is not None and (table.kept is not None or source not in making.topics):
        return table  # one that keeps nothing is refused with the reason
    kept = making.tables.get(f"kept_{source}")
    if kept is not None and kept.kept is None:
        raise UsageError(
            f"{making.name} cannot be made of {source}", f"its table {kept.name} keeps no rows for joins",
            f"give {kept.name} a store, or name a table that has one",
        )  # fmt: skip
    return kept


def common(making: Making, tables: Sequence[Kind | None], rows: Sequence[Rows | None]) -> str:
    """A column that both sides have, to join them on."""
    choices: list[list[str]] = []
    for table, side in zip(tables, rows, strict=True):
        if side is None:
            choices.append(list(table.kept.keys) if table is not None and table.kept else [])
        else:
            fit = [one for one in side.columns if guess.can_be_key(side, one)]
            choices.append(sorted(fit, key=lambda one: (one not in side.keys, not guess.is_id(one))))
    for one in choices[0]:
        types = {side.types[one] for side in rows if side is not None and one in side.types}
        if one in choices[1] and len(types) <= 1:
            return one
    listed = "; ".join(
        f"{source}: {', '.join(found) or 'none'}"
        for source, found in zip(making.sources, choices, strict=True)
    )
    raise UsageError(
        f"{' and '.join(making.sources)} cannot be joined",
        f"they have no column of one name and type: {listed}",
        "write kept tables in which it has one name, then name these (docs/kinds.md)",
    )  # fmt: skip


def joined(left: Kind, right: Kind, on: Sequence[str]) -> dict[str, str]:
    sides = {
        side: [one for one in table.output if not one.startswith("_") and one not in on]
        for side, table in (("left", left), ("right", right))
    }
    found: dict[str, str] = {}
    for side, names in sides.items():
        other = [*on, *sides["right" if side == "left" else "left"], "final"]
        for one in names:
            clashes = one.lower() in (name.lower() for name in other)
            found[free_name(f"{side}_{one}" if clashes else one, found, side)] = f"{side}.{sql_name(one)}"
    return found

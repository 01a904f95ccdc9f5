"""Owns the measures of groups of rows: one statement that has, of each group, its keys and the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinlake.witness.measured import Items, Measured, Spec
from twinlake.witness.measures import measured
from twinlake.witness.refused import Refused
from twinlake.witness.result import Shown, part_of
from twinlake.witness.text import names, same_keys
from twinlake.witness.types import Type, identifier


class Measures:
    """Those of one table."""

    def __init__(
        self, listed: Sequence[Sequence[Any]], types: Mapping[str, Type], *, is_exploded: bool = False
    ) -> None:
        self._measured: dict[str, Measured] = {
            name: measured(Spec(name, data, types, is_exploded)) for name, data in listed
        }

    @property
    def shown(self) -> dict[str, Shown]:
        return {name: Shown(one.type, one.rule) for name, one in self._measured.items()}

    def sql(self, relation: str, keys: Sequence[str], beside: Mapping[str, str] = {}) -> str:
        """SELECT text with the keys, `beside` (aggregates by column), the values, and what their rules name;
        a row for each group of rows with equal keys, NULL among them. Without keys all rows are one."""
        shifted = {
            column: f"{value} - {least} OVER ({f'PARTITION BY {names(keys)}' if keys else ''})"
            for one in self._measured.values()
            for column, (value, least) in one.shifted.items()
        }
        moved = "".join(f", {sql} AS {column}" for column, sql in shifted.items())
        aggregates = {identifier(name): sql for name, sql in beside.items()}
        for one in self._measured.values():
            aggregates |= one.parts
        made = ", ".join((*map(identifier, keys), *(f"{sql} AS {name}" for name, sql in aggregates.items())))
        # no row is a group of none, without keys too
        group = f" GROUP BY {names(keys)}" if keys else " HAVING count(*) > 0"
        rows = "rows" if shifted else relation
        steps = [f"rows AS (SELECT *{moved} FROM {relation})"] if shifted else []
        steps.append(f"main AS (SELECT {made or 'true AS _is'} FROM {rows}{group})")
        joins = []
        for name, one in self._measured.items():
            if one.items is not None:
                table = identifier(part_of(name, "listed"))
                steps.append(f"{table} AS ({_listed(name, one.items, relation, keys)})")
                joins.append(f" LEFT JOIN {table} ON {same_keys(keys, 'main', table)}")
        columns = [f"main.{identifier(name)}" for name in (*keys, *beside)]
        for name, one in self._measured.items():
            columns.append(f"{one.value} AS {identifier(name)}")
            columns += [f"{sql} AS {column}" for column, sql in one.beside.items()]
        # parts and what is beside a value may have one name: the parts are read by all of them first
        return f"WITH {', '.join(steps)} SELECT {', '.join(columns)} FROM main{''.join(joins)}"

    def framed(self, relation: str, frame: str) -> str:
        """SELECT text with the columns of the relation, and beside them the values and what their rules name,
        of the rows that each row's frame has; Refused for a measure that is not one of rows as they come."""
        parts: dict[str, str] = {}
        for name, one in self._measured.items():
            if one.shifted:
                why = "it is of doubles, taken from the smallest of its rows on, and each row has others"
                raise Refused(f"measure {name} in a trailing window", why)
            parts |= {column: f"{sql} OVER ({frame})" for column, sql in one.parts.items()}
        columns = [f"* EXCLUDE ({', '.join(parts)})"]
        for name, one in self._measured.items():
            columns.append(f"{one.value} AS {identifier(name)}")
            columns += [f"{sql} AS {column}" for column, sql in one.beside.items()]
        made = ", ".join(("*", *(f"{sql} AS {column}" for column, sql in parts.items())))
        return f"SELECT {', '.join(columns)} FROM (SELECT {made} FROM {relation})"


def _listed(name: str, items: Items, relation: str, keys: Sequence[str]) -> str:
    by_key = "".join(f"{identifier(key)}, " for key in keys)
    each = (
        f"SELECT {by_key}{items.item} AS _item, {items.weight} AS _weight FROM {relation}"
        f" WHERE {items.item} IS NOT NULL GROUP BY {by_key}{items.item}"
    )
    group = f" GROUP BY {names(keys)}" if keys else ""
    column = identifier(part_of(name, "items"))
    return f"SELECT {by_key}{items.listed} AS {column} FROM ({each}) WHERE _weight IS NOT NULL{group}"

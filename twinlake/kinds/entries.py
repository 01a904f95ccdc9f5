"""Owns entry rows: the state of measures that are a multiset, one row per item with its frequency.

They lie beside the row of the other measures, the main row. `_entry` is 0 for that and n for the items of
`_item_<n>`; an entry's `_rows` is its frequency and its hashes are NULL, so that it tells of no record.
Main rows and entries are computed apart: one aggregate for both would compute each sum and each sketch of the
main row for every item too, only to throw it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.kinds.evidence import ROWS
from twinlake.kinds.measures.measure import Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENTRY = "_entry"
_MAIN = "_main"


@dataclass(frozen=True)
class Entries:
    """Those of an aggregate's measures that have items, and its keys, windows among them."""

    keys: tuple[str, ...]
    measures: Mapping[str, Measure]

    @classmethod
    def of(cls, keys: tuple[str, ...], measures: Mapping[str, Measure]) -> Entries:
        return cls(keys, {name: one for name, one in measures.items() if one.item is not None})

    @property
    def state_keys(self) -> tuple[str, ...]:
        """Files are sorted by them from the last to the first: by sort of row, window, key, item."""
        return (*self._items, *self.keys, ENTRY) if self._items else self.keys

    def from_rows(self, main: DataFrame, rows: DataFrame, types: Mapping[str, str]) -> DataFrame:
        """The main rows, and the entries of the same rows of the topic."""
        from pyspark.sql import functions as F

        if not self._items:
            return main
        expanded = _expanded(rows, self._items)
        parts = [
            F.when(F.col(ENTRY) == self._number_of(one), F.expr(part.from_rows)).alias(part.name)
            for name, one in self.measures.items()
            for part in one.parts(name, types)
        ]
        grouped = expanded.groupBy(*map(quote.name, self.state_keys))
        return self._beside(main, grouped.agg(*parts, F.expr("count(1)").alias(ROWS)))

    def main(self, states: DataFrame) -> DataFrame:
        return states.where(f"{ENTRY} = 0") if self._items else states

    def merged(self, main: DataFrame, states: DataFrame) -> DataFrame:
        """The merged main rows, and the merged entries of the states."""
        from pyspark.sql import functions as F

        if not self._items:
            return main
        grouped = states.where(f"{ENTRY} > 0").groupBy(*map(quote.name, self.state_keys))
        merges = [F.expr(sql).alias(name) for name, sql in self._merges().items()]
        return self._beside(main, grouped.agg(*merges))

    def view(self, values: Mapping[str, str], relation: str) -> str:
        """SELECT text with the keys and these values: SQL by column, each named after its measure or beside
        it. Main rows and entries meet at last: for each key there is one row of either."""
        keys = quote.names(self.keys)
        if not self._items:
            return _select(keys, values, relation)
        of_items = {name: sql for name, sql in values.items() if name in self.measures}
        of_main = {name: sql for name, sql in values.items() if name not in self.measures}
        items = {
            f"{name}__item": quote.name(_column(self._number_of(one))) for name, one in self.measures.items()
        }
        merged = (
            f"SELECT {keys},\n  {_shown(items | self._merges())}\nFROM {relation}\n"
            f"GROUP BY {quote.names(self.state_keys)}"
        )
        if not of_main:
            return _select(keys, of_items, f"(\n{merged}\n)")
        main_rows = f"{relation}\nWHERE {ENTRY} = 0"
        sides = ((of_main, main_rows, "true"), (of_items, f"(\n{merged}\n)", "false"))
        both = "\nUNION ALL\n".join(
            _select(keys, {_MAIN: is_main} | {name: side.get(name, "NULL") for name in values}, source)
            for side, source, is_main in sides
        )
        met = {
            name: f"max_by({quote.name(name)}, {_MAIN} = {str(name in of_main).lower()})" for name in values
        }
        return _select(keys, met, f"(\n{both}\n)")

    @property
    def _items(self) -> dict[str, str]:
        """By column the SQL of its items; measures with one text share a column."""
        texts = dict.fromkeys(one.item for one in self.measures.values() if one.item is not None)
        return {_column(number): text for number, text in enumerate(texts, start=1)}

    def _number_of(self, measure: Measure) -> int:
        return 1 + list(self._items.values()).index(str(measure.item))

    def _merges(self) -> dict[str, str]:
        """By state column of entries, the keys left out, the SQL that merges it."""
        parts = (part for name, one in self.measures.items() for part in one.stored_parts(name, {}))
        return {part.name: part.merge for part in parts} | {ROWS: f"sum({ROWS})"}

    def _beside(self, main: DataFrame, entries: DataFrame) -> DataFrame:
        """Both with all columns: what one of them lacks is NULL in its rows."""
        from pyspark.sql import functions as F

        both = main.withColumn(ENTRY, F.lit(0)).unionByName(entries, allowMissingColumns=True)
        others = [name for name in both.columns if name not in self.state_keys]
        return both.select(*map(quote.name, (*self.state_keys, *others)))


def _column(number: int) -> str:
    return f"_item_{number}"


def _expanded(rows: DataFrame, items: Mapping[str, str]) -> DataFrame:
    """The rows once for each item that they have, with `_entry` and that item's column."""
    from pyspark.sql import functions as F

    # not GROUPING SETS: Spark does not know that its rows still lie in one partition, and exchanges them
    numbers = F.explode(F.array(*map(F.lit, range(1, 1 + len(items))))).alias(ENTRY)
    each = rows.select("*", numbers).withColumns(
        {
            column: F.when(F.col(ENTRY) == number, F.expr(sql))
            for number, (column, sql) in enumerate(items.items(), start=1)
        }
    )
    return each.where(" OR ".join(f"{quote.name(column)} IS NOT NULL" for column in items))


def _select(keys: str, values: Mapping[str, str], source: str) -> str:
    return f"SELECT {keys},\n  {_shown(values)}\nFROM {source}\nGROUP BY {keys}"


def _shown(values: Mapping[str, str]) -> str:
    return ",\n  ".join(f"{sql} AS {quote.name(name)}" for name, sql in values.items())

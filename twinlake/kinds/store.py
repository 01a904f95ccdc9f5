"""Owns where a table keeps its rows so that they are found again: in cells of time, sorted by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.times import EPOCH, parse_duration
from twinlake.kinds.definition import Definition, refuse_keys, texts
from twinlake.kinds.grid import Grid, cell_sql, micros
from twinlake.kinds.windows import Windows, whole_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CELL = "_cell"
"""The start of the cell in which a row lies; cells are half-open and aligned to 1970-01-01 UTC."""
HOME = "_home"
"""Whether that is the row's own cell; it has one, and a row without a time has that of 1970-01-01: it matches
nothing by time, but ranges of cells, by which batch work is cut, must hold it, and NULL is in no range."""
MOST_CELLS = 64
"""A row lies in no more cells: each is a row of its own."""
_START = "_cell_micros"


@dataclass(frozen=True, kw_only=True)
class Store:
    """A row at time t lies in every cell of [t - back, t + ahead]; its own is that of t."""

    keys: tuple[str, ...]
    """The columns that rows are looked for by."""
    on: str
    """A timestamp column: the time of a row."""
    cell: str
    """A duration such as "1 hour". Both sides of an `IntervalJoin` have cells of one size. A row may lie
    in at most 64."""
    back: str = "0 seconds"
    """How far before its own time a row has to be found: for a join's right table at least its `after`."""
    ahead: str = "0 seconds"
    """How far after its own time a row has to be found: for a join's right table at least its `before`."""

    @property
    def size(self) -> timedelta:
        return parse_duration(self.cell)

    @property
    def reach_back(self) -> timedelta:
        return parse_duration(self.back, or_zero=True)

    @property
    def reach_ahead(self) -> timedelta:
        return parse_duration(self.ahead, or_zero=True)

    @property
    def grid(self) -> Grid:
        return Grid(column=CELL, size=self.size)

    def to_json(self) -> dict[str, Any]:
        return {
            "keys": list(self.keys), "on": self.on, "cell": self.cell, "back": self.back, "ahead": self.ahead,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Store:
        """The inverse of `to_json`; an unknown key is refused by name."""
        refuse_keys(data, {"keys", "on", "cell", "back", "ahead"}, "store")
        return cls(**{**data, "keys": texts(data["keys"])})

    def spread(self, rows: DataFrame, windows: Windows) -> DataFrame:
        """The rows once per cell that they lie in, with `_cell` and `_home`; only the cells in `windows`."""
        from pyspark.sql import functions as F

        if not windows.is_all:
            rows = rows.where(self._reached_sql(windows))
        at = f"unix_micros({quote.name(self.on)})"
        first, last = (
            cell_sql(f"({at} {way} {micros(reach)}L)", self.size)
            for way, reach in (("-", self.reach_back), ("+", self.reach_ahead))
        )
        starts = f"coalesce(sequence({first}, {last}, {micros(self.size)}L), array(0L))"
        spread = rows.select("*", F.explode(F.expr(starts)).alias(_START)).withColumns(
            {
                CELL: F.expr(f"timestamp_micros({_START})"),
                HOME: F.expr(f"{_START} = coalesce({cell_sql(at, self.size)}, 0L)"),
            }
        )
        return spread if windows.is_all else spread.where(windows.predicate(CELL))

    def _reached_sql(self, windows: Windows) -> str:
        """A condition that holds for every row in these cells: one on the row's own time, so that it reaches
        the scan. It holds for some rows beside them too."""
        reached = windows.widened(self.size + self.reach_back, before=self.reach_ahead).predicate(self.on)
        timeless = f" OR {quote.name(self.on)} IS NULL" if windows.has_any(EPOCH, EPOCH) else ""
        return f"({reached}){timeless}"


def refuse_store(definition: Definition, store: Store, columns: Mapping[str, str]) -> None:
    """DefinitionError for columns that are none, and for durations that do not fit together."""
    if not store.keys:
        raise definition.error("its store has no keys", "name the columns that its rows are joined by")
    definition.refuse_names("column of the store", (*store.keys, store.on))
    definition.refuse_unknown("store key", store.keys, columns)
    definition.refuse_unknown("store time", (store.on,), columns)
    cell = whole_seconds(definition, "store cell", store.cell)
    reach = whole_seconds(definition, "store back", store.back, or_zero=True)
    reach += whole_seconds(definition, "store ahead", store.ahead, or_zero=True)
    if (most := -(-reach // cell) + 1) > MOST_CELLS:
        why = f"each row would lie in up to {most} cells of {store.cell}, at most {MOST_CELLS} are kept"
        raise definition.error_at_text(store.cell, why, "make the cells longer")

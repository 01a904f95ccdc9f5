"""Owns what joins of events share: two sides, the columns of both in one row, what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, cast

from twinlake.base import quote
from twinlake.kinds import steps
from twinlake.kinds.clock import TableClock
from twinlake.kinds.dependencies import OverTables
from twinlake.kinds.expression import Expression, Stage
from twinlake.kinds.kind import Paired, ViewClock
from twinlake.kinds.late import FINAL, final_sql
from twinlake.kinds.lineage import behind_sql
from twinlake.kinds.store import CELL, Store
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.kind import Kind

SIDES = ("left", "right")
RECORD_IDS = {side: tuple(f"_{side}{name}" for name in record_id.KEY) for side in SIDES}
"""The columns of the view with the record ids of the two rows that a row was made of."""


@dataclass(frozen=True, kw_only=True)
class Join(OverTables):
    """Rows of two tables of events with a store that have the same `on`; NULL there is the same as nothing.

    The view shows `on`, `columns`, the record ids of both rows, and the `_cell` of the row's time: a filter
    on that reaches the files of both sides, one on a side's own time only those of that side.
    """

    hows: ClassVar[tuple[str, ...]] = ()
    left: str
    """The table of the left rows: one that keeps rows, as `Events` with a `store` does."""
    right: str
    """The table of the right rows, which keeps rows too; may be the same one."""
    on: tuple[str, ...]
    """Columns of both tables, and keys of both stores."""
    how: str
    columns: dict[str, str]
    """Column name -> SQL over the columns of both rows, which are named like `left.amount` and `right.at`;
    where a row has no partner, the other's are NULL."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.on:
            raise self.error("it joins on nothing", 'name columns of both tables, like on=("customer",)')
        if self.how not in self.hows:
            known = ", ".join(self.hows)
            raise self.error_at_text(self.how, f"how is {self.how!r}, which is none of: {known}")
        self.refuse_shown("output column", (*self.on, *self.columns))

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.left, self.right)))

    @property
    def by(self) -> tuple[str, ...]:
        return self.on

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.timeless, FINAL)

    @property
    def implied(self) -> tuple[str, ...]:
        return (*RECORD_IDS["left"], *RECORD_IDS["right"], CELL)

    @property
    def in_part(self) -> str:
        return "A row whose partner is older than the sample has none, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        return (*self.on, *self.columns, *self.implied)

    @property
    def time_column(self) -> str:
        return CELL

    @property
    def paired(self) -> Paired:
        pairs = replace(self, columns={side: f"struct(`{side}`.*)" for side in SIDES})
        tables = ((side, self.left if side == "left" else self.right) for side in SIDES)
        records = tuple((table, RECORD_IDS[side]) for side, table in tables)
        return Paired(definition=cast("Kind", pairs), records=records, expressions=self._expressions)

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        yield Stage(rows=self._joined(rows), expressions=self._expressions)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        left, right = (dict(rows[name].dtypes) for name in (self.left, self.right))
        for key in self.on:
            if left[key] != right[key]:
                why = f"{key} is {left[key]} in {self.left} and {right[key]} in {self.right}"
                yield self.error_at_text(key, why, "cast one of them in its table")
        joined = self._joined(rows)
        shown = joined.select(*(steps.column(joined, sql, name) for name, sql in self.columns.items()))
        yield from steps.untyped(self, self.columns, shown)
        yield from steps.incomparable(self, self.columns, self.columns, shown)

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        """The rows whose record ids the joined rows show, on the side or sides that the table is of."""
        sides = (side for side, table in zip(SIDES, (self.left, self.right), strict=True) if table == name)
        conditions = (
            " AND ".join(
                f"`s`.`{key}` = `v`.`{column}`"
                for key, column in zip(record_id.KEY, RECORD_IDS[side], strict=True)
            )
            for side in sides
        )
        return behind_sql(source, shown, [" OR ".join(f"({one})" for one in conditions)])

    def unfit(self, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
        for name in self.reads:
            store = tables[name].kept
            if store is None:
                why = f"it reads {name}, which does not keep its rows where a join looks for them"
                remedy = (
                    f"make {name} a table of Events with a store, or join its view in the SQL of a Derived"
                )
                yield self.error_at_text(name, why, remedy)
                continue
            for key in self.on:
                if key not in store.keys:
                    why = f"it joins on {key}, which is not a key of the store of {name}"
                    yield self.error_at_text(key, why, f"those are: {', '.join(store.keys)}")

    def store(self, name: str) -> Store:
        """That of a table that it reads."""
        store = self.table(name).kept
        assert store is not None, f"{name} is unfit"
        return store

    def final(self, side: str, reach: timedelta, view_clock: ViewClock) -> str:
        """Whether no row in time can join one of this side any more; one at its time + reach could."""
        known = (self.table(name).clock for name in self.reads)
        clocks: tuple[TableClock, ...] = tuple(dict.fromkeys(one for one in known if one is not None))
        return final_sql(self.time(side), reach, clocks, view_clock, inclusive=True)

    def time(self, side: str) -> str:
        """The time of the row on a side, in the joined row."""
        return f"`{side}`.{quote.name(self.store(self.left if side == 'left' else self.right).on)}"

    def matches(self, *more: str) -> str:
        """The condition of the join: the keys are equal, and so on."""
        keys = (f"`left`.{quote.name(key)} = `right`.{quote.name(key)}" for key in self.on)
        return "\n    AND ".join((*keys, *more))

    def shown(self, side: str, final: str) -> str:
        """The view's columns of a joined row that has a row on this side."""
        keys = (f"`{side}`.{quote.name(key)} AS {quote.name(key)}" for key in self.on)
        columns = (f"{quote.expression(sql)} AS {quote.name(name)}" for name, sql in self.columns.items())
        places = (
            f"`{one}`.`{name}` AS `{shown}`"
            for one in SIDES
            for name, shown in zip(record_id.KEY, RECORD_IDS[one], strict=True)
        )
        shown = ", ".join((*keys, *columns, *places, f"`{side}`.`{CELL}` AS `{CELL}`"))
        return f"SELECT {shown},\n  {final} AS `{FINAL}`"

    def side_rows(self, side: str, rows: Mapping[str, DataFrame]) -> DataFrame:
        """A side's rows, with the columns of its table."""
        name = self.left if side == "left" else self.right
        return rows[name].select(*map(quote.name, self.table(name).output))

    @property
    def _expressions(self) -> tuple[Expression, ...]:
        return tuple(Expression(what=f"column {name}", sql=sql) for name, sql in self.columns.items())

    def _joined(self, rows: Mapping[str, DataFrame]) -> DataFrame:
        left, right = (self.side_rows(side, rows).alias(side) for side in SIDES)
        return left.crossJoin(right)

"""TopRows: of each key the rows that come first by an order, so many at most, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds import evidence, row_order, steps
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.expression import Stage
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.lineage import behind_sql, same_steps
from twinlake.kinds.windows import ALL, Windows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.grid import Grid

PLACE = "place"
MOST = 1_000
"""Rows of a key: they are one value of the state."""
_TOP, _ROW, _AT = "_top", "_row", "_at"


@dataclass(frozen=True, kw_only=True)
class TopRows(Definition):
    """State: the keys, `_top` (an array of structs of the order, the record id and the values, the first row
    first), and the evidence."""

    kind = "top_rows"
    stores_rows = True
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. What else the definition names are these columns."""
    keys: tuple[str, ...]
    """Columns of which the view has up to `rows` rows per value; at least one."""
    order: tuple[str, ...] = ()
    """Columns by which the greatest row comes first; NULL is before every value, so it comes last. Ties go to
    the later record id.

    Without any it follows the log: the latest record id comes first."""
    rows: int
    """How many rows of a key the view shows at most: 1 to 1,000."""
    values: tuple[str, ...]
    """Columns that the view shows beside the keys and `place`, which is 1 for the first row; at least one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        row_order.refuse(self, self.columns, self.keys, self.order, self.values)
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 1 <= self.rows <= MOST:
            raise self.error(f"rows is {self.rows!r}", f"it is a whole number from 1 to {MOST:,}")
        self.refuse_shown("output column", (*self.keys, *self.values), (PLACE,))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TopRows:
        return read(cls, data, columns=pairs, keys=texts, order=texts, values=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*self.keys, PLACE)

    @property
    def by(self) -> tuple[str, ...]:
        return self.keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self.keys

    @property
    def cells(self) -> Grid | None:
        return None

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.keys, PLACE, *self.values)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def in_part(self) -> str:
        return "Rows older than the sample have no place, so that others take theirs, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        yield from steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        yield from row_order.problems(self, self.columns, stepped, (*self.keys, *self.order), self.values)

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        """Of a key with many rows no more than `rows` are ever beside each other: they are numbered first."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        stepped = evidence.hashed(steps.apply(self, rows))
        row = F.struct(*(F.col(quote.name(name)) for name in (*self._orders, *self.values))).alias(_ROW)
        first = Window.partitionBy(*map(quote.name, self.keys)).orderBy(F.col(_ROW).desc())
        ordered = stepped.withColumns(row_order.computed(self.order)).withColumn(_ROW, row)
        numbered = ordered.withColumn(_AT, F.row_number().over(first))
        top = f"collect_list(CASE WHEN {_AT} <= {self.rows} THEN {_ROW} END)"
        return self._grouped(numbered, top, evidence.from_rows())

    def merge(self, states: DataFrame) -> DataFrame:
        return self._grouped(states, f"flatten(collect_list({_TOP}))", evidence.merged())

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        keys = quote.names(self.keys)
        values = ", ".join(f"{_ROW}.{quote.name(name)} AS {quote.name(name)}" for name in self.values)
        top = self._first(f"flatten(collect_list({_TOP}))")
        merged = f"SELECT {keys}, {top} AS {_TOP} FROM {relations[self.name]} GROUP BY {keys}"
        numbered = f"SELECT {keys}, posexplode({_TOP}) AS ({_AT}, {_ROW}) FROM ({merged})"
        return f"SELECT {keys}, {_AT} + 1 AS {PLACE}, {values}\nFROM ({numbered})"

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        return behind_sql(steps.stepped_sql(self, None, source), shown, same_steps(self.keys))

    def shape(self) -> Mapping[str, Any]:
        return row_order.shape(self, self.order)

    @property
    def decided_by(self) -> tuple[str, ...]:
        return row_order.decided_by(self.order)

    @property
    def decided_place(self) -> str:
        return PLACE

    @property
    def _orders(self) -> tuple[str, ...]:
        """The fields that decide which row comes first; the last of them make them unique."""
        return row_order.deciding(self.order)

    def _first(self, array: str) -> str:
        """SQL: the first rows of an array of them. A struct's head decides, and it ends in the record id."""
        return f"slice(sort_array({array}, false), 1, {self.rows})"

    def _grouped(self, rows: DataFrame, top: str, beside: list[Column]) -> DataFrame:
        from pyspark.sql import functions as F

        grouped = rows.groupBy(*map(quote.name, self.keys))
        return grouped.agg(F.expr(self._first(top)).alias(_TOP), *beside)

"""Events: at most one row per record, a view over the log; or its rows, kept where joins look for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds import evidence, steps
from twinlake.kinds.clock import TableClock, clock_of
from twinlake.kinds.definition import Definition, pairs, read
from twinlake.kinds.expression import Stage
from twinlake.kinds.grid import Grid
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.lineage import behind_sql, same
from twinlake.kinds.store import CELL, HOME, Store, refuse_store
from twinlake.kinds.windows import ALL, Windows
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Events(Definition):
    """Over one topic: its valid records that meet `where`, with the columns of `columns`.

    A view kind that stores nothing; with a `store` a stored kind with the same view, whose state is each row
    in its own cell and in every cell that it may be looked for from: columns, record id, `_cell`, `_home`
    and the evidence, which counts a record once per cell.
    """

    kind = "events"
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. The view shows them, and the record id."""
    store: Store | None = None
    """How its rows are kept where joins look for them. Without it nothing is kept, and no join can read the
    table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.inputs) != 1:
            raise self.error(f"events are of one topic, not {len(self.inputs)}")
        steps.refuse_shape(self, self.columns)
        self.refuse_shown("column", self.columns)
        if self.store is not None:
            refuse_store(self, self.store, self.columns)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Events:
        return read(cls, data, columns=pairs, store=Store.from_json)

    @property
    def stores_rows(self) -> bool:
        return self.store is not None

    @property
    def kept(self) -> Store | None:
        return self.store

    @property
    def view_keys(self) -> tuple[str, ...]:
        return record_id.KEY

    @property
    def by(self) -> tuple[str, ...]:
        return record_id.KEY

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.columns, *record_id.NAMES)

    @property
    def implied(self) -> tuple[str, ...]:
        return record_id.NAMES

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    @property
    def time_column(self) -> str:
        return self.store.on if self.store else record_id.TIMESTAMP

    @property
    def state_keys(self) -> tuple[str, ...]:
        """Record id and cell identify a row; files are sorted by the others too, so that they prune."""
        return (*record_id.KEY, self._kept.on, *self._kept.keys, CELL)

    @property
    def cells(self) -> Grid | None:
        return self._kept.grid

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        yield from steps.untyped(self, self.columns, stepped)
        yield from steps.incomparable(self, self.columns, self.columns, stepped)
        if self.store is None:
            return
        types = dict(stepped.dtypes)
        if types[self.store.on] != "timestamp":
            why = f"the store is on {self.store.on}, which is {types[self.store.on]}, not timestamp"
            yield self.error_at_text(self.store.on, why)

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows)

    def appended(self, records: DataFrame) -> DataFrame | None:
        return steps.apply(self, records, beside={record_id.BATCH: quote.name(record_id.BATCH)})

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        spread = self._kept.spread(evidence.hashed(steps.apply(self, rows)), windows)
        return spread.select(*map(quote.name, self._state), *evidence.of_one_row())

    def merge(self, states: DataFrame) -> DataFrame:
        return evidence.once(states, self.state_keys, self._state)

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        if self.store is not None:
            return f"SELECT {quote.names(self.output)}\nFROM {relations[self.name]}\nWHERE `{HOME}`"
        shown = [steps.named(name, sql) for name, sql in self.columns.items()]
        where = f"\nWHERE {quote.condition(self.where)}" if self.where is not None else ""
        columns = ", ".join([*shown, quote.names(record_id.NAMES)])
        return f"SELECT {columns}\nFROM {relations[self.inputs[0]]}{where}"

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        return behind_sql(source, shown, same(record_id.KEY))

    @property
    def clock(self) -> TableClock | None:
        return clock_of(self.inputs[0], self.columns[self.store.on]) if self.store else None

    @property
    def _kept(self) -> Store:
        assert self.store is not None, f"{self.name} is a view kind: it has no state"
        return self.store

    @property
    def _state(self) -> tuple[str, ...]:
        return (*self.columns, *record_id.NAMES, CELL, HOME)

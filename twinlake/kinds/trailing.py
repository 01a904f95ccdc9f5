"""Trailing: each record with measures of the records of its key in the minutes, hours or days before it.

A window of L ends at every record. Cut time into blocks of L: each window is the end of one block and the
beginning of the next (van Herk 1992, Gil and Werman 1993). Both are running merges of single states, in order
and in reverse, so a record costs the same however many share its window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.times import format_duration, parse_duration
from twinlake.kinds import evidence, measured, running, steps
from twinlake.kinds.clock import TableClock, clock_of
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.expression import Stage
from twinlake.kinds.grid import Grid, micros
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.late import FINAL, final_sql
from twinlake.kinds.lineage import behind_sql, same_steps, stepped
from twinlake.kinds.measures.all import from_json as measure_from_json
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.running import Running
from twinlake.kinds.store import CELL, HOME, Store, refuse_store
from twinlake.kinds.windows import ALL, Windows, interval_sql, mistimed, whole_seconds
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError

_ASKS, _POINT, _BLOCK = "_asks", "_point", "_block"
"""A row stands at its own time, and asks where its window begins for what there is up to the block's end."""


@dataclass(frozen=True, kw_only=True)
class Trailing(Definition):
    """State: each record in its own cell and in every cell from which it is looked back for: its columns, the
    record id, `_cell`, `_home`, the parts of its own measures, and the evidence, once per cell."""

    kind = "trailing"
    stores_rows = True
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. The view shows them; what else the definition names are
    these columns."""
    keys: tuple[str, ...]
    """Columns whose values have windows of their own; at least one."""
    on: str
    """A timestamp column, of `columns`; a row in which it is NULL is not shown, and in no window."""
    last: dict[str, dict[str, Measure]]
    """A duration such as "5 minutes" -> name of a column -> what it shows of the rows of the key that are at
    most so long before each row, those of its own time by the order of their record ids. Measures that look
    at all their rows at once (`Quantile`, `Histogram`, `TopK`, `CollectSet`, an exact `CountDistinct`) are
    refused."""
    with_itself: bool = False
    """Whether a row is in its own window. Without it only those before it are."""
    cell: str = "1 day"
    """A duration: a filter on `_cell` reads cells of this size. A row lies in each cell that its windows may
    begin in, in at most 64."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        if not self.keys:
            raise self.error("it has no keys", "use a constant column as the key")
        if not self.last:
            raise self.error("it is over no time", 'name durations, like last={"5 minutes": {...}}')
        lengths = [whole_seconds(self, "last", text) for text in self.last]
        for text, length in zip(self.last, lengths, strict=True):
            if lengths.count(length) > 1:
                raise self.error_at_text(text, f"last {text!r} is given twice")
            measured.refuse_shape(self, self.last[text], self.keys, self.columns)
            running.refuse(self, self.last[text])
        self.refuse_unknown("time column", (self.on,), self.columns)
        measures = (name for text in self.last for name in self.last[text])
        self.refuse_shown("output column", (*self.columns, *measures, FINAL))
        refuse_store(self, self._store, self.columns)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trailing:
        return read(
            cls, data, columns=pairs, keys=texts,
            last=lambda found: {
                text: {name: measure_from_json(one) for name, one in listed} for text, listed in found
            },
        )  # fmt: skip

    @property
    def view_keys(self) -> tuple[str, ...]:
        return record_id.KEY

    @property
    def by(self) -> tuple[str, ...]:
        """A record changes rows of the cells that it lies in, and of no other."""
        return (*self.keys, CELL)

    @property
    def state_keys(self) -> tuple[str, ...]:
        """Record id and cell identify a row; files are sorted by the others too, so that they prune."""
        return (*record_id.KEY, self.on, *self.keys, CELL)

    @property
    def cells(self) -> Grid | None:
        return self._store.grid

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.timeless, FINAL)

    @property
    def implied(self) -> tuple[str, ...]:
        return (*record_id.NAMES, CELL)

    @property
    def in_part(self) -> str:
        return "What a record looks back on ends where the sample begins, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        return (*self.columns, *self._measured, *self.implied)

    @property
    def time_column(self) -> str:
        return CELL

    @property
    def clock(self) -> TableClock:
        return clock_of(self.inputs[0], self.columns[self.on])

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped_rows = steps.apply(self, rows[self.inputs[0]])
        yield from steps.untyped(self, self.columns, stepped_rows)
        yield from steps.incomparable(self, self.columns, self.columns, stepped_rows)
        types = dict(stepped_rows.dtypes)
        yield from measured.problems(self, self._measured, self.keys, self.columns, types)
        yield from mistimed(self, "windows are", self.on, types)

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        rows = steps.apply(self, rows)
        parts = measured.from_rows(self._kept, dict(rows.dtypes))
        timed = evidence.hashed(rows.where(f"{quote.name(self.on)} IS NOT NULL"))
        known = (*self.columns, *record_id.NAMES)
        of_each = timed.groupBy(*map(quote.name, known)).agg(*parts, *evidence.from_rows())
        columns = (*known, CELL, HOME, *of_each.columns[len(known) :])
        return self._store.spread(of_each, windows).select(*map(quote.name, columns))

    def merge(self, states: DataFrame) -> DataFrame:
        columns = [name for name in states.columns if name not in (evidence.SEGMENT, *evidence.NAMES)]
        return evidence.once(states, self.state_keys, columns)

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return measured.scales(self._kept, states)

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        ends = "\nUNION ALL\n".join(self._over(text, relations[self.name], scaled) for text in self.last)
        values = measured.values(self._measured, scaled)
        nothing = {name: one.nothing for name, one in self._measured.items() if one.nothing is not None}
        values |= {name: f"coalesce({values[name]}, {sql})" for name, sql in nothing.items()}
        grouped = (*self.keys, *record_id.KEY, CELL)
        # both rows of a record have its keys, the one that asks has nothing else
        shown = {name: f"max({quote.name(name)})" for name in self._carried} | values
        columns = ",\n  ".join(f"{sql} AS {quote.name(name)}" for name, sql in shown.items())
        keys = quote.names(grouped)
        rows = f"SELECT {keys},\n  {columns}\nFROM (\n{ends}\n)\nGROUP BY {keys}"
        beside = tuple(name for name in values if name not in self._measured)
        final = self.follows_watermark(view_clock)[FINAL]
        return f"SELECT {quote.names((*self.timeless, *beside))},\n  {final} AS `{FINAL}`\nFROM (\n{rows}\n)"

    def follows_watermark(self, view_clock: ViewClock) -> Mapping[str, str]:
        at = quote.name(self.on)
        return {FINAL: final_sql(at, timedelta(0), (self.clock,), view_clock, inclusive=True)}

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        at, end = stepped(self.on), f"`v`.{quote.name(self.on)}"
        within = [f"{at} >= {end} - {interval_sql(self._longest)}", f"{at} <= {end}"]
        conditions = [*same_steps(self.keys), *within]
        return behind_sql(steps.stepped_sql(self, None, source), shown, conditions)

    def _over(self, last: str, states: str, scaled: tuple[str, ...]) -> str:
        """Two rows for each record, which the view merges: the states of the two ends of its window."""
        length = micros(parse_duration(last))
        at, begin = f"unix_micros({quote.name(self.on)})", f"(unix_micros(`{CELL}`) - {length}L)"
        found = Running.of(self._merges(last, scaled) | {evidence.ROWS: f"sum(`{evidence.ROWS}`)"})
        keys = quote.names((*self.keys, *record_id.KEY, CELL))
        own = dict.fromkeys((*self._carried, *self._read(last, scaled), evidence.ROWS))
        standing = f"struct(false AS `{_ASKS}`, {at} AS `{_POINT}`)"
        asking = f"struct(true AS `{_ASKS}`, {at} - {length}L AS `{_POINT}`)"
        points = (
            f"SELECT {keys}, `{HOME}`, {quote.names(tuple(own))},\n"
            f"  inline(IF(`{HOME}`, array({standing}, {asking}), array({standing})))\n"
            f"FROM {states}\nWHERE {at} >= {begin}"
        )
        # a row that asks stands where its record is not: it brings nothing along
        brought = ", ".join(f"IF(`{_ASKS}`, NULL, {quote.name(name)}) AS {quote.name(name)}" for name in own)
        blocks = (
            f"SELECT {keys}, `{HOME}`, `{_ASKS}`, `{_POINT}`,\n"
            f"  (`{_POINT}` - {begin}) DIV {length}L AS `{_BLOCK}`, {brought}\nFROM (\n{points}\n)"
        )
        ends = ",\n  ".join(
            f"IF(`{_ASKS}`, {call} OVER `_from`, {call} OVER `_upto`) AS `{column}`"
            for column, call in found.calls.items()
        )
        within = f"PARTITION BY {quote.names((*self.keys, CELL, _BLOCK))}"
        upto = "CURRENT ROW" if self.with_itself else "1 PRECEDING"
        framed = (
            f"SELECT {keys}, `{HOME}`, {quote.names(self._carried)},\n  {ends}\nFROM (\n{blocks}\n)\nWINDOW\n"
            f"  `_upto` AS ({within} ORDER BY `{_POINT}`, {quote.names(record_id.KEY)}"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND {upto}),\n"
            f"  `_from` AS ({within} ORDER BY `{_POINT}` DESC, `{_ASKS}`"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )
        # without a row there is no state: that of none could pass for one that has overflowed
        is_any = f"{found.parts[evidence.ROWS]} > 0"
        parts = ",\n  ".join(
            f"{f'IF({is_any}, {found.parts[name]}, NULL)' if text == last else 'NULL'} AS {quote.name(name)}"
            for text in self.last
            for name in self._merges(text, scaled)
        )
        return f"SELECT {keys}, {quote.names(self._carried)},\n  {parts}\nFROM (\n{framed}\n)\nWHERE `{HOME}`"

    def _merges(self, last: str, scaled: tuple[str, ...]) -> dict[str, str]:
        """State columns of the measures over one length -> aggregate SQL over the states of rows."""
        return {
            own.name: kept.merge
            for name, measure in self.last[last].items()
            for own, kept in zip(
                running.parts(measure, name, name in scaled),
                running.parts(measure, self._states[name], name in scaled),
                strict=True,
            )
        }

    def _read(self, last: str, scaled: tuple[str, ...]) -> Iterator[str]:
        """The state columns that these read."""
        for name, measure in self.last[last].items():
            yield from (one.name for one in running.parts(measure, self._states[name], name in scaled))

    @property
    def _measured(self) -> dict[str, Measure]:
        """What the view shows of all lengths."""
        return {name: measure for measures in self.last.values() for name, measure in measures.items()}

    @property
    def _states(self) -> dict[str, str]:
        """By measure the name under which its state is kept: that of a row is the same for every length."""
        first: dict[Measure, str] = {}
        return {name: first.setdefault(measure, name) for name, measure in self._measured.items()}

    @property
    def _kept(self) -> dict[str, Measure]:
        return {name: self._measured[name] for name in dict.fromkeys(self._states.values())}

    @property
    def _carried(self) -> tuple[str, ...]:
        """What the view shows of a record as it is."""
        return (*(name for name in self.columns if name not in self.keys), record_id.TIMESTAMP)

    @property
    def _longest(self) -> timedelta:
        return max(map(parse_duration, self.last))

    @property
    def _store(self) -> Store:
        """A row is looked back for from cells up to the longest window after it."""
        return Store(keys=self.keys, on=self.on, cell=self.cell, ahead=format_duration(self._longest))

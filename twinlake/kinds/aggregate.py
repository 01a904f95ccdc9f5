"""Aggregate: measures per key, and per window where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.times import parse_duration
from twinlake.kinds import evidence, measured, steps
from twinlake.kinds.clock import TableClock, clock_of
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.ending import Ending, refuse_retention
from twinlake.kinds.entries import Entries
from twinlake.kinds.expression import Stage
from twinlake.kinds.grid import Grid
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.late import FINAL, final_sql, late_sql
from twinlake.kinds.lineage import behind_sql, same_steps, stepped
from twinlake.kinds.measures.all import from_json as measure_from_json
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.steps import Explode
from twinlake.kinds.tiles import gathered_sql, in_tiles, one_each, short_tiles, spread, spread_sql
from twinlake.kinds.windows import (
    ALL,
    END,
    START,
    Hopping,
    Tumbling,
    Windows,
    end_sql,
    mistimed,
    refuse_window,
    window_from_json,
)  # fmt: skip

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Aggregate(Definition):
    """State: the keys, `window_start` where there are windows (`_tile` where they overlap), the measures'
    parts, and the evidence.

    Measures whose state is a multiset have entry rows beside it, see `kinds/entries.py`. With a `retention`
    a window is shown until the watermark is so far past its end.
    """

    kind = "aggregate"
    stores_rows = True
    explode: Explode | None = None
    """The array of a record whose elements are rows of their own. Without it a record is one row."""
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. What else the definition names are these columns."""
    keys: tuple[str, ...]
    """Columns that rows are grouped by; may be empty where there is a window."""
    window: Tumbling | Hopping | None = None
    """The windows of time that rows are grouped by, beside the keys. Without it a key has one row, over all
    of history."""
    measures: dict[str, Measure]
    """Name of a column -> what it shows of the rows of each key and window."""
    retention: str | None = None
    """A duration such as "400 days", of a table with a window: a window is shown until the watermark is so
    far past its end. Without it windows are shown for ever."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        if self.explode:
            steps.refuse_explode(self, self.explode)
        measured.refuse_shape(self, self.measures, self.keys, self.columns)
        if not self.keys and not self.window:
            raise self.error("it has neither keys nor a window", "use a constant column as the key")
        if self.window:
            self.refuse_unknown("window column", (self.window.on,), self.columns)
            refuse_window(self, self.window)
            for name in self.columns:
                if name.lower() in (START, END):
                    raise self.error(f"column {name!r} has the name of the window's own", "name it otherwise")
        if self.retention is not None:
            refuse_retention(self, self.retention, self.window)
        self.refuse_shown("output column", self.output)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aggregate:
        return read(
            cls, data, columns=pairs, keys=texts, window=window_from_json, explode=Explode.from_json,
            measures=lambda found: {name: measure_from_json(one) for name, one in found},
        )  # fmt: skip

    def unwindowed(self, key: str) -> Aggregate | None:
        if not isinstance(self.window, Tumbling):
            return None
        others = {name: sql for name, sql in self.columns.items() if name.lower() != key}
        return replace(
            self, window=None, retention=None, keys=(key, *self.keys), columns={**others, key: "''"}
        )

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*self.keys, START) if self.window else self.keys

    @property
    def by(self) -> tuple[str, ...]:
        return self.view_keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self._stored.state_keys

    @property
    def cells(self) -> Grid | None:
        return self.window.grid if self.window else None

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.timeless, FINAL) if self.window else self.timeless

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def in_part(self) -> str:
        if self.window:
            return "A window that began before the sample has its sampled records alone, in both versions."
        return "What is measured of a key is measured of its sampled records alone, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        return (*self.keys, *((START, END) if self.window else ()), *self.measures)

    @property
    def additive(self) -> tuple[str, ...]:
        # windows that overlap count a row several times
        return () if isinstance(self.window, Hopping) else measured.additive(self.measures)

    @property
    def time_column(self) -> str | None:
        return START if self.window else None

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]], self.explode)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        if self.explode and (taken := steps.taken(self, self.explode, rows[self.inputs[0]])):
            yield taken
            return
        stepped = steps.apply(self, rows[self.inputs[0]], self.explode)
        yield from steps.untyped(self, self.columns, stepped)
        types = dict(stepped.dtypes)
        yield from measured.problems(self, self.measures, self.keys, self.columns, types)
        if self.window:
            yield from mistimed(self, "the window is", self.window.on, types)

    def type_errors(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """Tiles that are shorter than anybody has written."""
        if isinstance(self.window, Hopping) and self.window.length % self.window.starts.size:
            why, remedy = short_tiles(self.window)
            yield self.error_at_text(self.window.every, why, remedy)

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows, self.explode)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = steps.apply(self, rows, self.explode)
        types = dict(stepped.dtypes)
        stepped = evidence.hashed(stepped)
        if self.window:
            timed = stepped.where(F.expr(f"{quote.name(self.window.on)} IS NOT NULL"))
            grid = self.window.grid
            stepped = timed.withColumn(grid.column, F.expr(grid.start_sql(self.window.on)))
            if not windows.is_all:
                length = grid.size if self.window.tiled else self.window.length
                stepped = stepped.where(windows.reached_sql(self.window.on, length + grid.slack))
        main = stepped.groupBy(*map(quote.name, self._stored.keys)).agg(
            *measured.from_rows(self._main, types), *evidence.from_rows()
        )
        states = self._stored.from_rows(main, stepped, types)
        if not self.window:
            return states
        is_spread = self.window.hops > 1 and not self.window.tiled
        if is_spread:  # as versions of before are stored
            states = spread(states, self.window, START)
        limited = states if windows.is_all else states.where(windows.predicate(grid.column))
        return self.merge(limited) if is_spread else limited

    def merge(self, states: DataFrame) -> DataFrame:
        merged = measured.merged(self._main, dict(states.dtypes))
        main = self._stored.main(states).groupBy(*map(quote.name, self._stored.keys))
        return self._stored.merged(main.agg(*merged, *evidence.merged()), states)

    @property
    def stored_anew(self) -> Aggregate:
        return replace(self, window=in_tiles(self.window)) if isinstance(self.window, Hopping) else self

    @property
    def by_state(self) -> Aggregate:
        if not isinstance(self.window, Hopping) or not self.window.tiled:
            return self
        return replace(self, retention=None, window=one_each(self.window))

    def shown_in(self, states: DataFrame) -> DataFrame:
        return spread(states, self.window, START) if self.window and self.window.tiled else states

    def gathered(self, relation: str) -> str:
        # entries meet the main rows in a join, which has each side exchanged for itself
        has_entries = len(self._main) < len(self.measures)
        is_tiled = self.window is not None and self.window.tiled
        return gathered_sql(relation, self.keys) if is_tiled and not has_entries else relation

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return measured.scales(self.measures, states)

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        values = measured.values(self.measures, scaled)
        relation = relations[self.name]
        if self.window and self.window.tiled:
            relation = spread_sql(self.window, relation, START)
        merged = Entries.of(self.view_keys, self.measures).view(values, relation)
        if self.window is None:
            return merged
        end = end_sql(self.window, f"`{START}`")
        if self.window.grid.runs:  # found once, for what follows the watermark too
            merged, end = f"SELECT *, {end} AS `{END}`\nFROM (\n{merged}\n)", f"`{END}`"
        times = (f"`{START}`", f"{end} AS `{END}`")
        columns = ", ".join([*map(quote.name, self.keys), *times, quote.names(tuple(values))])
        final = self._final(self.window, view_clock)
        ending = self.ending
        shown = f"\nWHERE {ending.is_shown_sql(view_clock.watermark(ending.clock))}" if ending else ""
        return f"SELECT {columns},\n  {final} AS `{FINAL}`\nFROM (\n{merged}\n){shown}"

    def follows_watermark(self, view_clock: ViewClock) -> Mapping[str, str]:
        return {FINAL: self._final(self.window, view_clock)} if self.window else {}

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        conditions = same_steps(self.keys)
        if self.window:
            at = stepped(self.window.on)
            conditions += [f"{at} >= `v`.`{START}`", f"{at} < `v`.`{END}`"]
        return behind_sql(steps.stepped_sql(self, self.explode, source), shown, conditions)

    def late(self, records: str) -> str | None:
        if self.window is None:
            return None
        return late_sql(self, self.explode, self.window, self._clock(self.window), records)

    def shape(self) -> Mapping[str, Any]:
        measured.refuse_log_order(self, self.measures)
        if self.retention is not None:
            raise self.error_at_text(
                self.retention, "it ends its windows by the watermark of its own topic", "leave retention out"
            )
        return steps.shape_of(self)

    @property
    def ending(self) -> Ending | None:
        if self.window is None or self.retention is None:
            return None
        kept = parse_duration(self.retention)
        return Ending(clock=self._clock(self.window), window=self.window, kept=kept)

    @property
    def clock(self) -> TableClock | None:
        return self._clock(self.window) if self.window else None

    def _final(self, window: Tumbling | Hopping, view_clock: ViewClock) -> str:
        end = (quote.name(END), timedelta(0)) if window.grid.runs else (quote.name(START), window.length)
        return final_sql(*end, (self._clock(window),), view_clock)

    def _clock(self, window: Tumbling | Hopping) -> TableClock:
        return clock_of(self.inputs[0], self.columns[window.on])

    @property
    def _stored(self) -> Entries:
        """By the keys of the states: the cell of the grid is one where there are windows."""
        keys = (*self.keys, self.window.grid.column) if self.window else self.keys
        return Entries.of(keys, self.measures)

    @property
    def _main(self) -> dict[str, Measure]:
        """The measures with one state per key, without entries."""
        return {name: one for name, one in self.measures.items() if one.item is None}

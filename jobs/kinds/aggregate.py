"""Aggregate: measures per key, and per window where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.kinds import evidence, steps
from jobs.kinds.definition import Definition, pairs, read, texts
from jobs.kinds.entries import Entries
from jobs.kinds.equality import has_order, scale_of
from jobs.kinds.expression import Stage
from jobs.kinds.finality import FINAL, final_sql
from jobs.kinds.kind import Moment
from jobs.kinds.measures.all import from_json as measure_from_json
from jobs.kinds.measures.measure import Measure
from jobs.kinds.steps import Explode
from jobs.kinds.windows import ALL, END, START, Grid, Tumbling, Windows, interval_sql, refuse_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Aggregate(Definition):
    """State: the keys, `window_start` where there are windows, the measures' parts, and the evidence.

    Measures whose state is a multiset have entry rows beside it, see `kinds/entries.py`.
    """

    kind = "aggregate"
    stores_rows = True
    explode: Explode | None = None
    where: str | None = None
    columns: dict[str, str]
    keys: tuple[str, ...]
    window: Tumbling | None = None
    measures: dict[str, Measure]

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        if self.explode:
            steps.refuse_explode(self, self.explode)
        self.refuse_unknown("key", self.keys, self.columns)
        measured = (column for measure in self.measures.values() for column in measure.columns)
        self.refuse_unknown("measured column", measured, self.columns)
        if not self.measures:
            raise self.error("it has no measures")
        if not self.keys and not self.window:
            raise self.error("it has neither keys nor a window", "use a constant column as the key")
        if self.window:
            self.refuse_unknown("window column", (self.window.on,), self.columns)
            refuse_window(self, self.window)
        self.refuse_shown("output column", self.output)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aggregate:
        return read(
            cls, data, columns=pairs, keys=texts, window=Tumbling.from_json, explode=Explode.from_json,
            measures=lambda found: {name: measure_from_json(one) for name, one in found},
        )  # fmt: skip

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*self.keys, START) if self.window else self.keys

    @property
    def by(self) -> tuple[str, ...]:
        return self.view_keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self._entries.state_keys

    @property
    def grid(self) -> Grid | None:
        return self.window.grid if self.window else None

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.timeless, FINAL) if self.window else self.timeless

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def timeless(self) -> tuple[str, ...]:
        return (*self.keys, *((START, END) if self.window else ()), *self.measures)

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]], self.explode)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        if self.explode and (taken := steps.taken(self, self.explode, rows[self.inputs[0]])):
            yield taken
            return
        stepped = steps.apply(self, rows[self.inputs[0]], self.explode)
        yield from steps.untyped(self, self.columns, stepped)
        types = dict(stepped.dtypes)
        for name in self.keys:
            if not has_order(types[name]):
                yield self.error_at_text(self.columns[name], f"column {name}: {types[name]} cannot be a key")
        if self.window and types[self.window.on] != "timestamp":
            why = f"the window is on {self.window.on}, which is {types[self.window.on]}, not timestamp"
            yield self.error_at_text(self.window.on, why)
        for name, measure in self.measures.items():
            why_not = measure.refuses({column: types[column] for column in measure.columns})
            if why_not:
                of = f" of {', '.join(measure.columns)}" if measure.columns else ""
                yield self.error_at_text(name, f"measure {name} ({measure.kind}{of}): {why_not}")

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = steps.apply(self, rows, self.explode)
        types = dict(stepped.dtypes)
        stepped = evidence.hashed(stepped)
        if self.window:
            timed = stepped.where(F.expr(f"{quote.name(self.window.on)} IS NOT NULL"))
            stepped = timed.withColumn(START, F.expr(self.window.start_sql()))
            if not windows.is_all:
                stepped = stepped.where(self.window.reached_sql(windows)).where(windows.predicate(START))
        parts = [part for name, measure in self._main.items() for part in measure.parts(name, types)]
        measured = [F.expr(part.from_rows).alias(part.name) for part in parts]
        main = stepped.groupBy(*map(quote.name, self.view_keys)).agg(*measured, *evidence.from_rows())
        return self._entries.from_rows(main, stepped, types)

    def merge(self, states: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        types = dict(states.dtypes)
        parts = [part for name, one in self._main.items() for part in one.stored_parts(name, types)]
        merged = [F.expr(part.merge).alias(part.name) for part in parts]
        grouped = self._entries.main(states).groupBy(*map(quote.name, self.view_keys))
        return self._entries.merged(grouped.agg(*merged, *evidence.merged()), states)

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        parts = (part for name, one in self.measures.items() for part in one.stored_parts(name, states))
        return {part.name: part.scale for part in parts if part.scale is not None}

    def view(self, relations: Mapping[str, str], moment: Moment, scaled: tuple[str, ...] = ()) -> str:
        values = {name: measure.value(name) for name, measure in self.measures.items()}
        scales = {name: self.measures[name].scale(name) for name in scaled if name in self.measures}
        values |= {scale_of(name): scale for name, scale in scales.items() if scale is not None}
        merged = self._entries.view(values, relations[self.name])
        if self.window is None:
            return merged
        end = f"`{START}` + {interval_sql(self.window.length)} AS `{END}`"
        columns = ", ".join([*map(quote.name, self.keys), f"`{START}`", end, quote.names(tuple(values))])
        final = final_sql(quote.name(START), self.window.length, self.inputs, moment)
        return f"SELECT {columns},\n  {final} AS `{FINAL}`\nFROM (\n{merged}\n)"

    @property
    def _entries(self) -> Entries:
        return Entries.of(self.view_keys, self.measures)

    @property
    def _main(self) -> dict[str, Measure]:
        """The measures with one state per key, without entries."""
        return {name: one for name, one in self.measures.items() if one.item is None}

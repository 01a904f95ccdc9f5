"""Sessions: measures per stretch of activity of a key that no pause longer than the gap interrupts.

States are islands cut at the cells of a grid, so that batch work can be limited to some of them. The same
text makes islands of rows, of states in a cell, and in the view of all states of a key, which heals the cuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.times import parse_duration
from twinlake.kinds import evidence, measured, steps
from twinlake.kinds.clock import TableClock, clock_of
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.expression import Stage
from twinlake.kinds.grid import Grid, micros
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.late import FINAL, final_sql
from twinlake.kinds.lineage import behind_sql, same_steps, stepped
from twinlake.kinds.measures.all import from_json as measure_from_json
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.windows import ALL, Windows, mistimed, whole_seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import Column, DataFrame

    from twinlake.base.errors import DefinitionError

START, END = "session_start", "session_end"
"""The times of a session's first and last record; both belong to it."""
CELL = "_cell"
_BEGINS, _ISLAND = "_begins", "_island"


@dataclass(frozen=True, kw_only=True)
class Sessions(Definition):
    """State: the keys, `_cell`, `session_start`, `session_end`, the measures' parts, and the evidence."""

    kind = "sessions"
    stores_rows = True
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. What else the definition names are these columns."""
    keys: tuple[str, ...]
    """Columns whose values have sessions of their own; at least one."""
    on: str
    """A timestamp column, of `columns`; rows in which it is NULL are in no session."""
    gap: str
    """A duration such as "30 minutes": a record so long after the last one still belongs to its session."""
    grid: str = "1 day"
    """A duration longer than the gap: into cells of this size states are cut, which no reader sees."""
    measures: dict[str, Measure]
    """Name of a column -> what it shows of the rows of each session. Those that keep every item (`Quantile`,
    `TopK`, an exact `CountDistinct`) are refused."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        if not self.keys:
            raise self.error("it has no keys", "use a constant column as the key")
        measured.refuse_shape(self, self.measures, self.keys, self.columns)
        for name, measure in self.measures.items():
            if measure.item is not None:
                why = f"measure {name} ({measure.kind}) keeps every item, which sessions cannot"
                raise self.error(why, "measure it in an Aggregate")
        self.refuse_unknown("time column", (self.on,), self.columns)
        gap, size = whole_seconds(self, "gap", self.gap), whole_seconds(self, "grid", self.grid)
        if gap >= size:
            why = f"the gap {self.gap!r} is not shorter than the grid {self.grid!r}"
            raise self.error(why, "give it a longer grid, of several sessions at least")
        self.refuse_shown("output column", self.output)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sessions:
        return read(
            cls, data, columns=pairs, keys=texts,
            measures=lambda found: {name: measure_from_json(one) for name, one in found},
        )  # fmt: skip

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*self.keys, START)

    @property
    def by(self) -> tuple[str, ...]:
        return self.keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return (*self.keys, CELL, START)

    @property
    def cells(self) -> Grid | None:
        return self._cells

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.timeless, FINAL)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def in_part(self) -> str:
        return "A session that was going on when the sample begins starts there, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        return (*self.keys, START, END, *self.measures)

    @property
    def additive(self) -> tuple[str, ...]:
        return measured.additive(self.measures)

    @property
    def time_column(self) -> str:
        return START

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        yield from steps.untyped(self, self.columns, stepped)
        types = dict(stepped.dtypes)
        yield from measured.problems(self, self.measures, self.keys, self.columns, types)
        yield from mistimed(self, "sessions are", self.on, types)

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = steps.apply(self, rows)
        parts = measured.from_rows(self.measures, dict(stepped.dtypes))
        timed = evidence.hashed(stepped).where(F.expr(f"{quote.name(self.on)} IS NOT NULL"))
        if not windows.is_all:
            timed = timed.where(windows.reached_sql(self.on, self._cells.size))
        celled = timed.withColumn(CELL, F.expr(self._cells.start_sql(self.on)))
        limited = celled if windows.is_all else celled.where(windows.predicate(CELL))
        return self._islands(limited, self.on, self.on, [*parts, *evidence.from_rows()])

    def merge(self, states: DataFrame) -> DataFrame:
        parts = measured.merged(self.measures, dict(states.dtypes))
        return self._islands(states, START, END, [*parts, *evidence.merged()])

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return measured.scales(self.measures, states)

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        keys, gap = quote.names(self.keys), self._gap
        values = {END: f"max(`{END}`)", **measured.values(self.measures, scaled)}
        shown = ",\n  ".join(f"{sql} AS {quote.name(name)}" for name, sql in values.items())
        begins = f"SELECT *, {begins_sql(START, END, self.keys, gap)} AS `{_BEGINS}`"
        begun = f"{begins}\nFROM {relations[self.name]}"
        islands = f"SELECT *, {island_sql(START, self.keys)} AS `{_ISLAND}`\nFROM (\n{begun}\n)"
        merged = f"SELECT {keys}, `{_ISLAND}`,\n  {shown}\nFROM (\n{islands}\n)\nGROUP BY {keys}, `{_ISLAND}`"
        columns = f"{keys}, `{_ISLAND}` AS `{START}`, {quote.names(tuple(values))}"
        final = self.follows_watermark(view_clock)[FINAL]
        return f"SELECT {columns},\n  {final} AS `{FINAL}`\nFROM (\n{merged}\n)"

    def follows_watermark(self, view_clock: ViewClock) -> Mapping[str, str]:
        return {FINAL: final_sql(f"`{END}`", self._gap, (self.clock,), view_clock, inclusive=True)}

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        at = stepped(self.on)
        within = [f"{at} >= `v`.`{START}`", f"{at} <= `v`.`{END}`"]
        conditions = [*same_steps(self.keys), *within]
        return behind_sql(steps.stepped_sql(self, None, source), shown, conditions)

    def shape(self) -> Mapping[str, Any]:
        measured.refuse_log_order(self, self.measures)
        return steps.shape_of(self)

    @property
    def _gap(self) -> timedelta:
        return parse_duration(self.gap)

    @property
    def clock(self) -> TableClock:
        return clock_of(self.inputs[0], self.columns[self.on])

    @property
    def _cells(self) -> Grid:
        return Grid(column=CELL, size=parse_duration(self.grid))

    def _islands(self, rows: DataFrame, start: str, end: str, beside: list[Column]) -> DataFrame:
        """The states of rows that are from `start` to `end`: their islands within each cell."""
        from pyspark.sql import functions as F

        within = (*self.keys, CELL)
        begun = rows.withColumn(_BEGINS, F.expr(begins_sql(start, end, within, self._gap)))
        islands = begun.withColumn(_ISLAND, F.expr(island_sql(start, within)))
        ends = F.max(quote.name(end)).alias(END)
        states = islands.groupBy(*map(quote.name, within), _ISLAND).agg(ends, *beside)
        return states.withColumnRenamed(_ISLAND, START)


def begins_sql(start: str, end: str, within: tuple[str, ...], gap: timedelta) -> str:
    """Whether an island begins with a row: whether it starts more than the gap after all before it end.

    Rows that start together may be in any order: only the first can begin an island, and all start with it.
    """
    # the running maximum, never the end of the row before: that one may lie within an earlier and longer one
    ended = f"max(unix_micros({quote.name(end)})) OVER ({_ordered(start, within)} AND 1 PRECEDING)"
    # integers: adding an interval to a timestamp goes through the session's time zone, for every row
    return f"coalesce(unix_micros({quote.name(start)}) > {ended} + {micros(gap)}, true)"


def island_sql(start: str, within: tuple[str, ...]) -> str:
    """The start of the island that a row is in, for rows that have `begins_sql`.

    It names the island as a running count would; starts ascend, so it is the greatest one so far.
    """
    begun = f"CASE WHEN `{_BEGINS}` THEN {quote.name(start)} END"
    return f"max({begun}) OVER ({_ordered(start, within)} AND CURRENT ROW)"


def _ordered(start: str, within: tuple[str, ...]) -> str:
    key, time = quote.names(within), quote.name(start)
    return f"PARTITION BY {key} ORDER BY {time} ROWS BETWEEN UNBOUNDED PRECEDING"

"""Rolling: an Aggregate's measures over the last minutes, hours or days before the watermark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import DefinitionError
from twinlake.base.times import format_duration, is_days, parse_duration
from twinlake.kinds.definition import read, texts
from twinlake.kinds.dependencies import OverTables
from twinlake.kinds.expression import Stage
from twinlake.kinds.grid import Grid
from twinlake.kinds.kind import Kind, ViewClock, grid_of
from twinlake.kinds.lineage import behind_sql, same
from twinlake.kinds.windows import END, START, interval_sql, whole_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LAST = "last"
"""The column that says over which of the lengths a row is, as it is written in the definition."""


@dataclass(frozen=True, kw_only=True)
class Rolling(OverTables):
    """For each length in `last` and each key a row, with the measures over the windows of `of` in that time.

    Those are the newest that have ended by the watermark: [window_start, window_end) is `last` long and ends
    with the window before the one that the watermark is in. Without a watermark there are no rows.
    """

    kind = "rolling"
    of: str
    """The table whose measures it shows: an `Aggregate` in tumbling windows."""
    last: tuple[str, ...]
    """Durations, such as ("5 minutes", "1 day"); each key has a row for each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.last:
            raise self.error("it is over no time", 'name durations, like last=("5 minutes", "1 day")')
        lengths = [whole_seconds(self, LAST, text) for text in self.last]
        for text, length in zip(self.last, lengths, strict=True):
            if lengths.count(length) > 1:
                raise self.error_at_text(text, f"last {text!r} is given twice")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rolling:
        return read(cls, data, last=texts)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.of,)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return self._whole.view_keys

    @property
    def by(self) -> tuple[str, ...]:
        return self._whole.view_keys[1:]

    @property
    def output(self) -> tuple[str, ...]:
        return (START, END, *self.timeless)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def in_part(self) -> str:
        return "A length that reaches back before the sample has its sampled windows alone, in both versions."

    @property
    def timeless(self) -> tuple[str, ...]:
        """All but the moments themselves: at one position there is one watermark, and so one set of windows;
        what was measured in them is what comparisons of versions are about."""
        return self._whole.timeless

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return iter(())

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return iter(())

    def unfit(self, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
        of = tables[self.of]
        grid = grid_of(of)
        taken = [name for name in of.output if name.lower() == LAST] if grid else []
        whole = None
        try:
            whole = None if taken else of.unwindowed(LAST)
        except DefinitionError:  # it measures a column of that name
            taken = [LAST]
        if taken:
            why = f"{self.of} has a column {taken[0]}, and so has every table of kind {self.kind}"
            yield self.error_at_text(self.of, why, f"name it otherwise in {self.of}")
        elif grid is None or whole is None:
            why = f"it reads {self.of}, which is no Aggregate in tumbling windows"
            remedy = f"give {self.of} window=Tumbling(...), or name an Aggregate that has one"
            yield self.error_at_text(self.of, why, remedy)
        else:
            for text in self.last:
                if parse_duration(text) % grid.size or (grid.runs and not is_days(text)):
                    size = format_duration(grid.size)
                    why = f"{text} is not made of whole windows of {self.of}, which are {size} long"
                    yield self.error_at_text(text, why)
                elif of.ending and parse_duration(text) + grid.slack > of.ending.kept:
                    why = f"{text} is longer than {self.of} shows its windows"
                    yield self.error_at_text(text, why, f"give {self.of} a longer retention")

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        of = self.table(self.of)
        grid, clock = grid_of(of), of.clock
        assert grid is not None and clock is not None, f"{self.of} is unfit"
        watermark = view_clock.watermark(clock)
        return "\nUNION ALL\n".join(
            self._over(text, grid, watermark, relations[self.of], scaled) for text in self.last
        )

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        windows = [f"`s`.`{START}` >= `v`.`{START}`", f"`s`.`{END}` <= `v`.`{END}`"]
        return behind_sql(source, shown, [*same(self._whole.view_keys[1:]), *windows])

    def _over(self, last: str, grid: Grid, watermark: str, states: str, scaled: tuple[str, ...]) -> str:
        """The rows of one length. Each length is a query of its own: a short one reads few files, and one
        that a filter on `last` leaves out reads none."""
        length, cell = parse_duration(last), grid.cell_sql(f"unix_micros({watermark})")
        end = f"timestamp_micros({cell})"
        start, near = f"{end} - {interval_sql(length)}", ""
        if grid.runs:
            # a variable of a lambda, so that its text stands there once
            moved = f"timestamp_micros({grid.moved_sql('_end', -(length // grid.size))})"
            start = f"transform(array({cell}), _end -> {moved})[0]"
            # a condition that tells files apart, which lambdas do not
            first = f"{watermark} - {interval_sql(length + grid.size + grid.slack)}"
            near = f" AND `{START}` >= {first} AND `{START}` <= {watermark}"
        named = f"{quote.string(last)} AS `{LAST}`"
        within = f"(SELECT *, {named} FROM {states} WHERE `{START}` >= {start} AND `{START}` < {end}{near})"
        rows = self._whole.view({self.of: within}, ViewClock(), scaled)
        return f"SELECT {start} AS `{START}`, {end} AS `{END}`, `rolled`.*\nFROM (\n{rows}\n) AS `rolled`"

    @property
    def _whole(self) -> Kind:
        """What states of some windows show as one; the length is their first key."""
        found = self.table(self.of).unwindowed(LAST) if self.tables else None
        if found is None:
            raise self.error_at_text(self.of, f"it is not known what {self.of} measures", "bind it first")
        return found

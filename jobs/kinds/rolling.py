"""Rolling: an Aggregate's measures over the last minutes, hours or days before the watermark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.kinds.aggregate import Aggregate
from jobs.kinds.definition import read, texts
from jobs.kinds.expression import Stage
from jobs.kinds.kind import Moment
from jobs.kinds.over_tables import OverTables
from jobs.kinds.windows import END, START, Tumbling, cell_sql, interval_sql, whole_seconds
from jobs.times import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.errors import DefinitionError

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
    """An Aggregate in tumbling windows."""
    last: tuple[str, ...]
    """Durations, such as ("5 minutes", "1 day")."""

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
        return (LAST, *self._aggregate.keys)

    @property
    def by(self) -> tuple[str, ...]:
        return self._aggregate.keys

    @property
    def output(self) -> tuple[str, ...]:
        return (START, END, *self.timeless)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def timeless(self) -> tuple[str, ...]:
        """All but the moments themselves: at one position there is one watermark, and so one set of windows;
        what was measured in them is what comparisons of versions are about."""
        return (LAST, *self._aggregate.keys, *self._aggregate.measures)

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return iter(())

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        of = self.tables.get(self.of)
        if not isinstance(of, Aggregate) or not isinstance(of.window, Tumbling):
            why = f"it reads {self.of}, which is no Aggregate in tumbling windows"
            yield self.error_at_text(self.of, why, f"give {self.of} window=Tumbling(...)")
        else:
            for name in (*of.keys, *of.measures):
                if name.lower() == LAST:
                    why = f"{self.of} has a column {name}, and so has every table of kind {self.kind}"
                    yield self.error_at_text(self.of, why, f"name it otherwise in {self.of}")
            for text in self.last:
                if parse_duration(text) % of.window.length:
                    why = f"{text} is not made of whole windows of {self.of}, which are {of.window.size} long"
                    yield self.error_at_text(text, why)

    def view(self, relations: Mapping[str, str], moment: Moment, scaled: tuple[str, ...] = ()) -> str:
        of = self._aggregate
        assert of.window is not None, f"{of.name} is unfit"
        watermark = f"unix_micros({moment.watermark(of.clock)})"
        end = f"timestamp_micros({cell_sql(watermark, of.window.length)})"
        return "\nUNION ALL\n".join(self._over(text, end, relations[of.name], scaled) for text in self.last)

    def _over(self, last: str, end: str, states: str, scaled: tuple[str, ...]) -> str:
        """The rows of one length. Each length is a query of its own: a short one reads few files, and one
        that a filter on `last` leaves out reads none."""
        of = self._aggregate
        start = f"{end} - {interval_sql(parse_duration(last))}"
        named = f"{quote.string(last)} AS `{LAST}`"
        within = f"(SELECT *, {named} FROM {states} WHERE `{START}` >= {start} AND `{START}` < {end})"
        # the states of some windows are states of all time in them
        columns = {name: sql for name, sql in of.columns.items() if name.lower() != LAST} | {LAST: "''"}
        merged = replace(of, window=None, keys=(LAST, *of.keys), columns=columns)
        rows = merged.view({of.name: within}, Moment(), scaled)
        return f"SELECT {start} AS `{START}`, {end} AS `{END}`, `rolled`.*\nFROM (\n{rows}\n) AS `rolled`"

    @property
    def _aggregate(self) -> Aggregate:
        found = self.tables.get(self.of)
        if not isinstance(found, Aggregate):
            raise self.error_at_text(self.of, f"it is not known what {self.of} measures", "bind it first")
        return found

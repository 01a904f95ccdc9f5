"""Kinds and a measure of a third party's package; `tests.plugin.installed` installs it into a folder.

`Ages` (stored) keeps the first and last event time of each region, `Statuses` (a view) counts the records of
each status, `LogSum` is a measure of doubles that compares with a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.kinds import evidence, steps
from twinlake.kinds.definition import Definition, pairs, read
from twinlake.kinds.expression import Stage
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.measure import Measure, Part, state_column
from twinlake.kinds.windows import ALL, Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Ages(Definition):
    """Stored: the first and last time of each key."""

    kind = "ages"
    stores_rows = True
    where: str | None = None
    columns: dict[str, str]
    key: str
    time: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ages:
        return read(cls, data, columns=pairs)

    view_keys = by = state_keys = property(lambda self: (self.key,))
    cells = property(lambda self: None)
    output = timeless = property(lambda self: (self.key, "oldest", "newest"))
    implied = property(lambda self: ())

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return steps.untyped(self, self.columns, steps.apply(self, rows[self.inputs[0]]))

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = evidence.hashed(steps.apply(self, rows))
        ends = (F.min(self.time).alias("oldest"), F.max(self.time).alias("newest"))
        return stepped.groupBy(self.key).agg(*ends, *evidence.from_rows())

    def merge(self, states: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        ends = (F.min("oldest").alias("oldest"), F.max("newest").alias("newest"))
        return states.groupBy(self.key).agg(*ends, *evidence.merged())

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        shown = f"{self.key}, min(oldest) AS oldest, max(newest) AS newest"
        return f"SELECT {shown} FROM {relations[self.name]} GROUP BY {self.key}"


@dataclass(frozen=True, kw_only=True)
class Statuses(Definition):
    """View: how many records have each status."""

    kind = "statuses"
    column: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Statuses:
        return read(cls, data)

    view_keys = by = property(lambda self: (self.column,))
    output = timeless = property(lambda self: (self.column, "n"))
    implied = property(lambda self: ())

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return iter(())

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return iter(())

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        parts = " UNION ALL ".join(f"SELECT {self.column} FROM {relations[name]}" for name in self.inputs)
        return f"SELECT {self.column}, count(1) AS n FROM ({parts}) GROUP BY {self.column}"


@dataclass(frozen=True)
class LogSum(Measure):
    """The sum of the natural logarithms of positive numbers."""

    kind = "log_sum"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        logarithm = f"ln(CAST({self.of} AS DOUBLE))"
        size = f"{name}__size"
        return (
            Part(name=f"{name}__logs", from_rows=f"sum({logarithm})", merge=self.value(name), scale=size),
            Part(name=size, from_rows=f"sum(abs({logarithm}))", merge=f"sum({size})", scale=size),
        )

    def value(self, name: str) -> str:
        return f"sum({state_column(name, 'logs')})"

    def scale(self, name: str) -> str | None:
        return f"sum({state_column(name, 'size')})"

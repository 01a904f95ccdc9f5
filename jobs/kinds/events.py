"""Events: at most one row per record, a view over the log; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.kinds import steps
from jobs.kinds.definition import Definition, pairs, read
from jobs.kinds.expression import Stage
from jobs.kinds.kind import Moment
from jobs.topics import coordinate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class Events(Definition):
    """A view kind over one topic: its valid records that meet `where`, with the columns of `columns`."""

    kind = "events"
    where: str | None = None
    columns: dict[str, str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.inputs) != 1:
            raise self.error(f"events are of one topic, not {len(self.inputs)}")
        steps.refuse_shape(self, self.columns)
        self.refuse_shown("column", self.columns)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Events:
        return read(cls, data, columns=pairs)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return coordinate.KEY

    @property
    def by(self) -> tuple[str, ...]:
        return coordinate.KEY

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.columns, *coordinate.NAMES)

    @property
    def implied(self) -> tuple[str, ...]:
        return coordinate.NAMES

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return steps.stages(self, rows[self.inputs[0]])

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return steps.untyped(self, self.columns, steps.apply(self, rows[self.inputs[0]]))

    def view(self, relations: Mapping[str, str], moment: Moment, scaled: tuple[str, ...] = ()) -> str:
        shown = [f"{quote.expression(sql)} AS {quote.name(name)}" for name, sql in self.columns.items()]
        where = f"\nWHERE {quote.expression(self.where)}" if self.where is not None else ""
        columns = ", ".join([*shown, quote.names(coordinate.NAMES)])
        return f"SELECT {columns}\nFROM {relations[self.inputs[0]]}{where}"

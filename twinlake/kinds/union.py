"""Union: tables of one shape over several topics, shown as the one table of all their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import DefinitionError
from twinlake.kinds.definition import read, texts
from twinlake.kinds.dependencies import OverTables
from twinlake.kinds.expression import Stage
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.lineage import behind_sql, same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OTHERS = (
    "name tables of kind Aggregate, Sessions, Latest or TopRows; rows of others are shown together by a "
    "Derived with UNION ALL"
)


@dataclass(frozen=True, kw_only=True)
class Union(OverTables):
    """The view that one table of the same definition would have over the records of all their topics.

    The states of the tables are merged, as states of one table are: each topic may be late, stopped or
    replayed by itself. A row is final once it is final by every topic's watermark.
    """

    kind = "union"
    of: tuple[str, ...]
    """Two tables or more, each of another topic: `Aggregate` or `Sessions` without `First`, `Last`, `ArgMin`
    and `ArgMax`, or `Latest` or `TopRows` with an order. They may differ in their topics and row-local steps;
    keys, windows, measures and the like are the same."""

    def __post_init__(self) -> None:
        if self.of == ():
            raise self.error("it is of no tables", 'name two, like of=("web_sales", "app_sales")')
        super().__post_init__()
        if len(self.of) < 2:
            raise self.error("it is of fewer than two tables", 'name two, like of=("web_sales", "app_sales")')

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Union:
        return read(cls, data, of=texts)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.of

    @property
    def view_keys(self) -> tuple[str, ...]:
        return self._first.view_keys

    @property
    def by(self) -> tuple[str, ...]:
        return self._first.by

    @property
    def output(self) -> tuple[str, ...]:
        return self._first.output

    @property
    def implied(self) -> tuple[str, ...]:
        return self._first.implied

    @property
    def timeless(self) -> tuple[str, ...]:
        return self._first.timeless

    @property
    def additive(self) -> tuple[str, ...]:
        return self._first.additive

    @property
    def time_column(self) -> str | None:
        return self._first.time_column

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return iter(())

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return iter(())

    def mismatched(self, stepped: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """States do not show it: sums of cents and of whole numbers are of one type, and so are sketches of
        texts and of numbers."""
        first, *others = self.of
        types = dict(stepped[first].dtypes)
        for name in others:
            for column, type_ in stepped[name].dtypes:
                if types.get(column, type_) != type_:
                    why = f"column {column} is {types[column]} in {first} and {type_} in {name}"
                    yield self.error_at_text(name, why, "cast it in one of them")

    def unfit(self, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
        first, shape, topics = self.of[0], None, dict[str, str]()
        for name in self.of:
            try:
                found = tables[name].shape()
            except DefinitionError as error:
                yield self.error_at_text(name, f"it reads {name}: {error.why_text}", error.remedy or _OTHERS)
                return
            shape = found if shape is None else shape
            for what in found if found["kind"] == shape["kind"] else ("kind",):
                if found[what] != shape[what]:
                    why = f"{first} and {name} differ in their {what}"
                    yield self.error_at_text(name, why, "let them differ in topics and row-local steps alone")
            (topic,) = tables[name].inputs
            if topic in topics:
                why = f"{topics[topic]} and {name} are both of topic {topic}: its records would count twice"
                yield self.error_at_text(name, why, "name one of them")
            topics[topic] = name

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        states = "\nUNION ALL\n".join(f"SELECT * FROM {relations[name]}" for name in self.of)
        rows = self._first.view({self._first.name: f"(\n{states}\n)"}, view_clock, scaled)
        follows = self.follows_watermark(view_clock)
        if not follows:
            return rows
        # what the first table says of its own topic's watermark is left out
        columns = ", ".join(f"{sql} AS {quote.name(name)}" for name, sql in follows.items())
        return f"SELECT * EXCEPT ({quote.names(tuple(follows))}),\n  {columns}\nFROM (\n{rows}\n)"

    def follows_watermark(self, view_clock: ViewClock) -> Mapping[str, str]:
        """Conditions: each is true once it is for every table."""
        each = [self.table(name).follows_watermark(view_clock) or {} for name in self.of]
        return {name: " AND ".join(f"({one[name]})" for one in each) for name in each[0]}

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        return behind_sql(source, shown, same(self.by))

    @property
    def _first(self) -> Kind:
        """The tables are of one shape: what one says of its columns holds for all."""
        if self.of[0] not in self.tables:
            raise self.error_at_text(self.of[0], f"it is not known what {self.of[0]} shows", "bind it first")
        return self.table(self.of[0])

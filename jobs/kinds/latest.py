"""Latest: the newest row of each key. A delete is a row that wins and is hidden, and is never forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.kinds import evidence, steps
from jobs.kinds.definition import Definition, pairs, read, texts
from jobs.kinds.equality import has_order
from jobs.kinds.expression import Expression, Stage, holds_sql
from jobs.kinds.kind import Moment
from jobs.kinds.windows import ALL, Windows
from jobs.topics import coordinate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.errors import DefinitionError
    from jobs.kinds.windows import Grid

DELETED = "_deleted"
_WINNER = "_winner"


@dataclass(frozen=True, kw_only=True)
class Latest(Definition):
    """State: the keys, `_deleted`, `_order_<i>`, the coordinate, the values, and the evidence."""

    kind = "latest"
    stores_rows = True
    where: str | None = None
    columns: dict[str, str]
    keys: tuple[str, ...]
    order: tuple[str, ...] = ()
    """Columns by which the newest is found; NULL is before every value, ties go to the later coordinate.

    Without any it follows the log: the latest coordinate wins, whatever the row says of its time."""
    delete_when: str | None = None
    """SQL over `columns`: a row in which it is true wins like any other and hides its key."""
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        for what, names in (("key", self.keys), ("value", self.values)):
            if not names:
                raise self.error(f"it has no {what}s")
            self.refuse_unknown(what, names, self.columns)
        self.refuse_unknown("order column", self.order, self.columns)
        self.refuse_shown("output column", self.output)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Latest:
        return read(cls, data, columns=pairs, keys=texts, order=texts, values=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return self.keys

    @property
    def by(self) -> tuple[str, ...]:
        return self.keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return self.keys

    @property
    def cells(self) -> Grid | None:
        return None

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.keys, *self.values)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        read_rows = rows[self.inputs[0]]
        yield from steps.stages(self, read_rows)
        if self.delete_when is not None:
            condition = Expression(what="delete_when", sql=self.delete_when, type="boolean")
            yield Stage(rows=steps.apply(self, read_rows), expressions=(condition,))

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        yield from steps.untyped(self, self.columns, stepped)
        types = dict(stepped.dtypes)
        for name in (*self.keys, *self.order):
            if not has_order(types[name]):
                why = f"column {name}: {types[name]} cannot be a key or order"
                yield self.error_at_text(self.columns[name], why)
        for name in self.values:
            if "map<" in types[name] or "variant" in types[name]:
                yield self.error_at_text(
                    self.columns[name], f"column {name}: {types[name]} cannot be a value"
                )

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = evidence.hashed(steps.apply(self, rows))
        deleted = F.expr(holds_sql(self.delete_when))
        order = {_order(index): F.col(quote.name(name)) for index, name in enumerate(self.order)}
        return self._newest(stepped.withColumns({DELETED: deleted, **order}), evidence.from_rows())

    def merge(self, states: DataFrame) -> DataFrame:
        return self._newest(states, evidence.merged())

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], moment: Moment, scaled: tuple[str, ...] = ()) -> str:
        values = ", ".join(f"`{_WINNER}`.{quote.name(name)} AS {quote.name(name)}" for name in self.values)
        keys, relation = quote.names(self.keys), relations[self.name]
        return (
            f"SELECT {keys}, {values}\n"
            f"FROM (SELECT {keys}, {self._winner} AS `{_WINNER}` FROM {relation} GROUP BY {keys})\n"
            f"WHERE NOT `{_WINNER}`.`{DELETED}`"
        )

    @property
    def _orders(self) -> tuple[str, ...]:
        """The state columns that decide which row is the newest; the last of them make them unique."""
        return (*(_order(index) for index in range(len(self.order))), *coordinate.KEY)

    @property
    def _winner(self) -> str:
        # max of one struct: its head decides, and the head is unique because it ends in the coordinate
        return f"max(struct({quote.names((*self._orders, DELETED, *self.values))}))"

    def _newest(self, rows: DataFrame, beside: list[Column]) -> DataFrame:
        from pyspark.sql import functions as F

        winner = F.expr(self._winner).alias(_WINNER)
        newest = rows.groupBy(*map(quote.name, self.keys)).agg(winner, *beside)
        kept = (DELETED, *self._orders, *self.values)
        picked = [F.col(_WINNER).getField(name).alias(name) for name in kept]
        keys = [F.col(quote.name(key)) for key in self.keys]
        return newest.select(*keys, *picked, *evidence.NAMES)


def _order(index: int) -> str:
    return f"_order_{index}"

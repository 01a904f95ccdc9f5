"""Latest: the newest row of each key. A delete is a row that wins and is hidden, and is never forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds import evidence, row_order, steps
from twinlake.kinds.barriers import BARRIER, Barriers, Snapshot, SourcePlace
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.expression import Stage, holds_sql
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.lineage import behind_sql, same_steps
from twinlake.kinds.windows import ALL, Windows
from twinlake.topics import change_data

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.grid import Grid

DELETED = "_deleted"
_WINNER, _SINCE = "_winner", "_since"


@dataclass(frozen=True, kw_only=True)
class Latest(Definition):
    """State: the keys, `_deleted`, `_order_<i>`, the record id, the values, and the evidence.

    Of a change topic that tells of snapshots or truncates the state has the columns of `kinds.barriers` too.
    """

    kind = "latest"
    stores_rows = True
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. What else the definition names are these columns."""
    keys: tuple[str, ...]
    """Columns of which the view has one row per value; at least one."""
    order: tuple[str, ...] = ()
    """Columns by which the newest is found; NULL is before every value, ties go to the later record id.

    Without any it follows the log: the latest record id wins, whatever the row says of its time."""
    delete_when: str | None = None
    """SQL over `columns`: a row in which it is true wins like any other and hides its key."""
    snapshot: Snapshot | None = None
    """A complete snapshot hides the keys whose newest row is older than its first record; `where` hides none
    of its records from it."""
    truncate_when: str | None = None
    """SQL over the topic's rows: where it is true, the record hides every key whose newest row is older."""
    source_place: SourcePlace | None = None
    """Where in the source's own log a record was: a barrier hides no row whose place is not before its own,
    but where the topic's order is certain."""
    values: tuple[str, ...]
    """Columns that the view shows beside the keys; at least one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        row_order.refuse(self, self.columns, self.keys, self.order, self.values)
        if self.order and self._barriers:
            why = "it has order columns, but snapshots and truncates hide what came before them in the log"
            raise self.error(why, "leave `order` out: then it follows the log")
        if self.source_place is not None and not self._barriers:
            raise self.error(
                "it has a source_place, but neither snapshots nor truncates", "leave `source_place` out"
            )
        self.refuse_shown("output column", self.output)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Latest:
        return read(
            cls, data, columns=pairs, keys=texts, order=texts, values=texts, snapshot=Snapshot.from_json,
            source_place=SourcePlace.from_json,
        )  # fmt: skip

    @property
    def view_keys(self) -> tuple[str, ...]:
        return self.keys

    @property
    def by(self) -> tuple[str, ...]:
        return () if self._barriers else self.keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        return (*self.keys, *self._barriers.state_keys)

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
    def in_part(self) -> str:
        return "A key whose newest record is older than the sample is in neither version."

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        read_rows = rows[self.inputs[0]]
        yield Stage(rows=read_rows, expressions=tuple(self._barriers.expressions()))
        yield from row_order.stages(self, read_rows, self.delete_when)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        yield from row_order.problems(self, self.columns, stepped, (*self.keys, *self.order), self.values)

    def type_errors(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """A delete that cannot win: NULL is before every value, and a tombstone's fields are NULL."""
        for newest in self.order[:1]:
            if row_order.loses_tombstones(self, rows[self.inputs[0]], newest, self.delete_when):
                why = f"a tombstone deletes no key that has a row: {newest}, by which it is ordered, is NULL"
                sql = self.columns[newest]
                yield self.error_at_text(sql, why, row_order.known_of_tombstones(sql))

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return None if self._barriers else steps.apply(self, rows)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        changes = self._barriers.without(rows)
        stepped = evidence.hashed(steps.apply(self, changes, beside=self._barriers.columns))
        deleted = F.expr(holds_sql(self.delete_when))
        ordered = stepped.withColumns({DELETED: deleted, **row_order.computed(self.order)})
        return self._barriers.from_rows(self._newest(ordered, evidence.from_rows()), rows)

    def merge(self, states: DataFrame) -> DataFrame:
        keys = self._newest(self._barriers.of_keys(states), evidence.merged())
        return self._barriers.merged(keys, states)

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        values = ", ".join(f"`{_WINNER}`.{quote.name(name)} AS {quote.name(name)}" for name in self.values)
        keys, relation = quote.names(self.keys), relations[self.name]
        newest = f"SELECT {keys}, {self._winner} AS `{_WINNER}` FROM {relation}"
        if self._barriers:
            newest = (
                f"SELECT *, {self._barriers.since(relation)} AS `{_SINCE}`\n"
                f"FROM ({newest} WHERE {BARRIER} IS NULL GROUP BY {keys})"
            )
            hidden = f"\n  AND NOT {self._barriers.is_before(quote.name(_WINNER), quote.name(_SINCE))}"
        else:
            newest, hidden = f"{newest} GROUP BY {keys}", ""
        return f"SELECT {keys}, {values}\nFROM ({newest})\nWHERE NOT `{_WINNER}`.`{DELETED}`{hidden}"

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        return behind_sql(steps.stepped_sql(self, None, source), shown, same_steps(self.keys))

    def shape(self) -> Mapping[str, Any]:
        return row_order.shape(self, self.order)

    @property
    def decided_by(self) -> tuple[str, ...]:
        return row_order.decided_by(self.order)

    @property
    def _barriers(self) -> Barriers:
        return Barriers(snapshot=self.snapshot, truncate_when=self.truncate_when, place=self.source_place)

    @property
    def _orders(self) -> tuple[str, ...]:
        """The state columns that decide which row is the newest; the last of them make them unique."""
        return row_order.deciding(self.order)

    @property
    def _winner(self) -> str:
        # max of one struct: its head decides, and the head is unique because it ends in the record id
        return f"max(struct({quote.names((*self._orders, DELETED, *self._barriers.kept, *self.values))}))"

    def _newest(self, rows: DataFrame, beside: list[Column]) -> DataFrame:
        from pyspark.sql import functions as F

        winner = F.expr(self._winner).alias(_WINNER)
        newest = rows.groupBy(*map(quote.name, self.keys)).agg(winner, *beside)
        kept = (DELETED, *self._orders, *self._barriers.kept, *self.values)
        picked = [F.col(_WINNER).getField(name).alias(name) for name in kept]
        keys = [F.col(quote.name(key)) for key in self.keys]
        return newest.select(*keys, *picked, *evidence.NAMES)


_GONE = "change_is_delete"


def mirror(database: str, *, keys: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """The arguments of `Latest(name=..., inputs=..., **mirror(...))` over a topic whose contract says
    `changeData`: the database is what it says there, keys and values are columns of the mirrored table.

    It follows the log; complete snapshots and truncates hide what came before them.
    """
    of, last = change_data.whole_snapshot(database)
    log, at = change_data.place(database)
    named = {name: quote.name(name) for name in (*keys, *values)}
    return {
        "columns": {
            **{name: f"IF(op = 'd', before.{named[name]}, after.{named[name]})" for name in keys},
            **{name: f"after.{named[name]}" for name in values},
            _GONE: "op = 'd'",
        },
        "keys": tuple(keys),
        "values": tuple(values),
        "delete_when": _GONE,
        "snapshot": Snapshot(of=of, last=last),
        "truncate_when": "op = 't'",
        "source_place": SourcePlace(of=log, at=at),
    }

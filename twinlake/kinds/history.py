"""History: each version of a key's row with the time from which and up to which it was valid (SCD type 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds import evidence, row_order, steps
from twinlake.kinds.definition import Definition, pairs, read, texts
from twinlake.kinds.expression import Stage, holds_sql
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.lineage import behind_sql, row_of_step, same_steps
from twinlake.kinds.measures.measure import plain
from twinlake.kinds.windows import ALL, Windows, mistimed
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.grid import Grid

VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"
"""A version is valid in [valid_from, valid_to); the current one of a key has no end."""
DELETED = "_deleted"
_FROM, _NEXT, _CHANGED, _TO = "_from", "_next", "_changed", "_to"


@dataclass(frozen=True, kw_only=True)
class History(Definition):
    """State: each row, which late ones may put into any version: the keys, `valid_from` (its own time),
    `_order_<i>`, the record id, `_deleted`, the values, and the evidence."""

    kind = "history"
    stores_rows = True
    where: str | None = None
    """SQL: the rows that stay are those in which it is true. Without it all stay."""
    columns: dict[str, str]
    """Column name -> SQL over the topic's fields. What else the definition names are these columns."""
    keys: tuple[str, ...]
    """Columns whose values have versions of their own; at least one."""
    order: tuple[str, ...] = ()
    """A timestamp column, from which on a row is valid, and perhaps further ones that decide between rows of
    one time, of which only the greatest counts; NULL is before every value, ties go to the later record id. A
    row without a time is in no history.

    Without any it follows the log: a row is valid from Kafka's time of its record on, and after those before
    it in its partition."""
    delete_when: str | None = None
    """SQL over `columns`: a row in which it is true ends the version before it, and begins none."""
    values: tuple[str, ...]
    """Columns that the view shows of each version; at least one. A row in which all of them are as they were
    begins no version."""

    def __post_init__(self) -> None:
        super().__post_init__()
        steps.refuse_shape(self, self.columns)
        row_order.refuse(self, self.columns, self.keys, self.order, self.values)
        own = (VALID_FROM, VALID_TO, IS_CURRENT)
        self.refuse_shown("output column", (*self.keys, *self.values), own)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> History:
        return read(cls, data, columns=pairs, keys=texts, order=texts, values=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*self.keys, VALID_FROM)

    @property
    def by(self) -> tuple[str, ...]:
        return self.keys

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The record id identifies a row; files are sorted by key and time, so that they prune."""
        return (*record_id.KEY, VALID_FROM, *reversed(self.keys))

    @property
    def cells(self) -> Grid | None:
        return None

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.keys, VALID_FROM, VALID_TO, IS_CURRENT, *self.values)

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def in_part(self) -> str:
        return "What was valid before the first record that the sample has of a key is in neither version."

    @property
    def timeless(self) -> tuple[str, ...]:
        return self.output

    @property
    def time_column(self) -> str:
        return VALID_FROM

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return row_order.stages(self, rows[self.inputs[0]], self.delete_when)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        stepped = steps.apply(self, rows[self.inputs[0]])
        ordered = (*self.keys, *self.order[1:])
        yield from row_order.problems(self, self.columns, stepped, ordered, self.values)
        for time in self.order[:1]:
            yield from mistimed(self, "versions are", time, dict(stepped.dtypes))

    def type_errors(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """A delete that ends nothing: a tombstone's fields are NULL, and a row without a time is left out."""
        for time in self.order[:1]:
            if row_order.loses_tombstones(self, rows[self.inputs[0]], time, self.delete_when):
                why = f"a tombstone ends no version: {time}, from which on a row is valid, is NULL"
                sql = self.columns[time]
                yield self.error_at_text(sql, why, row_order.known_of_tombstones(sql))

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        return steps.apply(self, rows)

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        from pyspark.sql import functions as F

        stepped = evidence.hashed(steps.apply(self, rows))
        timed = stepped.where(f"{quote.name(self._time)} IS NOT NULL")
        types = dict(stepped.dtypes)
        made = {
            # 0.0 for -0.0 as every merge makes it: a changelog sends a key by its bytes
            **{name: F.expr(plain(name, types[name])) for name in self.keys},
            VALID_FROM: F.col(quote.name(self._time)),
            **row_order.computed(self.order[1:]),
            DELETED: F.expr(holds_sql(self.delete_when)),
        }
        # one SELECT: a column of the definition may have the name of one that the state has
        columns = (made.get(name, F.col(quote.name(name))).alias(name) for name in self._state)
        return timed.select(*columns, *evidence.of_one_row())

    def merge(self, states: DataFrame) -> DataFrame:
        return evidence.once(states, self.state_keys, self._state)

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        return {}

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        keys, values = quote.names(self.keys), quote.names(self.values)
        over = f"OVER (PARTITION BY {keys} ORDER BY `{_FROM}`, {quote.names(self._orders)})"
        timed = f"SELECT *, {self._from(VALID_FROM, keys)} AS `{_FROM}` FROM {relations[self.name]}"
        # of the rows of one time the last alone is valid for any time at all
        followed = f"SELECT *, lead(`{_FROM}`) {over} AS `{_NEXT}` FROM ({timed})"
        valid = f"({followed})\n    WHERE `{_NEXT}` IS NULL OR `{_FROM}` < `{_NEXT}`"
        # NULL for a delete, and before the first row: a delete that follows nothing changes nothing
        row = f"IF(`{DELETED}`, NULL, struct({values}))"
        compared = f"SELECT *, NOT ({row} <=> lag({row}) {over}) AS `{_CHANGED}`\n    FROM {valid}"
        ended = f"SELECT *, lead(`{_FROM}`) {over} AS `{_TO}` FROM (\n    {compared}\n  ) WHERE `{_CHANGED}`"
        return (
            f"SELECT {keys}, `{_FROM}` AS `{VALID_FROM}`, `{_TO}` AS `{VALID_TO}`,"
            f" `{_TO}` IS NULL AS `{IS_CURRENT}`, {values}\nFROM (\n  {ended}\n)\nWHERE NOT `{DELETED}`"
        )

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        """The rows of its time, of which the first began the version, and those that ended it."""
        of_keys = behind_sql(steps.stepped_sql(self, None, source), shown, same_steps(self.keys))
        keys = ", ".join(map(row_of_step, self.keys))
        time = row_of_step(self._time) if self.order else record_id.TIMESTAMP
        timed = f"(SELECT *, {self._from(time, keys)} AS `{_FROM}`\nFROM ({of_keys}))"
        within = [
            f"`s`.`{_FROM}` >= `v`.`{VALID_FROM}`",
            f"(`v`.`{VALID_TO}` IS NULL OR `s`.`{_FROM}` <= `v`.`{VALID_TO}`)",
        ]
        return behind_sql(timed, shown, [*same_steps(self.keys), *within])

    @property
    def decided_by(self) -> tuple[str, ...]:
        """The greatest of those with the least time."""
        return (f"-unix_micros(`{_FROM}`)", *row_order.decided_by(self.order[1:]))

    @property
    def _time(self) -> str:
        """The column of the step with a row's own time."""
        return self.order[0] if self.order else record_id.TIMESTAMP

    @property
    def _orders(self) -> tuple[str, ...]:
        """The state columns that decide which of the rows of one time is valid; the last make them unique."""
        return row_order.deciding(self.order[1:])

    @property
    def _state(self) -> tuple[str, ...]:
        return (*self.keys, VALID_FROM, *self._orders, DELETED, *self.values)

    def _from(self, time: str, keys: str) -> str:
        """SQL: from when on a row is valid, by its own time.

        Kafka's clock may go back, the order of a partition may not: a row is valid no sooner than one before.
        """
        if self.order:
            return time
        order = "ORDER BY `_epoch`, `_offset` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return f"max({time}) OVER (PARTITION BY {keys}, `_partition` {order})"

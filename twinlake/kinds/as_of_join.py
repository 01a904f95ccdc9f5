"""AsOfJoin: rows of events with the row of another table that was valid at their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds.definition import pairs, read, texts
from twinlake.kinds.expression import Expression, Stage, holds_sql
from twinlake.kinds.join import RECORD_IDS, Join
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.store import HOME
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEXT, _DELETED = "_valid_to", "_deleted"


@dataclass(frozen=True, kw_only=True)
class AsOfJoin(Join):
    """Each left row with the right one that has the greatest (time, record id) at or before its time.

    Where that one is a delete there is no partner. With `left` rows without a partner are shown, too.
    """

    kind = "as_of_join"
    hows = ("inner", "left")
    how: str = "left"
    """What is shown: with "left" every left row, with "inner" those alone that have a partner."""
    delete_when: str | None = None
    """SQL over the right table's columns: a row in which it is true is valid like any other, as nothing."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AsOfJoin:
        return read(cls, data, columns=pairs, on=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return RECORD_IDS["left"]

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        for stage in super().stages(rows):
            yield stage
            if self.delete_when is not None:
                condition = Expression(what="delete_when", sql=self.delete_when, type="boolean")
                yield Stage(rows=self.side_rows("right", rows), expressions=(condition,))

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        join = "JOIN" if self.how == "inner" else "LEFT JOIN"
        at, valid_from = self.time("left"), self.time("right")
        on = self.matches(
            f"{valid_from} <= {at}",
            f"({at} < `right`.`{_NEXT}` OR `right`.`{_NEXT}` IS NULL)",
            f"NOT `right`.`{_DELETED}`",
        )
        return (
            f"{self.shown('left', self.final('left', timedelta(0), view_clock))}\n"
            f"FROM (SELECT * FROM {relations[self.left]} WHERE `{HOME}`) AS `left`\n"
            f"{join} (\n{self._history(relations[self.right])}\n) AS `right`\n  ON {on}"
        )

    def _history(self, right: str) -> str:
        """All right rows with the time up to which each is valid, NULL for the last of a key.

        Of several with one time all but the last are valid for no time at all.
        """
        keys, time = quote.names(self.on), quote.name(self.store(self.right).on)
        order = f"PARTITION BY {keys} ORDER BY {time}, {quote.names(record_id.KEY)}"
        return (
            f"  SELECT *, lead({time}) OVER ({order}) AS `{_NEXT}`,\n"
            f"    {holds_sql(self.delete_when)} AS `{_DELETED}`\n  FROM {right} WHERE `{HOME}`"
        )

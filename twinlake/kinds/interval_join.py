"""IntervalJoin: rows of two tables of events whose times are near each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base.times import format_duration, parse_duration
from twinlake.kinds.definition import pairs, read, texts
from twinlake.kinds.join import RECORD_IDS, Join
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.store import CELL, HOME, Store
from twinlake.kinds.windows import interval_sql, whole_seconds

if TYPE_CHECKING:
    from twinlake.base.errors import DefinitionError


@dataclass(frozen=True, kw_only=True)
class IntervalJoin(Join):
    """A row for each pair with the right time in [left time - before, left time + after].

    With `left` also one for each left row without a partner, with `full` for each right one, too. Rows meet
    in the cell of the left row, so the right table keeps its rows in all cells that left rows may be in.
    """

    kind = "interval_join"
    hows = ("inner", "left", "full")
    how: str = "inner"
    """What is shown: with "inner" pairs alone, with "left" also left rows without a partner, with "full" such
    right ones, too."""
    before: str = "0 seconds"
    """How much earlier than the left row the right one may be; inclusive."""
    after: str = "0 seconds"
    """How much later than the left row the right one may be; inclusive."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_seconds(self, "before", self.before, or_zero=True)
        whole_seconds(self, "after", self.after, or_zero=True)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> IntervalJoin:
        return read(cls, data, columns=pairs, on=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return (*RECORD_IDS["left"], *RECORD_IDS["right"])

    def unfit(self, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
        found = list(super().unfit(tables))
        yield from found
        left, right = tables[self.left].kept, tables[self.right].kept
        if found or left is None or right is None:
            return
        if left.size != right.size:
            why = f"the cells of {self.left} are {left.cell} long, those of {self.right} {right.cell}"
            yield self.error_at_text(self.right, why, "rows meet in cells: make both equal")
        yield from self._out_of_reach(self.right, right, self._after, self._before)
        if self.how == "full":
            yield from self._out_of_reach(self.left, left, self._before, self._after)

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        left, right = relations[self.left], relations[self.right]
        join = "JOIN" if self.how == "inner" else "LEFT JOIN"
        paired = (
            f"{self.shown('left', self.final('left', self._after, view_clock))}\n"
            f"FROM (SELECT * FROM {left} WHERE `{HOME}`) AS `left`\n"
            f"{join} (SELECT * FROM {right}) AS `right`\n  ON {self._near}"
        )
        if self.how != "full":
            return paired
        # nothing is joined to what is left, so that there are columns of a left row, and they are NULL
        alone = (
            f"{self.shown('right', self.final('right', self._before, view_clock))}\n"
            f"FROM (\n  SELECT * FROM (SELECT * FROM {right} WHERE `{HOME}`) AS `right`\n"
            f"  LEFT ANTI JOIN (SELECT * FROM {left}) AS `left`\n  ON {self._near}\n) AS `right`\n"
            f"LEFT JOIN (SELECT * FROM {left} WHERE false) AS `left` ON true"
        )
        return f"{paired}\nUNION ALL\n{alone}"

    @property
    def _before(self) -> timedelta:
        return parse_duration(self.before, or_zero=True)

    @property
    def _after(self) -> timedelta:
        return parse_duration(self.after, or_zero=True)

    @property
    def _near(self) -> str:
        left, right = self.time("left"), self.time("right")
        return self.matches(
            f"`left`.`{CELL}` = `right`.`{CELL}`",
            f"{right} >= {left} - {interval_sql(self._before)}",
            f"{right} <= {left} + {interval_sql(self._after)}",
        )

    def _out_of_reach(
        self, name: str, store: Store, back: timedelta, ahead: timedelta
    ) -> Iterator[DefinitionError]:
        """A problem where a row of this table may be missing in a cell that it is looked for from."""
        for what, needed, given in (("back", back, store.reach_back), ("ahead", ahead, store.reach_ahead)):
            if given < needed:
                has = format_duration(given) if given else "0 seconds"
                why = (
                    f"the store of {name} reaches {has} {what}, rows are looked for {format_duration(needed)}"
                )
                yield self.error_at_text(name, why, f'let it have {what}="{format_duration(needed)}"')

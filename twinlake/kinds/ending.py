"""Owns when rows of a window are shown no more: so long after its end as the table's `retention` says, by the
watermark, as for `final`. So both layers, and every reader at one position, leave out the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from twinlake.base.times import moment_or_none
from twinlake.kinds.clock import EVENT_TIME, TableClock, in_array
from twinlake.kinds.definition import Definition
from twinlake.kinds.grid import micros
from twinlake.kinds.windows import ALL, START, Window, Windows, end_sql, whole_seconds


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Rows of such a window are shown until the clock is `kept` past its end."""

    clock: TableClock
    window: Window
    kept: timedelta

    def is_shown_sql(self, watermark: str) -> str:
        """The condition on a row with the window's start, where its clock has come so far (SQL); one that is
        not known ends nothing."""
        end = end_sql(self.window, START, self.kept)
        return f"coalesce({end} > {in_array(watermark, START)}, true)"

    def shown(
        self, watermarks: Mapping[str, int | None], clocks: Mapping[str, Mapping[str, int | None]]
    ) -> Windows:
        """The windows that are shown, and so the cells that they are made of, where watermarks and the log's
        own clocks stand so, by topic, in microseconds."""
        topic, grid = self.clock.topic, self.window.grid
        of_log = clocks.get(topic, {}).get(self.clock.time)
        at = watermarks.get(topic) if self.clock.time == EVENT_TIME else of_log
        if at is None:
            return ALL
        first = grid.moved(grid.cell(at - micros(self.kept)), 1 - self.window.length // grid.size)
        return Windows.between(moment_or_none(first))


def refuse_retention(definition: Definition, retention: str, window: Window | None) -> None:
    """DefinitionError for one that is no duration of whole seconds, or of a table without windows."""
    whole_seconds(definition, "retention", retention)
    if window is None:
        raise definition.error_at_text(
            retention, "it has a retention and no window: its rows are of no time after which they end",
            "leave out the retention, or give it a window",
        )  # fmt: skip

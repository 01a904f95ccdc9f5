"""Owns when rows of a window are shown no more: so long after its end as the table's `retention` says, by the
watermark, as for `final`. So both layers, and every reader at one position, leave out the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from twinlake.base.times import moment_or_none
from twinlake.kinds.clock import EVENT_TIME, TableClock
from twinlake.kinds.definition import Definition
from twinlake.kinds.windows import (
    ALL,
    Grid,
    Hopping,
    Tumbling,
    Windows,
    in_array,
    interval_sql,
    micros,
    whole_seconds,
)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Rows of a window so long are shown until the clock is `kept` past its end."""

    clock: TableClock
    grid: Grid
    length: timedelta
    kept: timedelta

    @property
    def after(self) -> timedelta:
        """From the start of the window on."""
        return self.length + self.kept

    def is_shown_sql(self, watermark: str) -> str:
        """The condition on a row with the window's start, where its clock has come so far (SQL); one that is
        not known ends nothing."""
        start = self.grid.column
        return f"coalesce({start} + {interval_sql(self.after)} > {in_array(watermark, start)}, true)"

    def shown(
        self, watermarks: Mapping[str, int | None], clocks: Mapping[str, Mapping[str, int | None]]
    ) -> Windows:
        """The windows that are shown where watermarks and the log's own clocks stand so, by topic, in
        microseconds."""
        topic, size = self.clock.topic, micros(self.grid.size)
        of_log = clocks.get(topic, {}).get(self.clock.time)
        at = watermarks.get(topic) if self.clock.time == EVENT_TIME else of_log
        if at is None:
            return ALL
        ended = at - micros(self.after)
        return Windows.between(moment_or_none(ended - ended % size + size))


def refuse_retention(definition: Definition, retention: str, window: Tumbling | Hopping | None) -> None:
    """DefinitionError for one that is no duration of whole seconds, or of a table without windows."""
    whole_seconds(definition, "retention", retention)
    if window is None:
        raise definition.error_at_text(
            retention, "it has a retention and no window: its rows are of no time after which they end",
            "leave out the retention, or give it a window",
        )  # fmt: skip

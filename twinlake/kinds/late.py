"""Owns what is shown of records that came late for a window, or too late to be counted in it, and whether a
row of a view is final: a statement about time, and so outside of laws and certificates.

Text over the log's records as `lake.log.Log.late_sql` gives them; no version keeps rows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from twinlake.base import quote
from twinlake.kinds.clock import TableClock, in_array
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.steps import Explode, Stepped, element
from twinlake.kinds.tiles import starts_sql
from twinlake.kinds.windows import END, START, Window, end_sql, interval_sql
from twinlake.topics import record_id

DISCARDED = "_discarded"
"""Whether a record was too late, and so is in no table; the others are valid, and came late."""


def late_sql(
    table: Stepped, explode: Explode | None, window: Window, clock: TableClock, records: str
) -> str:
    """SELECT text: a row for each window in which such records are, or would have been; each counts once.

    Columns: window_start, window_end, `late` (counted in it), `discarded`, and when the first and the last of
    them came. By the log's own clocks nothing is late: there, only what was discarded is shown.
    """
    on, grid = quote.expression(table.columns[window.on]), window.grid
    if explode:
        records = f"(SELECT *, {element(explode)} FROM {records})"
    conditions = [] if table.where is None else [quote.condition(table.where)]
    if not clock.has_late_records:
        conditions.append(f"`{DISCARDED}`")
    where = f"\n    WHERE {' AND '.join(conditions)}" if conditions else ""
    shown = f"{quote.names(record_id.KEY)}, `{record_id.TIMESTAMP}`, `{DISCARDED}`"
    return f"""SELECT `{START}`, {end_sql(window, f"`{START}`")} AS `{END}`,
  count_if(NOT `{DISCARDED}`) AS `late`, count_if(`{DISCARDED}`) AS `discarded`,
  min(`{record_id.TIMESTAMP}`) AS `first_arrived`, max(`{record_id.TIMESTAMP}`) AS `last_arrived`
FROM (
  SELECT DISTINCT `_start` AS `{START}`, {shown}
  FROM (SELECT explode({starts_sql(window, "`_cell`")}) AS `_start`, {shown} FROM (
    SELECT {grid.cell_sql("`_at`")} AS `_cell`, {shown}
    FROM (SELECT unix_micros({on}) AS `_at`, {shown} FROM {records}{where}) WHERE `_at` IS NOT NULL
  ))
)
GROUP BY `{START}`"""


FINAL = "final"


def final_sql(
    time: str, reach: timedelta, clocks: Sequence[TableClock], view_clock: ViewClock, inclusive: bool = False
) -> str:
    """Whether every clock's watermark has passed `time` (SQL) plus the reach and what may be late.

    `inclusive`: a record at `time` + `reach` itself changes the row. NULL where nobody says what is late by a
    clock that records are late by: every topic's contract does, so no view of a lake shows that.
    """
    passed = []
    for clock in clocks:
        late = view_clock.late_by(clock)
        if late is None:
            return "CAST(NULL AS BOOLEAN)"
        watermark = in_array(view_clock.watermark(clock), time)
        passed.append(f"{time} + {interval_sql(reach + late)} {'<' if inclusive else '<='} {watermark}")
    return f"coalesce({' AND '.join(passed)}, false)"

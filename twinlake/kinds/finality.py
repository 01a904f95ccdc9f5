"""Owns the column `final` of views whose rows end in time: whether records in time can still change a row.

It is a statement about time, and so outside of laws and certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from twinlake.kinds.clock import TableClock
from twinlake.kinds.kind import Moment
from twinlake.kinds.windows import interval_sql

FINAL = "final"


def final_sql(
    time: str, reach: timedelta, clocks: Sequence[TableClock], moment: Moment, inclusive: bool = False
) -> str:
    """Whether every clock's watermark has passed `time` (SQL) plus the reach and what may be late.

    `inclusive`: a record at `time` + `reach` itself changes the row. NULL where nobody says what is late by a
    clock that records are late by: every topic's contract does, so no view of a lake shows that.
    """
    # a moment stands as a number in the code that Spark generates, an array is passed to it: so that code
    # is compiled once, and not again whenever the watermark has moved. The condition is never true
    never = f"unix_micros({time}) % 2 > 1"
    passed = []
    for clock in clocks:
        late = moment.late_by(clock)
        if late is None:
            return "CAST(NULL AS BOOLEAN)"
        watermark = f"get(array({moment.watermark(clock)}), if({never}, 1, 0))"
        passed.append(f"{time} + {interval_sql(reach + late)} {'<' if inclusive else '<='} {watermark}")
    return f"coalesce({' AND '.join(passed)}, false)"

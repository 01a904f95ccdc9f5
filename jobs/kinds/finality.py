"""Owns the column `final` of views whose rows end in time: whether records in time can still change a row.

It is a statement about time, so outside laws and certificates.
"""

from __future__ import annotations

from datetime import timedelta

from jobs.kinds.kind import Moment
from jobs.kinds.windows import interval_sql

FINAL = "final"


def final_sql(time: str, reach: timedelta, moment: Moment, topic: str, inclusive: bool = False) -> str:
    """Whether the topic's watermark has passed `time` by `reach` and the contract's lateness, if it has one.

    `time` is the SQL of a timestamp column. `inclusive`: a record at `time` + `reach` itself changes the row.
    """
    late_after = moment.late_after.get(topic)
    if late_after is None:
        return "CAST(NULL AS BOOLEAN)"
    # a moment stands as a number in the code that Spark generates, an array is passed to it: so that code
    # is compiled once, and not again whenever the watermark has moved. The condition is never true
    never = f"unix_micros({time}) % 2 > 1"
    watermark = f"get(array({moment.watermark(topic)}), if({never}, 1, 0))"
    passed = f"{time} + {interval_sql(reach + late_after)} {'<' if inclusive else '<='} {watermark}"
    return f"coalesce({passed}, false)"

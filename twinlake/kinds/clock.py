"""Owns the clocks that a table's times go by, and which of them a column of a definition is.

A column goes by a clock of the log's only where it is that clock's column itself: `_timestamp` as it is, say.
All others go by event time, whose watermark is behind the log's clocks: `final` may come late, never early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from twinlake.kinds.grid import micros
from twinlake.topics import record_id

EVENT_TIME, LOG_APPEND_TIME, PROCESSING_TIME = "event_time", "log_append_time", "processing_time"
OF_THE_LOG = (LOG_APPEND_TIME, PROCESSING_TIME)
IDLE = timedelta(minutes=1)
"""A partition whose newest record that counts is this far behind another's does not hold the watermark."""
_BY_COLUMN = {record_id.TIMESTAMP: LOG_APPEND_TIME, record_id.INGESTED_AT: PROCESSING_TIME}


@dataclass(frozen=True, kw_only=True)
class TableClock:
    """A clock of one topic's records."""

    topic: str
    time: str = EVENT_TIME

    @property
    def has_late_records(self) -> bool:
        """Whether records come out of its order: nothing is late by the time at which it came."""
        return self.time == EVENT_TIME


def clock_of(topic: str, sql: str) -> TableClock:
    """The clock of a column, derived from its SQL over the topic's rows."""
    return TableClock(topic=topic, time=_BY_COLUMN.get(sql.strip().strip("`").lower(), EVENT_TIME))


def advance_watermark(
    before: int | None, seen: Mapping[int, int], event_times: Mapping[int, int]
) -> int | None:
    """A watermark after one more batch. Monotone; the least over active partitions: an idle one does not hold
    it, a new one not set it back. `seen` are Kafka's times by partition: for the watermark of event time, of
    the records that count for it, so that one which does not cannot keep its partition active."""
    newest = max(seen.values(), default=0)
    active = [time for p, time in event_times.items() if newest - seen[p] <= micros(IDLE)]
    now = [min(active)] if active else []
    return max([*now, *([before] if before is not None else [])], default=None)


def in_array(moment: str, time: str) -> str:
    """The moment (SQL), beside a column of time: so code that Spark generates is compiled once, and not again
    whenever the watermark has moved. A moment stands in it as a number, and an array is passed to it."""
    never = f"unix_micros({time}) % 2 > 1"
    return f"get(array({moment}), if({never}, 1, 0))"

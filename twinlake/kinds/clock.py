"""Owns the clocks that a table's times go by, and which of them a column of a definition is.

A column goes by a clock of the log's only where it is that clock's column itself: `_timestamp` as it is, say.
All others go by event time, whose watermark is behind the log's clocks: `final` may come late, never early.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlake.topics import record_id

EVENT_TIME, LOG_APPEND_TIME, PROCESSING_TIME = "event_time", "log_append_time", "processing_time"
OF_THE_LOG = (LOG_APPEND_TIME, PROCESSING_TIME)
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

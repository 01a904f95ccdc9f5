"""Owns `final`: whether what a row says can still change, by the clocks at the pin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinlake.witness.question import UNITED, Question
from twinlake.witness.text import micros

_BY_COLUMN = {"_timestamp": "log_append_time", "_ingested_at": "processing_time"}


@dataclass(frozen=True)
class Clock:
    """A clock of a topic's records at the pin; times in microseconds."""

    topic: str
    time: str
    at: int | None
    """How far it has come."""
    late_by: int | None
    """How far behind it a record may be and still be in time; None where no contract says so."""


def clock_of(question: Question, topic: str, sql: str) -> Clock:
    """The clock of a column, by its SQL over the topic's rows: one of the log's own is its column alone."""
    log = question.topics[topic]
    time = _BY_COLUMN.get(sql.strip().strip("`").lower(), "event_time")
    if time != "event_time":
        return Clock(topic, time, log.clocks.get(time), 0)
    late = log.contract.get("late_after")
    return Clock(topic, time, log.watermark, micros(late) if late else None)


def of_table(question: Question, definition: Mapping[str, Any], column: str) -> Clock:
    """The clock of a column of a table of one topic."""
    return clock_of(question, definition["inputs"][0], dict(definition["columns"])[column])


def of_tables(question: Question, definition: Mapping[str, Any], column: str) -> list[Clock]:
    """The same of each topic, for a definition of several."""
    return [of_table(question, one, column) for one in definition.get(UNITED, [definition])]


def final(time: str, reach: int, clocks: list[Clock], *, inclusive: bool) -> str:
    """SQL that is true where each clock has passed the time (microseconds), the reach and what may be late.

    `inclusive`: a record at the end itself would still count. NULL only where a lateness is not known.
    """
    if any(clock.late_by is None for clock in clocks):
        return "CAST(NULL AS BOOLEAN)"
    passed = [
        f"{time} + {reach + (clock.late_by or 0)} {'<' if inclusive else '<='} {clock.at}"
        if clock.at is not None else "false"
        for clock in clocks
    ]  # fmt: skip
    return f"coalesce({' AND '.join(passed)}, false)"

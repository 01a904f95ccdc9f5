"""Owns windows of time: how they are cut, the grid that they lie on, and ranges of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs import quote
from jobs.errors import UsageError
from jobs.kinds.definition import Definition, refuse_keys
from jobs.times import format_moment, parse_duration, parse_moment

START, END = "window_start", "window_end"
"""The columns of a windowed view: the window is [start, end)."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The time cells in which states lie: a timestamp column with the cell's start, and the cells' size."""

    column: str
    size: timedelta


@dataclass(frozen=True, kw_only=True)
class Tumbling:
    """Windows of one size that touch and do not overlap, aligned to 1970-01-01 UTC."""

    on: str
    """A timestamp column of the row-local step; rows in which it is NULL are in no window."""
    size: str
    """A duration such as "1 minute"."""

    @property
    def length(self) -> timedelta:
        """`size` as a timedelta."""
        return parse_duration(self.size)

    @property
    def grid(self) -> Grid:
        return Grid(column=START, size=self.length)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "tumbling", "on": self.on, "size": self.size}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tumbling:
        """The inverse of `to_json`; an unknown key or kind is refused by name."""
        refuse_keys(data, {"kind", "on", "size"}, "window")
        if data.get("kind") != "tumbling":
            raise UsageError(f"unknown window kind {data.get('kind')!r}", "", "known: tumbling")
        return cls(on=data["on"], size=data["size"])

    def start_sql(self) -> str:
        """The start of the window that a row is in."""
        micros = f"unix_micros({quote.name(self.on)})"
        size = self.length // timedelta(microseconds=1)
        # integers, not window(): that one expands rows and hides the column from pushed filters
        return f"timestamp_micros({micros} - pmod({micros}, {size}))"


def refuse_window(definition: Definition, window: Tumbling) -> None:
    """DefinitionError for a size that is no duration of whole seconds."""
    try:
        whole = window.length // timedelta(microseconds=1)
    except UsageError as error:
        raise definition.error(f"window size: {error.what}", error.remedy) from error
    if whole % 1_000_000:
        raise definition.error(f"window size {window.size!r} is not made of whole seconds")


def interval_sql(length: timedelta) -> str:
    """A duration of whole seconds as a literal."""
    return f"INTERVAL '{length // timedelta(seconds=1)}' SECOND"


@dataclass(frozen=True, kw_only=True)
class WindowRange:
    """Starts of cells in [start, end); None leaves that side open. Moments are aware and UTC."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_all(self) -> bool:
        return self.start is None and self.end is None

    def predicate(self, column: str) -> str:
        """The SQL condition on the column with a cell's start."""
        parts = []
        if self.start is not None:
            parts.append(f"{quote.name(column)} >= {_literal(self.start)}")
        if self.end is not None:
            parts.append(f"{quote.name(column)} < {_literal(self.end)}")
        return " AND ".join(parts) or "true"

    def to_json(self) -> dict[str, str | None]:
        return {
            "from": format_moment(self.start) if self.start else None,
            "to": format_moment(self.end) if self.end else None,
        }

    def parts(self, first: datetime, last: datetime, size: timedelta, count: int) -> Iterator[WindowRange]:
        """Cut the range into at most `count` parts along the cells first..last that hold rows.

        The outer parts keep the range's own ends, so that nothing outside first..last is left out.
        """
        cells = (last - first) // size + 1
        count = max(1, min(count, cells))
        bounds = [first + size * (cells * part // count) for part in range(1, count)]
        inside = [bound for bound in bounds if self._holds(bound)]
        starts = [self.start, *inside]
        for start, end in zip(starts, [*inside, self.end], strict=True):
            yield WindowRange(start=start, end=end)

    def _holds(self, moment: datetime) -> bool:
        return (self.start is None or moment > self.start) and (self.end is None or moment < self.end)


ALL = WindowRange()


def window_range(start: str | None, end: str | None, grid: Grid | None, table: str) -> WindowRange:
    """The range that somebody asked for, or UsageError: no windows, not RFC 3339, empty."""
    if start is None and end is None:
        return ALL
    if grid is None:
        raise UsageError(
            f"{table} cannot be limited to a range", "the table has no windows", "leave out --from and --to"
        )
    asked = WindowRange(
        start=None if start is None else parse_moment(start), end=None if end is None else parse_moment(end)
    )
    if asked.start is not None and asked.end is not None and asked.start >= asked.end:
        raise UsageError(
            f"the range {start} to {end} is empty",
            "it is half-open: --to is left out",
            "let --to be after --from",
        )
    return asked


def _literal(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"

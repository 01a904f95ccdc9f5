"""WindowRange: a half-open range over window starts, as `--from` and `--to` give it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.errors import UsageError
from jobs.times import format_moment, parse_moment


@dataclass(frozen=True, kw_only=True)
class WindowRange:
    """Window starts in [start, end); None leaves that side open. Moments are aware and UTC."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_all(self) -> bool:
        return self.start is None and self.end is None

    def predicate(self) -> str:
        """The SQL condition on `window_start`."""
        parts = []
        if self.start is not None:
            parts.append(f"window_start >= {_literal(self.start)}")
        if self.end is not None:
            parts.append(f"window_start < {_literal(self.end)}")
        return " AND ".join(parts) or "true"

    def to_json(self) -> dict[str, str | None]:
        return {
            "from": format_moment(self.start) if self.start else None,
            "to": format_moment(self.end) if self.end else None,
        }

    def parts(self, first: datetime, last: datetime, size: timedelta, count: int) -> Iterator[WindowRange]:
        """Cut the range into at most `count` parts along the windows first..last that hold rows.

        The outer parts keep the range's own ends, so that nothing outside first..last is left out.
        """
        windows = (last - first) // size + 1
        count = max(1, min(count, windows))
        bounds = [first + size * (windows * part // count) for part in range(1, count)]
        inside = [bound for bound in bounds if self._holds(bound)]
        starts = [self.start, *inside]
        for start, end in zip(starts, [*inside, self.end], strict=True):
            yield WindowRange(start=start, end=end)

    def _holds(self, moment: datetime) -> bool:
        return (self.start is None or moment > self.start) and (self.end is None or moment < self.end)


def window_range(start: str | None, end: str | None, size: timedelta | None, table: str) -> WindowRange:
    """The range that somebody asked for, or UsageError: no windows, not RFC 3339, empty."""
    if start is None and end is None:
        return WindowRange()
    if size is None:
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

"""Over time: where two versions of a table differ, how much and since when, as it is kept and plotted.

Totals are those of columns that add up alone; of all others the rows that differ can be counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from twinlake.base.times import format_moment
from twinlake.difference.over_time import Bucket, Buckets

MOST_COLUMNS = 6
"""So many columns have totals over time: those that differ most."""
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
ROWS = "rows"
TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Lines:
    """What both versions have in each bucket; None where there is nothing, or too much to add up."""

    name: str
    blue: tuple[float | None, ...]
    green: tuple[float | None, ...]
    is_alike: bool = False
    """Whether both have the same in every bucket, by all digits there are; of doubles, which are added up in
    any order, as far as `TOLERANCE` goes."""


@dataclass(frozen=True, kw_only=True)
class OverTime:
    """By `column`; `at` are the beginnings of buckets in seconds since 1970, `seconds` after each other."""

    column: str
    seconds: int
    at: tuple[int, ...]
    differing: tuple[int, ...]
    """Rows that differ, or that one version alone has."""
    rows: Lines
    totals: tuple[Lines, ...] = ()
    """Of columns that add up, the one that differs most first."""
    first: str | None = None
    last: str | None = None
    """The earliest and the latest time of a row that differs."""
    untimed: int = 0
    """Rows that differ and have no time there."""


def folded(found: Buckets) -> OverTime:
    """What is kept of the buckets: those without rows are filled in, so that all are equally far apart."""
    timed = {one.at: one for one in found.rows if one.at is not None}
    at = tuple(range(min(timed), max(timed) + 1, found.seconds)) if timed else ()
    rows = [timed.get(one, Bucket(at=one, left=0, right=0, differing=0)) for one in at]
    names = dict.fromkeys(name for one in rows for name in one.totals)
    totals = [_lines(name, [one.totals.get(name, (None, None)) for one in rows]) for name in names]
    return OverTime(
        column=found.column, seconds=found.seconds, at=at,
        differing=tuple(one.differing for one in rows),
        rows=_lines(ROWS, [(one.left, one.right) for one in rows]),
        totals=tuple(sorted(totals, key=_difference, reverse=True)[:MOST_COLUMNS]),
        first=_moment(found.first), last=_moment(found.last),
        untimed=sum(one.differing for one in found.rows if one.at is None),
    )  # fmt: skip


def span_text(seconds: int) -> str:
    """A bucket's length, such as "15 minutes"."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds % size == 0)
    many = seconds // size
    return unit if many == 1 else f"{many:,} {unit}s"


def _lines(name: str, pairs: Sequence[tuple[Any, Any]]) -> Lines:
    return Lines(
        name=name, blue=tuple(_number(blue) for blue, _ in pairs),
        green=tuple(_number(green) for _, green in pairs), is_alike=all(_alike(*one) for one in pairs),
    )  # fmt: skip


def _alike(blue: Any, green: Any) -> bool:
    if isinstance(blue, float) and isinstance(green, float):
        both_are_no_number = math.isnan(blue) and math.isnan(green)
        return both_are_no_number or math.isclose(blue, green, rel_tol=TOLERANCE)
    return bool(blue == green)


def _number(value: Any) -> float | None:
    """For a picture: of some fifteen digits."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _difference(lines: Lines) -> float:
    """By how much the sums differ over all buckets, as a part of what there is."""
    pairs = [(blue or 0.0, green or 0.0) for blue, green in zip(lines.blue, lines.green, strict=True)]
    whole = sum(max(abs(blue), abs(green)) for blue, green in pairs)
    differ = sum(abs(green - blue) for blue, green in pairs)
    return differ / whole if whole and math.isfinite(differ) else 0.0


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else format_moment(datetime.fromtimestamp(seconds, UTC))

"""Owns when the days of a time zone begin: at the first instant with a new date, whatever its clock shows.

A day whose midnight the clocks leave out begins with the first instant after it; one whose midnight comes
twice at the first. A date that is left out, where a zone has crossed the date line, is no day; one that comes
twice is two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from itertools import pairwise

from twinlake.base.errors import UsageError
from twinlake.base.times import is_days
from twinlake.kinds.definition import Definition
from twinlake.kinds.time_zone import Offsets, offsets_of

DAY = timedelta(days=1)
DAY_S = 86_400
_SECOND = 1_000_000
_END = 1 << 62
"""After all time."""


@cache
def cell_runs(offsets: Offsets, days: int) -> tuple[int, ...]:
    """`Grid.runs` of cells of so many local days, counted from 1970-01-01 on; ValueError for a zone whose
    clocks have moved too far for it."""
    found = _numbered(list(_runs(offsets)))
    moved = [begin - number * DAY_S for begin, number in found]
    if max(moved) - min(moved) >= DAY_S // 2:
        raise ValueError("its clocks have been moved by half a day or more")
    starts = []
    for (begin, first), (_, end) in pairwise([*found, (_END, _END)]):
        cell = -(-first // days) * days
        if cell < end:
            starts.append((begin + (cell - first) * DAY_S) * _SECOND)
    return tuple(starts)


def refuse_zone(
    definition: Definition, zone: str, lengths: Mapping[str, str], offsets: Offsets | None
) -> None:
    """DefinitionError for a zone that is none, or whose days cannot be cells; for lengths, by what they are
    of, that are not written as days."""
    for what, text in lengths.items():
        if not is_days(text):
            why = f"{what} {text!r} is not written in whole days, and so has no begin in {zone}"
            raise definition.error_at_text(text, why, 'write it like "1 day", or leave out the time zone')
    try:
        cell_runs(offsets or offsets_of(zone), 1)
    except UsageError as error:
        raise definition.error_at_text(zone, error.what, error.remedy) from error
    except ValueError as error:
        why = f"days of {zone} cannot be windows: {error}"
        raise definition.error_at_text(zone, why, "take another zone near it") from error


def _runs(offsets: Offsets) -> Iterator[tuple[int, int]]:
    """(start, date) of each run of days that are 24 hours apart, dates as days since 1970-01-01. The first
    has been going on for ever."""
    seen: int | None = None
    for (begin, offset), (until, _) in pairwise([*offsets, (_END, 0)]):
        assert until is not None  # only the first offset has no begin
        last = (until - 1 + offset) // DAY_S
        if seen is None or begin is None:
            seen = min(last, 0)
            yield seen * DAY_S - offset, seen
        elif (date := (begin + offset) // DAY_S) > seen:
            yield begin, date
            seen = date
        if last > seen:
            yield (seen + 1) * DAY_S - offset, seen + 1
            seen = last


def _numbered(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, number of its first day) of each run: days that were are counted, and 1970-01-01 is 0."""
    found = [(*runs[0], 0)]
    for begin, date in runs[1:]:
        before, date_before, number = found[-1]
        if begin - before != (date - date_before) * DAY_S:
            found.append((begin, date, number + (begin - before + DAY_S // 2) // DAY_S))
    zero = [number - date for _, date, number in found if date <= 0][-1]
    return [(begin, number - zero) for begin, _, number in found]

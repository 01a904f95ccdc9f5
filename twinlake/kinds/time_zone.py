"""Owns the rules of time zones: from when on which one is how far from UTC.

They are those of the package tzdata, whatever Java, DuckDB or the machine know, and a definition keeps those
that it was read with (ADR 42).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from twinlake.base.errors import UsageError, near
from twinlake.base.times import EPOCH, format_moment, parse_moment

Offsets = tuple[tuple[int | None, int], ...]
"""(from when on, how far local time is ahead of UTC), both in seconds, the first since 1970; in order. The
first pair has None: it is from the first time on."""
FIRST, LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""No zone has changed its clocks before. Later nobody knows: clocks stay as they are."""
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
_KNOWN = "it is not a zone of the package tzdata"


@cache
def offsets_of(name: str) -> Offsets:
    """All of a zone's; UsageError for a name that is none."""
    if name not in _names():
        why = near(name, sorted(_names()), listed=False)
        raise UsageError(
            f"there is no time zone {name!r}{why}", _KNOWN, 'write it like "Europe/Berlin" or "Asia/Tokyo"'
        )
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        zone = ZoneInfo.from_file(rules, key=name)
    return (None, _offset(zone, FIRST)), *_changes(zone)


def known_offsets(name: Any) -> Offsets | None:
    """The same; None where it is no name of a zone."""
    return offsets_of(name) if isinstance(name, str) and name in _names() else None


def offsets_to_json(found: Offsets) -> list[list[Any]]:
    """Pairs (time, seconds), the first time empty: a map in order, so that a plan says which ones differ."""
    times = ("" if begin is None else format_moment(EPOCH + begin * _SECOND) for begin, _ in found)
    return [[time, ahead] for time, (_, ahead) in zip(times, found, strict=True)]


def offsets_from_json(data: Iterable[Any]) -> Offsets:
    """The inverse of `offsets_to_json`; ValueError where they are none."""
    (first, ahead), *others = data
    found = [(begin, int(offset)) for begin, offset in ((_seconds(text), one) for text, one in others)]
    if first or any(before >= after for (before, _), (after, _) in pairwise(found)):
        raise ValueError("offsets of a time zone begin with an empty time, and go on in order")
    return (None, int(ahead)), *found


@cache
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text().split())


def _seconds(text: str) -> int:
    try:
        return (parse_moment(text) - EPOCH) // _SECOND
    except UsageError as error:
        raise ValueError(error.what) from error


def _changes(zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """No zone has changed its clocks twice in a day, so a look at each day finds all changes."""
    day, offset = FIRST, _offset(zone, FIRST)
    while day < LAST:
        if (next_ := _offset(zone, day + _DAY)) != offset:
            before, at = day, day + _DAY
            while at - before > _SECOND:
                middle = before + (at - before) // _SECOND // 2 * _SECOND
                before, at = (middle, at) if _offset(zone, middle) == offset else (before, middle)
            yield (at - EPOCH) // _SECOND, next_
        day, offset = day + _DAY, next_


def _offset(zone: ZoneInfo, at: datetime) -> int:
    ahead = at.astimezone(zone).utcoffset()
    assert ahead is not None
    return ahead // _SECOND

"""Owns windows of time: how they are cut, the grid that they lie on, and sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import gcd
from typing import Any

from twinlake.base import quote
from twinlake.base.errors import DefinitionError, UsageError
from twinlake.base.times import format_moment, moment_or_none, parse_duration, parse_moment
from twinlake.kinds.definition import NOT_STORED, Definition, refuse_keys
from twinlake.kinds.grid import Grid, micros
from twinlake.kinds.local_days import DAY, cell_runs, refuse_zone
from twinlake.kinds.time_zone import Offsets, known_offsets, offsets_from_json, offsets_to_json

START, END = "window_start", "window_end"
"""The columns of a windowed view: the window is [start, end)."""
TILE = "_tile"
"""The column of states of hopping windows with the start of their tile (`kinds/tiles.py`)."""
MOST_HOPS = 64
"""A record is in at most so many hopping windows: who reads them merges its state into each."""
MOST_RANGES = 64
"""A set of windows that is found rather than asked for has at most so many ranges: they become SQL text."""


@dataclass(frozen=True, kw_only=True)
class Tumbling:
    """Windows of one size that touch and do not overlap, aligned to 1970-01-01: in UTC, or in a time zone."""

    on: str
    """A timestamp column, of `columns`; rows in which it is NULL are in no window."""
    size: str
    """A duration such as "1 minute"."""
    time_zone: str | None = None
    """Whose days windows of whole days are, such as "Europe/Berlin": they begin when a day begins there, and
    may be an hour shorter or longer than others. Without it days are those of UTC."""
    offsets: Offsets | None = field(default=None, init=False, repr=False, metadata=NOT_STORED)
    """Those of the zone, as they were known when the definition was read."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", known_offsets(self.time_zone))

    @property
    def length(self) -> timedelta:
        """`size` as a timedelta, of days of 24 hours."""
        return parse_duration(self.size)

    @property
    def grid(self) -> Grid:
        return _grid(self.length, self.offsets)

    @property
    def starts(self) -> Grid:
        """Where windows begin: a cell of it does with each."""
        return self.grid

    @property
    def hops(self) -> int:
        """In how many windows a row is."""
        return 1

    @property
    def tiled(self) -> bool:
        """Whether its states are of tiles, and not of windows."""
        return False

    def to_json(self) -> dict[str, Any]:
        return {"kind": "tumbling", "on": self.on, "size": self.size, **_zone_json(self)}


@dataclass(frozen=True, kw_only=True)
class Hopping:
    """Windows of one size of which one begins every so often, so that they overlap; aligned as those of
    Tumbling.

    A record is in those that start in (its time - size, its time], and counted once: in its tile.
    """

    on: str
    """A timestamp column, of `columns`; rows in which it is NULL are in no window."""
    size: str
    """A duration such as "10 minutes", best a whole multiple of `every`: tiles are as long as that then."""
    every: str
    """How often a window begins: a duration such as "1 minute"."""
    time_zone: str | None = None
    """Whose days these are where both durations are whole days, such as "Europe/Berlin": windows begin when a
    day begins there. Without it days are those of UTC."""
    offsets: Offsets | None = field(default=None, init=False, repr=False, metadata=NOT_STORED)
    """Those of the zone, as they were known when the definition was read."""
    tiled: bool = field(default=True, init=False, repr=False, metadata=NOT_STORED)
    """Whether its states are of tiles. Versions of before store that of a tile in every window that it is in;
    the JSON of their definitions does not say so."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", known_offsets(self.time_zone))

    @property
    def length(self) -> timedelta:
        """`size` as a timedelta, of days of 24 hours."""
        return parse_duration(self.size)

    @property
    def grid(self) -> Grid:
        """The tiles; of versions of before the windows' starts."""
        return _tiles(self.length, self.starts, self.offsets) if self.tiled else self.starts

    @property
    def starts(self) -> Grid:
        """Where windows begin: a cell of it does with each."""
        return _grid(parse_duration(self.every), self.offsets)

    @property
    def hops(self) -> int:
        """In how many windows a row is, at most."""
        return -(-self.length // self.starts.size)

    def to_json(self) -> dict[str, Any]:
        own = {"on": self.on, "size": self.size, "every": self.every}
        return {"kind": "hopping", **own, **_zone_json(self), **({"tiled": True} if self.tiled else {})}


Window = Tumbling | Hopping


def window_from_json(data: Mapping[str, Any]) -> Window:
    """The window that `to_json` came from; an unknown key or kind is refused by name."""
    kinds: dict[str, type[Window]] = {"tumbling": Tumbling, "hopping": Hopping}
    kind = kinds.get(str(data.get("kind")))
    if kind is None:
        raise UsageError(f"unknown window kind {data.get('kind')!r}", "", "known: tumbling, hopping")
    refuse_keys(data, {"kind", *(one.name for one in fields(kind))}, "window")
    window = kind(**{key: value for key, value in data.items() if key not in ("kind", "offsets", "tiled")})
    if isinstance(window, Hopping):
        object.__setattr__(window, "tiled", bool(data.get("tiled", False)))
    if "offsets" in data:
        object.__setattr__(window, "offsets", offsets_from_json(data["offsets"]))
    return window


def _zone_json(window: Window) -> dict[str, Any]:
    """With the offsets: whoever reads it cuts windows by these, whatever is known of the zone by then."""
    if window.time_zone is None:
        return {}
    return {"time_zone": window.time_zone, "offsets": offsets_to_json(window.offsets or ())}


def _grid(size: timedelta, offsets: Offsets | None) -> Grid:
    return Grid(column=START, size=size, runs=cell_runs(offsets, size // DAY) if offsets else ())


def _tiles(length: timedelta, starts: Grid, offsets: Offsets | None) -> Grid:
    """Those of windows that begin where cells of `starts` do: as long as both lengths have in common."""
    made = _grid(timedelta(microseconds=gcd(micros(length), micros(starts.size))), offsets)
    return replace(made, column=TILE, reach=length - made.size + made.slack)


def end_sql(window: Window, start: str, more: timedelta = timedelta(0)) -> str:
    """When a window that begins at `start` (SQL) ends, or so much later."""
    grid = window.grid
    if not grid.runs:
        return f"{start} + {interval_sql(window.length + more)}"
    end = f"timestamp_micros({grid.moved_sql(f'unix_micros({start})', window.length // grid.size)})"
    return f"{end} + {interval_sql(more)}" if more else end


def refuse_window(definition: Definition, window: Window) -> None:
    """DefinitionError for a size that is not a duration of whole seconds, or an `every` that is
    longer; for a time zone that is none, or of windows that are not of whole days."""
    size = whole_seconds(definition, "window size", window.size)
    if isinstance(window, Hopping):
        every = whole_seconds(definition, "window every", window.every)
        if every > size:
            why = f"every {window.every!r} is longer than size {window.size!r}: some records are in no window"
            raise definition.error(why, "make it as long at most")
        if (hops := -(-size // every)) > MOST_HOPS:
            why = f"a record would be in {hops} windows, and at most {MOST_HOPS} are read"
            raise definition.error(why, "use Rolling, or a longer `every`")
    if window.time_zone is not None:
        every_text = {"window every": window.every} if isinstance(window, Hopping) else {}
        refuse_zone(definition, window.time_zone, {"window size": window.size, **every_text}, window.offsets)


def whole_seconds(definition: Definition, what: str, text: str, or_zero: bool = False) -> timedelta:
    """The duration; DefinitionError where the text is none of whole seconds."""
    try:
        length = parse_duration(text, or_zero)
    except UsageError as error:
        raise definition.error_at_text(text, f"{what}: {error.what}", error.remedy) from error
    if length % timedelta(seconds=1):
        raise definition.error_at_text(text, f"{what} {text!r} is not made of whole seconds")
    return length


def mistimed(
    definition: Definition, what: str, on: str, types: Mapping[str, str]
) -> Iterator[DefinitionError]:
    """A problem where the column with the times is not a timestamp."""
    if types[on] != "timestamp":
        yield definition.error_at_text(on, f"{what} on {on}, which is {types[on]}, not timestamp")


def interval_sql(length: timedelta) -> str:
    """A duration of whole seconds as a literal."""
    return f"INTERVAL '{length // timedelta(seconds=1)}' SECOND"


@dataclass(frozen=True, kw_only=True)
class WindowRange:
    """Starts of cells in [start, end); None leaves that side open. Moments are aware and UTC."""

    start: datetime | None = None
    end: datetime | None = None

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


@dataclass(frozen=True)
class Windows:
    """A set of windows, named by their starts: ranges in order of time that neither meet nor touch."""

    ranges: tuple[WindowRange, ...]

    @classmethod
    def between(cls, start: datetime | None = None, end: datetime | None = None) -> Windows:
        """Those that start in [start, end)."""
        return cls((WindowRange(start=start, end=end),))

    @classmethod
    def of(cls, starts: Iterable[int], size: timedelta, most: int = MOST_RANGES) -> Windows:
        """Those of one size with these starts (microseconds since 1970), and some more where that would be
        more than `most` ranges: the smallest gaps are filled."""
        length = micros(size)
        return cls.spanning(((start, start + length) for start in starts), most)

    @classmethod
    def spanning(cls, spans: Iterable[tuple[int, int]], most: int = MOST_RANGES) -> Windows:
        """The same of windows from their starts up to these ends, which are where others may start."""
        ranges: list[list[int]] = []
        for start, end in sorted(spans):
            if ranges and start <= ranges[-1][1]:
                ranges[-1][1] = end
            else:
                ranges.append([start, end])
        gaps = [after[0] - before[1] for before, after in pairwise(ranges)]
        kept = set(sorted(range(len(gaps)), key=gaps.__getitem__, reverse=True)[: most - 1])
        for number in reversed(range(len(gaps))):
            if number not in kept:
                _, ranges[number][1] = ranges.pop(number + 1)
        return cls(
            tuple(WindowRange(start=moment_or_none(first), end=moment_or_none(end)) for first, end in ranges)
        )

    @classmethod
    def from_json(cls, data: Iterable[Mapping[str, str | None]]) -> Windows:
        """The inverse of `to_json`."""
        return cls(tuple(_range(one["from"], one["to"]) for one in data))

    @property
    def is_all(self) -> bool:
        return self.ranges == (WindowRange(),)

    def predicate(self, column: str) -> str:
        """The SQL condition on the column with a cell's start."""
        parts = [one.predicate(column) for one in self.ranges]
        return " OR ".join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts) or "false"

    def has_all(self, first: datetime, last: datetime) -> bool:
        """Whether every window that starts in [first, last] is one of them."""
        return any(_first(one) <= first and (one.end is None or last < one.end) for one in self.ranges)

    def has_any(self, first: datetime, last: datetime) -> bool:
        """Whether there may be one of them that starts in [first, last]."""
        return any(_first(one) <= last and (one.end is None or first < one.end) for one in self.ranges)

    def since(self, other: Windows) -> Windows:
        """Those of them that start where `other` does, or later; it has one range, open at its end."""
        (begin,) = other.ranges
        return Windows(tuple(
            WindowRange(start=_later(one.start, begin.start), end=one.end)
            for one in self.ranges if one.end is None or begin.start is None or one.end > begin.start
        ))  # fmt: skip

    def to_json(self) -> list[dict[str, str | None]]:
        return [one.to_json() for one in self.ranges]

    @property
    def words(self) -> str:
        """For a person."""
        if self.is_all:
            return "all of history"
        if not self.ranges:
            return "no windows"
        first, more = self.to_json()[0], len(self.ranges) - 1
        text = f"windows {first['from'] or 'from the first'} to {first['to'] or 'the last'}"
        return f"{text} and {more} ranges more" if more else text

    def __or__(self, other: Windows) -> Windows:
        """Both sets together."""
        joined: list[WindowRange] = []
        for one in sorted([*self.ranges, *other.ranges], key=_first):
            if joined and _first(one) <= _last(joined[-1]):
                end = max(joined[-1], one, key=_last).end
                joined[-1] = WindowRange(start=joined[-1].start, end=end)
            else:
                joined.append(one)
        return Windows(tuple(joined))

    def reached_sql(self, on: str, length: timedelta) -> str:
        """A condition that holds for every row in these windows, which are so long: one on the rows' own time
        `on`, so that it reaches the scan. It holds for some rows beside them too."""
        return self.widened(length).predicate(on)

    def widened(self, by: timedelta, before: timedelta = timedelta(0)) -> Windows:
        """With so much time after each range, and before it."""
        wider = (
            WindowRange(
                start=None if one.start is None or one.start < _FIRST + before else one.start - before,
                end=None if one.end is None or one.end > _LAST - by else one.end + by,
            )
            for one in self.ranges
        )
        return Windows(()) | Windows(tuple(wider))

    def cut(self, bounds: Sequence[datetime]) -> Iterator[Windows]:
        """Parts that touch at the bounds and are together the whole; none of them is empty."""
        edges = [None, *sorted(set(bounds)), None]
        for start, end in pairwise(edges):
            part = tuple(
                WindowRange(start=_later(one.start, start), end=_earlier(one.end, end))
                for one in self.ranges
                if (end is None or one.start is None or one.start < end)
                and (start is None or one.end is None or one.end > start)
            )
            if part:
                yield Windows(part)


ALL = Windows.between()
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def window_range(start: str | None, end: str | None, grid: Grid | None, table: str) -> Windows:
    """The cells of the windows that somebody asked for, or UsageError: no windows, not RFC 3339, empty."""
    if start is None and end is None:
        return ALL
    if grid is None:
        raise UsageError(
            f"{table} cannot be limited to a range", "the table has no windows", "leave the range out"
        )
    asked = _range(start, end)
    if asked.start is not None and asked.end is not None and asked.start >= asked.end:
        raise UsageError(
            f"the range {start} to {end} is empty",
            "windows that start at its end are not in it",
            "let the end be after the start",
        )
    return Windows((asked,)).widened(grid.reach)


def _range(start: str | None, end: str | None) -> WindowRange:
    return WindowRange(
        start=None if start is None else parse_moment(start), end=None if end is None else parse_moment(end)
    )


def _first(one: WindowRange) -> datetime:
    return one.start or _FIRST


def _last(one: WindowRange) -> datetime:
    return one.end or _LAST


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment), default=None)


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((moment for moment in (one, other) if moment), default=None)


def _literal(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"

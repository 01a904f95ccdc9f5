"""Thinning: of the history as many points as a picture has room for; of each the rate, or the worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinlake.alarms.history import POINT_EVERY_S, Point, TablePoint, TopicPoint

MOST = 600
"""Points of a line."""
GAP_S = 2.5 * POINT_EVERY_S
"""Between two points that are further apart nothing is known."""
RATES, LAGS = TopicPoint._fields[:5], TopicPoint._fields[5:]
Line = list[float | None]
"""A value for each time, None where nothing is known."""
Lines = dict[str, dict[str, Line]]
"""By name of a topic or table, by figure."""


@dataclass(frozen=True, kw_only=True)
class Thinned:
    """`times` are in seconds since 1970, evenly apart, and so many are the values of each line. Of topics
    there are RATES, in records a second, and LAGS; of tables `freshness_seconds` and `allowed_seconds`;
    `disk_free` is in bytes. `newest` is the time of the newest point, None without any; `until` is when it
    was read."""

    times: list[int]
    topics: Lines
    tables: Lines
    disk_free: Line
    newest: int | None
    until: int


def thin(points: Iterable[Point], seconds: int, now: int, most: int = MOST) -> Thinned:
    """`points` of the last seconds until `now`, by their time, in at most so many and one steps."""
    minutes = -(-seconds // int(POINT_EVERY_S))
    width = -(-minutes // most) * int(POINT_EVERY_S)
    first = (now - seconds) // width
    times = [step * width for step in range(first, now // width + 1)]

    topics, tables = dict[str, _Topic](), dict[str, _Table]()
    disk: Line = [None] * len(times)
    newest = None
    for point in points:
        newest, step = point.at, point.at // width - first
        free = disk[step]
        disk[step] = point.disk_free if free is None else min(free, point.disk_free)
        for name, topic in point.topics.items():
            if name not in topics:
                topics[name] = _Topic(len(times))
            topics[name].add(point.at, step, topic)
        for name, table in point.tables.items():
            if name not in tables:
                tables[name] = _Table(len(times))
            tables[name].add(step, table)
    return Thinned(
        times=times, disk_free=disk, newest=newest, until=now,
        topics={name: one.lines() for name, one in topics.items()},
        tables={name: one.lines() for name, one in tables.items()},
    )  # fmt: skip


class _Topic:
    """How much its counts have grown in each step, in how many seconds; its worst lags."""

    def __init__(self, steps: int) -> None:
        self._grown = [[0.0] * steps for _ in RATES]
        self._seconds = [[0] * steps for _ in RATES]
        self._lags: list[Line] = [[None] * steps for _ in LAGS]
        self._at = 0
        self._before: TopicPoint | None = None

    def add(self, at: int, step: int, topic: TopicPoint) -> None:
        """Nothing has grown over a gap, nor where a count has become smaller: the topic was made again, or a
        replay has moved some records to another verdict."""
        seconds, before = at - self._at, self._before
        if before is not None and seconds <= GAP_S:
            for grown, known, one, other in zip(self._grown, self._seconds, before, topic, strict=False):
                if one is not None and other is not None and other >= one:
                    grown[step] += other - one
                    known[step] += seconds
        for lags, lag in zip(self._lags, topic[len(RATES) :], strict=True):
            _keep_larger(lags, step, lag)
        self._at, self._before = at, topic

    def lines(self) -> dict[str, Line]:
        rates: list[Line] = [
            [round(count / span, 3) if span else None for count, span in zip(grown, seconds, strict=True)]
            for grown, seconds in zip(self._grown, self._seconds, strict=True)
        ]
        return dict(zip((*RATES, *LAGS), (*rates, *self._lags), strict=True))


class _Table:
    """Its worst freshness in each step, and what was allowed last."""

    def __init__(self, steps: int) -> None:
        self._freshness: Line = [None] * steps
        self._allowed: Line = [None] * steps

    def add(self, step: int, table: TablePoint) -> None:
        _keep_larger(self._freshness, step, table.freshness_seconds)
        self._allowed[step] = table.allowed_seconds

    def lines(self) -> dict[str, Line]:
        return {"freshness_seconds": self._freshness, "allowed_seconds": self._allowed}


def _keep_larger(line: Line, step: int, value: float | None) -> None:
    if value is not None and ((known := line[step]) is None or known < value):
        line[step] = value

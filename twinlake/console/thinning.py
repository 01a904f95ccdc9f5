"""Thinning: of the history as many points as a picture has room for; of each the rate, or the worst."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from twinlake.alarms.history import POINT_EVERY_S, Point, TopicPoint

MOST = 600
"""Points of a line."""
GAP_S = 2.5 * POINT_EVERY_S
"""Between two points that are further apart nothing is known."""
RATES = ("records", "valid", "invalid", "too_late", "late")
LAGS = ("lag_records", "lag_seconds")
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

    def empty() -> Line:
        return [None] * len(times)

    topics: Lines = defaultdict(lambda: defaultdict(empty))
    tables: Lines = defaultdict(lambda: defaultdict(empty))
    disk, newest = empty(), None
    grown: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)] * len(times))
    before: dict[str, tuple[int, TopicPoint]] = {}
    for point in points:
        newest, step = point.at, point.at // width - first
        _keep(disk, step, point.disk_free, min)
        for name, topic in point.topics.items():
            for figure in LAGS:
                _keep(topics[name][figure], step, getattr(topic, figure), max)
            for figure in RATES:
                topics[name].setdefault(figure, empty())
                if name in before and (more := _grown(*before[name], point.at, topic, figure)):
                    count, span = grown[name, figure][step]
                    grown[name, figure][step] = (count + more[0], span + more[1])
            before[name] = (point.at, topic)
        for name, table in point.tables.items():
            _keep(tables[name]["freshness_seconds"], step, table.freshness_seconds, max)
            _keep(tables[name]["allowed_seconds"], step, table.allowed_seconds, min)
    for (name, figure), steps in grown.items():
        topics[name][figure] = [round(count / span, 3) if span else None for count, span in steps]
    return Thinned(
        times=times, disk_free=disk, newest=newest, until=now,
        topics={name: dict(one) for name, one in topics.items()},
        tables={name: dict(one) for name, one in tables.items()},
    )  # fmt: skip


def _keep(line: Line, step: int, value: float | None, worse: Callable[[float, float], float]) -> None:
    known = line[step]
    if value is not None:
        line[step] = value if known is None else worse(known, value)


def _grown(
    since: int, before: TopicPoint, until: int, now: TopicPoint, figure: str
) -> tuple[int, int] | None:
    """How many records have come, in how many seconds. None over a gap, and of counts that have become
    smaller: the topic was made again, or a replay has moved some of them to another verdict."""
    one, other = getattr(before, figure), getattr(now, figure)
    if one is None or other is None or other < one or until - since > GAP_S:
        return None
    return other - one, until - since

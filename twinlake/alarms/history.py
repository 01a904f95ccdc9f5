"""History: what the last days were like, a point a minute, in two files that take turns.

A point has a topic's counts as they are: who reads makes rates of them, over as many minutes as a picture has
room for. What was not known is not in it, so it is missing in a picture, too.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from twinlake.config.settings import Settings

POINT_EVERY_S = 60.0
MOST_POINTS = 7 * 24 * 60
"""Of one file: seven days. With the file before there are from seven days to fourteen."""
MOST_BYTES = 16 << 20
"""Of one file: with some fifty topics and tables it is full after half of its points."""


class TopicPoint(NamedTuple):
    """Counts of all records so far, `late` being some of the valid ones; the largest lag of the minute."""

    records: int | None
    valid: int | None
    invalid: int | None
    too_late: int | None
    late: int | None
    lag_records: int | None
    lag_seconds: float | None


class TablePoint(NamedTuple):
    """How old readers saw it, at most, in the minute; what its contract, or the setting, allows."""

    freshness_seconds: float
    allowed_seconds: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """A minute, by the time of its end in seconds since 1970; without topics and tables where the lake
    server did not answer in it. `disk_free` is the least of the minute, in bytes."""

    at: int
    disk_free: int
    topics: Mapping[str, TopicPoint] = field(default_factory=dict)
    tables: Mapping[str, TablePoint] = field(default_factory=dict)


def history_folder(settings: Settings) -> Path:
    """Where the history of a data directory is kept."""
    return settings.run_dir / "history"


class History:
    """The two files. One process appends; what a kill or a full disk has left of a line is read over."""

    def __init__(self, folder: Path, most_points: int = MOST_POINTS, most_bytes: int = MOST_BYTES) -> None:
        self._current, self._before = folder / "points.jsonl", folder / "before.jsonl"
        self._most_points, self._most_bytes = most_points, most_bytes
        self._written: int | None = None

    def append(self, point: Point) -> None:
        """Adds one point; OSError where there is no room, with the points of before as they are."""
        if self._written is None:
            self._current.parent.mkdir(parents=True, exist_ok=True)
            self._written = sum(1 for _ in _lines(self._current))
        if self._written >= self._most_points or _size(self._current) >= self._most_bytes:
            os.replace(self._current, self._before)
            self._written = 0
        line = json.dumps([point.at, point.disk_free, point.topics, point.tables], separators=(",", ":"))
        with open(self._current, "ab+", buffering=0) as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                line = f"\n{line}"  # a kill has torn the line before
            content = f"{line}\n".encode()
            if file.write(content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._current))
        self._written += 1

    def points(self, seconds: int, now: int) -> list[Point]:
        """Those of the last seconds until `now`, in seconds since 1970, by their time; OSError of files that
        cannot be read.

        Where the clock has gone back, what was written last holds: points of before that it has overtaken are
        left out.
        """
        newest = int(seconds / POINT_EVERY_S) + 1  # there is never more than one a minute
        current = _lines(self._current, newest)
        found, limit = list[Point](), now + 1
        for line in reversed([*_lines(self._before, newest - len(current)), *current]):
            if (point := _point(line)) is not None and now - seconds <= point.at < limit:
                found.append(point)
                limit = point.at
        return found[::-1]


def _lines(file: Path, newest: int | None = None) -> list[bytes]:
    """The newest lines of a file, of one that is not there none."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    content = content.removesuffix(b"\n")
    if not content or newest == 0:
        return []
    return content.split(b"\n") if newest is None else content.rsplit(b"\n", newest)[-newest:]


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _point(line: bytes) -> Point | None:
    try:
        at, free, topics, tables = json.loads(line)
        return Point(
            at=int(at), disk_free=int(free), topics={name: TopicPoint(*one) for name, one in topics.items()},
            tables={name: TablePoint(*one) for name, one in tables.items()},
        )  # fmt: skip
    except (ValueError, TypeError, AttributeError):  # it is torn, or another version has written it
        return None


class Minute:
    """Collects looks, and gives a point of them once a minute, with the worst that each has seen: what was
    an alarm for seconds is in the history, too."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._begin()

    def _begin(self) -> None:
        self._began = self._monotonic()
        self._topics: dict[str, TopicPoint] = {}
        self._tables: dict[str, TablePoint] = {}
        self._free: int | None = None

    def add(
        self, status: Mapping[str, Any] | None, tables: Mapping[str, TablePoint], disk_free: int,
        now: datetime,
    ) -> Point | None:  # fmt: skip
        """One look. `status` is the lake server's, None where it did not answer; `tables` are live."""
        self._free = disk_free if self._free is None else min(self._free, disk_free)
        for topic in status["topics"] if status else ():
            self._topics[topic["name"]] = _worst(self._topics.get(topic["name"]), topic)
        for name, one in tables.items():
            worst = max(one.freshness_seconds, self._tables.get(name, one).freshness_seconds)
            self._tables[name] = one._replace(freshness_seconds=round(worst, 3))
        if self._monotonic() - self._began < POINT_EVERY_S:
            return None
        point = Point(
            at=int(now.timestamp()), disk_free=self._free, topics=self._topics, tables=self._tables
        )  # fmt: skip
        self._begin()
        return point


def _worst(before: TopicPoint | None, topic: Mapping[str, Any]) -> TopicPoint:
    counts, lag_s = topic["counts"], topic.get("lag_seconds")
    known = topic.get("records") is not None  # not of a topic that was not opened
    return TopicPoint(
        records=topic["records"] if known else None, valid=counts.get("valid", 0) if known else None,
        invalid=counts.get("invalid", 0) if known else None,
        too_late=counts.get("too_late", 0) if known else None, late=counts.get("late", 0) if known else None,
        lag_records=_larger(before and before.lag_records, topic["lag_records"]),
        lag_seconds=_larger(before and before.lag_seconds, None if lag_s is None else round(lag_s, 3)),
    )  # fmt: skip


def _larger(one: Any, other: Any) -> Any:
    return max((each for each in (one, other) if each is not None), default=None)

"""Pins: where a live table is, and whether what a reader has seen of it can still be read; by commits alone.

This process asks nobody and writes nothing. A table over tables is where all of these have been together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import TwinlakeError
from twinlake.base.location import Location
from twinlake.difference.touched import is_repaired
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened, open_version
from twinlake.lake.catalog.release_log import live, releases
from twinlake.lake.catalog.version import Pin, load, version_file
from twinlake.lake.delta import delta, kept_commits
from twinlake.lake.delta.delta import Commit
from twinlake.lake.log import active_topics
from twinlake.lake.log.log import Log
from twinlake.reading.changes.position import Position, identity, position_of
from twinlake.reading.past import step_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 20
"""To find a position at which all tables have been that one reads."""


@dataclass(frozen=True, kw_only=True)
class At:
    """A version, pinned, in a release."""

    release: int
    opened: Opened
    pin: Pin

    @property
    def position(self) -> Position:
        return position_of(self.pin.version.table, self.release, self.pin)

    def is_back_from(self, other: At) -> bool:
        """Whether a reader who has seen the other one has seen more: a version may catch up first."""
        later = other.pin.position
        return self.release < other.release or any(
            batch < later.get(topic, 0) for topic, batch in self.pin.position.items()
        )

    def shows_as(self, other: At) -> bool:
        """Whether both surely show the same: commits of merges and of segments change nothing."""
        if (self.pin.version, self.pin.position) != (other.pin.version, other.pin.position):
            return False
        pairs = zip(_stored(self.opened, self.pin), _stored(other.opened, other.pin), strict=True)
        return not any(is_repaired(feed, old, new) for (feed, old), (_, new) in pairs)


class Pins:
    """One thread at a time asks of one table."""

    def __init__(self, spark: SparkSession, lake: Location) -> None:
        self._spark, self._lake = spark, lake
        self._opened: dict[tuple[str, str], Opened] = {}
        self._published: Mapping[str, int] = {}

    def now(self, table: str) -> At | None:
        """The table in the live release; None where it is not in it, or where it cannot be said yet."""
        release = live(self._lake)
        if release is None or table not in release.tables:
            return None
        opened = self._version(table, release.tables[table])
        pin = self._newest(opened)
        return At(release=release.number, opened=opened, pin=pin) if pin else None

    def seen(self, position: Position) -> At | None:
        """What a reader at this position has seen; None where that is gone, or never was here."""
        release = next((one for one in releases(self._lake) if one.number == position.release), None)
        name = release.tables.get(position.table) if release else None
        if release is None or name is None:
            return None
        if load(version_file(self._lake, position.table, name)).retired_at:
            return None
        try:
            opened = self._version(position.table, name)
            pin = self._pin(opened, position.batches, iter(position.commits))
        except (FileNotFoundError, TwinlakeError):  # whatever is wrong with it: what is live is shown whole
            return None
        if pin is None or identity(pin) != position.identity:
            return None
        return At(release=release.number, opened=opened, pin=pin)

    def _version(self, table: str, name: str) -> Opened:
        published = active_topics.published(self._lake)
        if published != self._published:  # a log may have gained fields
            self._published, self._opened = published, {}
        if (table, name) not in self._opened:
            version = load(version_file(self._lake, table, name))
            logs = {
                topic: Log(self._spark, self._lake, active_topics.active_topic(self._lake, topic))
                for topic in version.topics
            }
            reads = {read: self._version(read, used) for read, used in version.reads.items()}
            self._opened[table, name] = open_version(self._lake, version, logs, reads, creates=False)
        return self._opened[table, name]

    def _newest(self, opened: Opened) -> Pin | None:
        if isinstance(opened, MaintainedVersion):
            return _pin_at(opened, delta.newest_version(opened.path))
        ends = {topic: log.end() for topic, log in opened.logs.items()}
        for _ in range(TRIES):
            found = {
                (feed.version.table, feed.version.name): _last_at(feed, ends[feed.topic])
                for feed in _feeds(opened)
            }
            pins = [pin for pin in found.values() if pin is not None]
            if len(pins) < len(found):
                return None
            least = {**ends}
            for topic, batch in (one for pin in pins for one in pin.position.items()):
                least[topic] = min(least[topic], batch)
            if least == ends:
                commits = {key: pin.delta_version for key, pin in found.items() if pin}
                order = (commits[feed.version.table, feed.version.name] for feed in _in_order(opened))
                return self._pin(opened, ends, (one for one in order if one is not None))
            ends = least
        return None

    def _pin(self, opened: Opened, at: Mapping[str, int], commits: Iterator[int]) -> Pin | None:
        """The pin at these batches and these Delta versions, in the order of `pinned`."""
        if {*at} != {*opened.version.topics}:
            return None
        if isinstance(opened, MaintainedVersion):
            pin = _pin_at(opened, next(commits, -1))
            return pin if pin and pin.position == {opened.topic: at[opened.topic]} else None
        data = dict[str, dict[str, Any]]()
        for topic, log in opened.logs.items():
            if (metadata := _log_metadata(log, at[topic])) is None:
                return None
            data[topic] = metadata
        reads = {}
        for name, read in sorted(opened.reads.items()):
            pin = self._pin(_as_opened(read), {topic: at[topic] for topic in read.version.topics}, commits)
            if pin is None:
                return None
            reads[name] = _with_clocks(pin, data)
        return _with_clocks(
            Pin(version=opened.version, position={topic: at[topic] for topic in data}, reads=reads), data
        )


def _with_clocks(pin: Pin, data: Mapping[str, dict[str, Any]]) -> Pin:
    """By the clocks of the logs: all that is read sees the same, so what follows them differs nowhere."""
    return replace(
        pin,
        watermarks={topic: data[topic].get("watermark") for topic in pin.position},
        clocks={topic: dict(data[topic].get("clocks") or {}) for topic in pin.position},
    )


def _as_opened(read: Any) -> Opened:
    assert isinstance(read, (MaintainedVersion, LogView)), "it was opened here"
    return read


def _feeds(opened: Opened) -> list[MaintainedVersion]:
    return list({id(feed): feed for feed in _in_order(opened)}.values())


def _in_order(opened: Opened) -> Iterator[MaintainedVersion]:
    """The stored versions that it is made of, in the order of `pinned`."""
    if isinstance(opened, MaintainedVersion):
        yield opened
    else:
        for _, read in sorted(opened.reads.items()):
            yield from _in_order(_as_opened(read))


def _stored(opened: Opened, pin: Pin) -> Iterator[tuple[MaintainedVersion, Pin]]:
    if isinstance(opened, MaintainedVersion):
        yield opened, pin
    else:
        for name, read in sorted(opened.reads.items()):
            yield from _stored(_as_opened(read), pin.reads[name])


def _pin_at(feed: MaintainedVersion, delta_version: int) -> Pin | None:
    """None where the commits do not tell any more."""
    commit = kept_commits.newest_with_place(
        feed.path, delta_version, lambda metadata: step_place(feed.topic, metadata)
    )
    if commit is None and delta.commit(feed.path, 0) is not None:  # nothing has come yet
        commit = Commit(version=0, metadata={"position": {feed.topic: 0}, "watermark": None, "step": 0})
    return _pin_of(feed, delta_version, commit) if commit else None


def _last_at(feed: MaintainedVersion, batch: int) -> Pin | None:
    found = kept_commits.last_at(feed.path, lambda metadata: step_place(feed.topic, metadata), batch)
    if found is None:
        newest = _pin_at(feed, delta.newest_version(feed.path))
        return newest if newest and not newest.step else None
    return _pin_of(feed, found.version, found)


def _pin_of(feed: MaintainedVersion, delta_version: int, commit: Commit) -> Pin:
    data = commit.metadata
    return Pin(
        version=feed.version, position={feed.topic: data["position"][feed.topic]},
        watermarks={feed.topic: data["watermark"]}, clocks={feed.topic: data.get("clocks", {})},
        delta_version=delta_version, step=data["step"],
    )  # fmt: skip


def _log_metadata(log: Log, batch: int) -> dict[str, Any] | None:
    """What the commit says that has added this batch, as long as it is kept; nothing of an empty log."""
    if not batch:
        return {}
    found = kept_commits.last_at(log.path, lambda metadata: metadata.get("batch"), batch)
    return found.metadata if found and found.metadata["batch"] == batch else None

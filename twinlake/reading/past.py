"""Past: which release, and which position of its topics' logs, a reader's moment is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.location import Location
from twinlake.base.times import format_moment, from_micros, parse_moment
from twinlake.lake.catalog.maintained_version import stores_rows
from twinlake.lake.catalog.release_log import Release, releases
from twinlake.lake.catalog.version import Version, load, version_file
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_clock import position_at
from twinlake.reading.as_of import AsOf


@dataclass(frozen=True, kw_only=True)
class Past:
    """A release, and by topic the batch up to which its tables are read."""

    release: Release
    position: dict[str, int]


def release_of(lake: Location, asked: AsOf, now: datetime) -> Release:
    """The release whose tables are read; one at a time is found in the order of the release log."""
    history = releases(lake)
    if not history:
        raise NotFoundError(
            f"there is nothing as of {asked.text}", "nothing has been released yet",
            "`twinlake up` makes the first release",
        )  # fmt: skip
    if asked.release is not None:
        found = next((one for one in history if one.number == asked.release), None)
        if found is None:
            raise NotFoundError(
                f"there is no release {asked.release}", f"the newest is {history[-1].number}",
                "name one that `twinlake releases` lists",
            )  # fmt: skip
        return found
    if asked.time is None:
        return history[-1]
    if asked.time > now:
        why = f"it is {format_moment(now)} now"
        raise UsageError(f"{asked.text} is in the future", why, "name a time that has been")
    for release in reversed(history):
        if parse_moment(release.created_at) <= asked.time:
            return release
    first = f"release {history[0].number} was the first one, at {history[0].created_at}"
    raise UsageError(f"nothing had been released at {asked.text}", first, "name that time, or a later one")


def position_of(
    lake: Location, asked: AsOf, release: Release, tables: Sequence[Version], logs: Mapping[str, Log],
    now: datetime,
) -> dict[str, int]:  # fmt: skip
    """By topic of these, where the moment is: of a release where it was superseded, of the live one where
    these tables are now. UsageError for a topic that the moment does not tell, and for an empty log."""
    found = _positions(lake, asked, release, tables, logs, now)
    for topic, batch in found.items():
        _refuse_deleted(asked, logs[topic], batch)
    return found


def _positions(
    lake: Location, asked: AsOf, release: Release, tables: Sequence[Version], logs: Mapping[str, Log],
    now: datetime,
) -> dict[str, int]:  # fmt: skip
    if asked.time is not None:
        return {topic: position_at(log, asked.time, now) for topic, log in logs.items()}
    if asked.position:
        return {topic: _given(asked, log) for topic, log in logs.items()}
    successor = next((one for one in releases(lake) if one.number == release.number + 1), None)
    if successor is None:
        return _now(lake, tables, logs)
    found, then = greatest(successor.positions.values()), parse_moment(successor.created_at)
    # of a topic that no table of it has read, the release tells the time alone
    return {topic: found.get(topic) or position_at(log, then, now) for topic, log in logs.items()}


def _refuse_deleted(asked: AsOf, log: Log, batch: int) -> None:
    start = log.start
    if start is not None and batch < start.batch:
        topic, until = log.topic.name, format_moment(from_micros(start.until))
        raise UsageError(
            f"the log of {topic} does not reach back to {asked.text}",
            f"retention has deleted its records up to {until}, batch {start.batch}",
            f"name a later point in time, like position:{topic}={log.end()}",
        )


def greatest(positions: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """By topic, the greatest batch number of them."""
    found: dict[str, int] = {}
    for position in positions:
        for topic, batch in position.items():
            found[topic] = max(batch, found.get(topic, batch))
    return found


def step_place(topic: str, metadata: Mapping[str, object]) -> int | None:
    """Where a commit of a version has brought it in the topic's log; None for one that is not a step."""
    position = metadata.get("position")
    return position.get(topic) if isinstance(position, dict) and "watermark" in metadata else None


def _given(asked: AsOf, log: Log) -> int:
    topic, end = log.topic.name, log.end()
    batch = asked.position.get(topic)
    if not end:
        why = "no batch was ever added to it"
        raise UsageError(f"the log of {topic} is empty", why, "wait for its first records")
    if batch is None:
        why = f"the query reads topic {topic}"
        raise UsageError(f"{asked.text} tells no position of {topic}", why, f"name one, like {topic}={end}")
    if batch > end:
        why = f"its newest batch is {end}"
        raise UsageError(f"the log of {topic} has no batch {batch} yet", why, f"name {end} or one before it")
    return batch


def _now(lake: Location, tables: Iterable[Version], logs: Mapping[str, Log]) -> dict[str, int]:
    """Where all of these that are stored have come; a log's end for a topic that none of them keeps."""
    found = {topic: log.end() for topic, log in logs.items()}
    for version in _all(lake, tables):
        if stores_rows(version):
            (topic,) = version.topics
            if topic in found:
                path = version.path(lake)
                metadata = delta.newest_metadata(path, lambda metadata: "watermark" in metadata) or {}
                found[topic] = min(found[topic], step_place(topic, metadata) or 0)
    return found


def _all(lake: Location, tables: Iterable[Version]) -> Iterable[Version]:
    """These, and what they read."""
    for version in tables:
        yield version
        yield from _all(lake, (load(version_file(lake, *read)) for read in version.reads.items()))

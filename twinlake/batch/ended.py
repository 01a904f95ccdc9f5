"""Ended: deletes the states of windows that a table shows no more, because its definition has a retention.

Views leave them out by themselves (`kinds/ending.py`): no reader at any position from now on sees a row less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import TwinlakeError
from twinlake.base.job import Run
from twinlake.batch.due import RETENTION
from twinlake.batch.rebuild import closed_rows, files_within
from twinlake.batch.staged import Staged
from twinlake.kinds.evidence import SEGMENT, TELLS
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import Closed, batch_epoch
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.open_lake import OpenLake

LOCK_WAIT_S = 900.0
"""So long it waits for a rebuild of the version, or a merge, to end."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What of a version is shown no more: `rows` states of windows that start before `before`, and the bytes
    of the files that hold nothing else. None of it where `before` is None."""

    table: str
    version: str
    retention: str
    before: str | None = None
    rows: int = 0
    bytes: int = 0
    deleted: bool = False


def expire_table(lake: OpenLake, table: str, run: Run, only_check: bool) -> list[Ended]:
    """Of each living version of the table whose definition says a retention; with `only_check` nothing is
    deleted. An error of one is raised once the others are done. Killed anywhere, it is as it was, or done."""
    found, failed = list[Ended](), list[TwinlakeError]()
    for version in lake.versions.living():
        if version.table == table and version.definition.get("retention"):
            run.check_cancelled()
            try:
                found.append(_expire(lake, version, run, only_check))
            except TwinlakeError as error:
                failed.append(error)
    if failed:
        raise failed[0]
    return found


def with_retention(lake: OpenLake) -> list[str]:
    """The tables of which a living version's definition says one."""
    return sorted({one.table for one in lake.versions.living() if one.definition.get("retention")})


def _expire(lake: OpenLake, version: Version, run: Run, only_check: bool) -> Ended:
    feed = lake.versions.opened(version)
    assert isinstance(feed, MaintainedVersion)  # no other kind knows a retention
    pin = lake.versions.pin(version, run)
    found = _ended(feed, pin, pin.segment or 0)
    if not found.rows or only_check:
        return found
    with lake.versions.batch_lock(version, LOCK_WAIT_S, run):
        closed = lake.versions.close_segment(version, run)
        return _delete(lake, feed, closed, run)


def _ended(feed: MaintainedVersion, pin: Pin, through: int) -> Ended:
    """What has ended at the pin, of segments up to `through`."""
    version, retention = feed.version, feed.version.definition["retention"]
    windows = _before(feed, pin)
    closed = Closed(pin=pin, through=through, records=0)
    rows = closed_rows(feed, closed, windows).where(TELLS).count() if windows.ranges else 0
    if not rows:
        return Ended(table=version.table, version=version.name, retention=retention)
    (ended,) = windows.ranges
    whole, _ = files_within(feed, closed, windows)
    return Ended(
        table=version.table, version=version.name, retention=retention,
        before=ended.to_json()["to"], rows=rows, bytes=sum(whole.values()),
    )  # fmt: skip


def _before(feed: MaintainedVersion, pin: Pin) -> Windows:
    """The windows that the view shows no more at the pin."""
    (shown,) = feed.shown(pin).ranges
    return Windows.between(None, shown.start) if shown.start else Windows(())


def _delete(lake: OpenLake, feed: MaintainedVersion, closed: Closed, run: Run) -> Ended:
    """By one commit. The caller holds the version's batch lock."""
    found, windows = _ended(feed, closed.pin, closed.through), _before(feed, closed.pin)
    if not found.rows:  # all of them were in a segment that somebody has just rewritten
        return found
    whole, partly = files_within(feed, closed, windows)
    left = Staged(feed, lake.staging(run.id) / "ended" / feed.version.name).beside(partly, windows)
    added = feed.appender.adopt(left, {SEGMENT: str(closed.through)})
    epoch = batch_epoch(feed)
    metadata = {"kind": RETENTION, "before": found.before, "epoch": epoch, "job": run.id}
    breakpoints.at(Point.BEFORE_RETENTION, feed.version.table)
    feed.appender.commit(added, feed.batch_writer, epoch, metadata, [*whole, *partly])
    breakpoints.at(Point.AFTER_RETENTION, feed.version.table)
    return replace(found, deleted=True)

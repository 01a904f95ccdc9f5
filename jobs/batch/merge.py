"""Merge: small closed segments of a version become one, often and cheaply; which ones, and doing it."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.kinds.evidence import SEGMENT
from jobs.lake import delta
from jobs.lake.feed import Feed
from jobs.lake.segments import Segment, arranged, batch_epoch, segments

GROWTH = 2
"""An older segment joins a merge when it is at most this many times as large as everything newer in it."""
FILE_BYTES = 128 << 20


def merge_small(feed: Feed, open_segment: int) -> tuple[int, int] | None:
    """Merge the small closed segments, in the lane that the caller holds; the range that was merged."""
    closed = [segment for segment in segments(feed) if segment.number < open_segment]
    chosen = choose(closed)
    if chosen:
        size = sum(segment.bytes for segment in closed if segment.number >= chosen[0])
        merge_segments(feed, *chosen, batch_epoch(feed), size)
    return chosen


def choose(closed: Sequence[Segment]) -> tuple[int, int] | None:
    """The range of segments to merge now, or None: the newest ones, and older ones while they are no giants.

    Every row is rewritten about log(n) times over n segments, and about log(n) segments are left to read.
    """
    if not closed:
        return None
    size = files = 0
    first = None
    for segment in reversed(closed):
        if first is not None and segment.bytes > GROWTH * size:
            break
        size += segment.bytes
        files += segment.files
        first = segment.number
    if first is None or (first == closed[-1].number and files <= _files(size)):
        return None
    return first, closed[-1].number


def merge_segments(feed: Feed, first: int, last: int, epoch: int, size: int) -> delta.Commit:
    """Replace the closed segments first..last (`size` bytes) by their merged rows as segment `last`.

    One commit, which takes `epoch`, the lane's next number.
    """
    between = f"{SEGMENT} >= {first} AND {SEGMENT} <= {last}"
    merged = feed.definition.merge(feed.rows().where(between).drop(SEGMENT))
    told = {"kind": "merge", "epoch": epoch, "from_segment": first, "through_segment": last}
    rows = arranged(feed, merged.coalesce(_files(size)), last)
    return delta.replace(rows, feed.path, between, feed.batch_lane, epoch, told)


def _files(size: int) -> int:
    """Into how many files so many bytes are written."""
    return 1 + size // FILE_BYTES

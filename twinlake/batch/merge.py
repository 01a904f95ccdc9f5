"""Merge: small closed segments of a version become one, often and cheaply; which ones, and doing it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from twinlake.kinds.evidence import SEGMENT
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import Segment, arranged, batch_epoch, first_to_merge, segments
from twinlake.lake.delta import delta
from twinlake.spark.prepared_plan import TooLargeError

FILE_BYTES = 128 << 20
SMALL_BYTES = 16 << 20
"""Up to so many bytes are merged in memory, by a prepared plan and our own commit; more by Delta's."""


def merge_small(feed: MaintainedVersion, open_segment: int) -> tuple[int, int] | None:
    """Merge the small closed segments, under the lock that the caller holds; the range that was merged."""
    chosen = choose([segment for segment in segments(feed) if segment.number < open_segment])
    if not chosen:
        return None
    merge_segments(feed, chosen, batch_epoch(feed))
    return chosen[0].number, chosen[-1].number


def choose(closed: Sequence[Segment]) -> Sequence[Segment]:
    """The segments to merge now, maybe none."""
    chosen = closed[first_to_merge([segment.bytes for segment in closed]) :]
    files, size = sum(len(segment.files) for segment in chosen), sum(segment.bytes for segment in chosen)
    return chosen if len(chosen) > 1 or files > files_for(size) else []


def merge_segments(feed: MaintainedVersion, closed: Sequence[Segment], epoch: int) -> delta.Commit:
    """Replace these neighbouring closed segments by their merged rows as the last one of them.

    One commit, which takes `epoch`, the batch writer's next number.
    """
    first, last = closed[0].number, closed[-1].number
    metadata = {"kind": "merge", "epoch": epoch, "from_segment": first, "through_segment": last}
    files = [path for segment in closed for path in segment.files]
    size = sum(segment.bytes for segment in closed)
    try:
        states = feed.merged([unquote(path) for path in files]) if size <= SMALL_BYTES else None
    except TooLargeError:
        states = None
    if states is None:
        between = f"{SEGMENT} >= {first} AND {SEGMENT} <= {last}"
        merged = feed.definition.merge(feed.rows().where(between).drop(SEGMENT))
        rows = arranged(feed, merged.coalesce(files_for(size)), last)
        return delta.replace(rows, feed.path, between, feed.batch_writer, epoch, metadata)
    added = feed.appender.write(states, {SEGMENT: str(last)})
    return feed.appender.commit(added, feed.batch_writer, epoch, metadata, removed=files)


def files_for(size: int) -> int:
    """Into how many files so many bytes are written."""
    return 1 + size // FILE_BYTES

"""Segment: a run of consecutive steps of a version; which closed ones to merge, and merging them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.kinds import compile
from jobs.lake import delta
from jobs.speed.advance import Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STEPS_PER_SEGMENT = 50
GROWTH = 2
"""An older segment joins a merge when it is at most this many times as large as everything newer in it."""
FILE_BYTES = 128 << 20


@dataclass(frozen=True, kw_only=True)
class Segment:
    number: int
    files: int
    bytes: int


def segments(feed: Feed) -> list[Segment]:
    """The version's segments that hold rows, oldest first, from Delta's own file list."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    listed = DataFrame(delta.snapshot(feed.spark, feed.path).allFiles().toDF(), feed.spark)
    number = F.col("partitionValues").getItem("_segment").cast("int").alias("number")
    counted = listed.groupBy(number).agg(F.count("*").alias("files"), F.sum("size").alias("bytes"))
    return sorted((Segment(**row.asDict()) for row in counted.collect()), key=lambda segment: segment.number)


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


def _files(size: int) -> int:
    """Into how many files so many bytes are written."""
    return 1 + size // FILE_BYTES


def batch_epoch(feed: Feed) -> int:
    """The number the next batch commit must take; read it only while holding the version's lane."""
    return delta.transaction_version(feed.spark, feed.path, feed.batch_lane) + 1


def merge_segments(feed: Feed, first: int, last: int, epoch: int, size: int = 0) -> delta.Commit:
    """Replace the closed segments first..last (`size` bytes) by their merged rows as segment `last`, in
    one commit."""
    between = f"_segment >= {first} AND _segment <= {last}"
    merged = compile.merge(feed.definition, feed.rows().where(between).drop("_segment"))
    return delta.replace(
        arranged(feed, merged.coalesce(_files(size)), last),
        feed.path,
        between,
        feed.batch_lane,
        epoch,
        {"kind": "merge", "epoch": epoch, "from_segment": first, "through_segment": last},
    )


def arranged(feed: Feed, rows: DataFrame, segment: int) -> DataFrame:
    """The rows as a segment of the version, sorted so that files prune by window and key."""
    from pyspark.sql import functions as F

    return (
        rows.sortWithinPartitions(*feed.order)
        .withColumn("_segment", F.lit(segment))
        .select(*feed.schema.names)
    )

"""Segment: a run of consecutive steps of a version; what rewrites closed ones in the batch lane needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.kinds import evidence
from jobs.lake import delta
from jobs.lake.feed import Feed
from jobs.lake.version import Pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Segment:
    number: int
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Closed:
    """The closed part of a version: all up to segment `through`, the log up to the pin's position."""

    pin: Pin
    through: int
    records: int
    """How many records of the log that is."""


def segments(feed: Feed) -> list[Segment]:
    """The version's segments that hold rows, oldest first, from Delta's own file list."""
    from pyspark.sql import functions as F

    number = F.col("partitionValues").getItem(evidence.SEGMENT).cast("int").alias("number")
    listed = delta.files(feed.spark, feed.path)
    counted = listed.groupBy(number).agg(F.count("*").alias("files"), F.sum("size").alias("bytes"))
    return sorted((Segment(**row.asDict()) for row in counted.collect()), key=lambda segment: segment.number)


def batch_epoch(feed: Feed) -> int:
    """The number the next batch commit must take; read it only while holding the version's lane."""
    return feed.appender.transaction(feed.batch_lane) + 1


def arranged(feed: Feed, rows: DataFrame, segment: int) -> DataFrame:
    """States as rows of a segment, sorted so that files prune by window and key; the feed's columns."""
    from pyspark.sql import functions as F

    return feed.sorted(rows).withColumn(evidence.SEGMENT, F.lit(segment)).select(*feed.schema.names)

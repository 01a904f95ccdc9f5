"""Segment: a run of consecutive steps of a version; what rewrites closed ones under the batch lock needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.kinds import evidence
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Segment:
    number: int
    files: dict[str, int]
    """The paths of its data files, as Delta's log writes them, and their bytes."""

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True, kw_only=True)
class Closed:
    """The closed part of a version: all up to segment `through`, the log up to the pin's position."""

    pin: Pin
    through: int
    records: int
    """How many records of the log that is."""


def segments(feed: MaintainedVersion) -> list[Segment]:
    """The version's segments that hold rows, oldest first."""
    found: dict[int, dict[str, int]] = {}
    for path, file in feed.appender.files().items():
        found.setdefault(segment_of(path), {})[path] = file.bytes
    return [Segment(number=number, files=files) for number, files in sorted(found.items())]


def segment_of(path: str) -> int:
    """The segment that a data file of a version belongs to, by its path below the table."""
    return int(path.partition("/")[0].removeprefix(f"{evidence.SEGMENT}="))


def batch_epoch(feed: MaintainedVersion) -> int:
    """The number the next batch commit must take; read it only while holding the version's lock."""
    return feed.appender.transaction(feed.batch_writer) + 1


def arranged(feed: MaintainedVersion, rows: DataFrame, segment: int) -> DataFrame:
    """States as rows of a segment, sorted so that files prune by window and key; the feed's columns."""
    from pyspark.sql import functions as F

    return feed.sorted(rows).withColumn(evidence.SEGMENT, F.lit(segment)).select(*feed.schema.names)


GROWTH = 2
"""An older piece joins when it is at most this many times as large as everything newer."""


def first_to_merge(sizes: Sequence[int]) -> int:
    """The index of the oldest piece to write with all newer ones; `len(sizes)` where there are none.

    A log-structured merge: over n pieces every byte is rewritten about log(n) times, and about log(n) are
    left.
    """
    held, first = 0, len(sizes)
    for index in reversed(range(len(sizes))):
        if first < len(sizes) and sizes[index] > GROWTH * held:
            break
        held += sizes[index]
        first = index
    return first

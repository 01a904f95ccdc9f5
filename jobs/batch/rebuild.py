"""Rebuild: the batch layer. Computes closed history again from the log and replaces it in the version.

The caller holds the version's batch lane from before the segment is closed until the last replace. A late
replace with an old segment number would not conflict but count twice (9,000 became 15,000): the lane keeps
that from happening, and the lane's transaction number refuses it if it happens all the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import breakpoints
from jobs.batch.attempt import Attempt
from jobs.batch.verify import begin, compare
from jobs.breakpoints import Point
from jobs.errors import BusyError
from jobs.kinds.evidence import SEGMENT
from jobs.kinds.windows import ALL, WindowRange
from jobs.lake import delta
from jobs.lake.certificates import NOTHING, Certificate
from jobs.lake.feed import Feed
from jobs.lake.segments import Closed, arranged
from jobs.run import Run
from jobs.times import from_micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_RECORDS = 20_000_000
"""A rebuild over more records of the log is cut into ranges of windows."""
REPLACE_TRIES = 5
COMPUTING, COMPARING = 0.7, 0.2
"""The shares of a chunk's time, about; the rest is replacing."""


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """The certificate of the comparison, and what was replaced; `skipped` chunks an earlier attempt did."""

    certificate: Certificate
    replaced: bool
    chunks: int
    skipped: int


def rebuild(
    feed: Feed,
    closed: Closed,
    open_segment: Callable[[], int],
    run: Run,
    staging: Path,
    created_at: str,
    windows: WindowRange = ALL,
    repair: bool = False,
    chunk_records: int = CHUNK_RECORDS,
) -> Rebuilt:
    """Chunk by chunk: compute, compare, replace. A difference replaces nothing unless `repair` says so.

    `open_segment` tells which segment the owner appends to. Chunks that an earlier attempt of the same job
    replaced are skipped, and the others are compared where that attempt had pinned the version, so that one
    certificate tells of one position; what it repaired counts as found. Raises BusyError when somebody else
    rewrites the same rows, CancelledError between chunks.
    """
    attempt = Attempt(staging / "attempt.json", run.id, feed, closed, windows)
    closed = attempt.closed
    made = begin("rebuild", replace(closed.pin, segment=closed.through), run, created_at, windows)
    parts = chunks(feed, closed, windows, chunk_records)
    unrepaired = NOTHING
    replaced = skipped = 0
    for number, part in enumerate(parts):
        run.check_cancelled()
        run.progress(number, len(parts), "chunks", f"computing {_named(part)}", span=COMPUTING)
        if attempt.done(part):
            skipped += 1
            continue
        batch = _staged(feed, closed, part, staging / f"chunk-{number}")
        run.progress(number + COMPUTING, len(parts), "chunks", f"comparing {_named(part)}", span=COMPARING)
        found = compare(feed, closed_rows(feed, closed, part), batch)
        if found.equal or repair:
            run.check_cancelled()
            begun = COMPUTING + COMPARING
            run.progress(number + begun, len(parts), "chunks", f"replacing {_named(part)}", span=1 - begun)
            attempt.replacing(part, found)
            breakpoints.at(Point.BEFORE_REPLACE, feed.version.table)
            _replace_or_retry(feed, closed, part, batch, open_segment, attempt.next_epoch, run)
            breakpoints.at(Point.AFTER_REPLACE, feed.version.table)
            attempt.replaced(part, found)
            replaced += 1
        else:
            unrepaired += found
        shutil.rmtree(staging / f"chunk-{number}", ignore_errors=True)
    run.progress(len(parts), len(parts), "chunks", "done")
    return Rebuilt(
        certificate=made.with_outcome(attempt.outcome + unrepaired),
        replaced=replaced + skipped > 0,
        chunks=len(parts),
        skipped=skipped,
    )


def _replace_or_retry(
    feed: Feed,
    closed: Closed,
    part: WindowRange,
    batch: DataFrame,
    open_segment: Callable[[], int],
    epoch: int,
    run: Run,
) -> None:
    """An OPTIMIZE by somebody else moves rows between files and wins; the rows are the same, so try again."""
    from delta.exceptions import ConcurrentTransactionException, DeltaConcurrentModificationException

    for left in reversed(range(REPLACE_TRIES)):
        try:
            replace_closed(feed, closed, part, batch, open_segment(), epoch, run.id)
            return
        except DeltaConcurrentModificationException as error:
            if not left or isinstance(error, ConcurrentTransactionException):
                raise BusyError(
                    f"{feed.version} was changed beside the rebuild",
                    str(error).splitlines()[0],
                    "start the rebuild again when nothing else rewrites the table; nothing was half done",
                ) from error
        run.check_cancelled()


def chunks(
    feed: Feed, closed: Closed, windows: WindowRange, chunk_records: int = CHUNK_RECORDS
) -> list[WindowRange]:
    """The ranges of windows to rebuild one after another; tables without windows are one chunk."""
    from pyspark.sql import functions as F

    grid = feed.definition.grid
    count = -(-closed.records // chunk_records)
    if grid is None or count <= 1:
        return [windows]
    micros = F.unix_micros(grid.column)
    rows = closed_rows(feed, closed, windows)
    bounds = rows.agg(F.min(micros).alias("first"), F.max(micros).alias("last")).first()
    if bounds is None or bounds["first"] is None:
        return [windows]
    return list(windows.parts(from_micros(bounds["first"]), from_micros(bounds["last"]), grid.size, count))


def closed_rows(feed: Feed, closed: Closed, windows: WindowRange) -> DataFrame:
    """The stored partial rows of the closed segments at the pinned Delta version, limited to the windows.

    After an earlier chunk of this rebuild the pinned version still tells the truth about the other windows.
    """
    rows = feed.rows(closed.pin.delta_version).where(f"{SEGMENT} <= {closed.through}")
    return rows.where(_within(feed, windows))


def replace_closed(
    feed: Feed,
    closed: Closed,
    windows: WindowRange,
    batch: DataFrame,
    open_segment: int,
    epoch: int,
    job: str,
) -> delta.Commit:
    """Replace the closed segments' rows (of these windows) by the batch's, in one short commit.

    `epoch` must be the lane's next number: one that was used before is refused, whatever was written since.
    """
    if closed.through >= open_segment:
        raise BusyError(
            f"segment {closed.through} of {feed.version} is not closed",
            f"the owner still appends to segment {open_segment}",
            "start the rebuild again; it closes the open segment itself",
        )
    predicate = f"{SEGMENT} <= {closed.through}"
    if not windows.is_all:
        predicate += f" AND {_within(feed, windows)}"
    told = {
        "kind": "rebuild",
        "epoch": epoch,
        "through_segment": closed.through,
        "job": job,
        "windows": windows.to_json(),
    }
    rows = arranged(feed, batch, closed.through)
    return delta.replace(rows, feed.path, predicate, feed.batch_lane, epoch, told)


def _within(feed: Feed, windows: WindowRange) -> str:
    grid = feed.definition.grid
    return windows.predicate(grid.column) if grid else "true"


def _staged(feed: Feed, closed: Closed, windows: WindowRange, place: Path) -> DataFrame:
    """The batch result, computed once and kept as files: it is compared first and written after."""
    rows = feed.log.rows(0, closed.pin.position[feed.topic])
    batch = feed.definition.partial(rows).where(_within(feed, windows))
    batch.write.mode("overwrite").parquet(str(place))
    return feed.spark.read.schema(batch.schema).parquet(str(place))


def _named(windows: WindowRange) -> str:
    if windows.is_all:
        return "all of it"
    told = windows.to_json()
    return f"windows {told['from'] or 'from the first'} to {told['to'] or 'the last'}"

"""Rebuild: the batch layer. Computes closed history again from the log and replaces it in the version.

The caller holds the version's batch lane from before the segment is closed until the last replace. A late
replace with an old segment number would not conflict but count twice (9,000 became 15,000): the lane keeps
that from happening, and the lane's transaction number refuses it if it happens all the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from jobs import breakpoints
from jobs.batch.attempt import Asked, Attempt
from jobs.batch.due import Scope
from jobs.batch.verify import begin, compare, within
from jobs.breakpoints import Point
from jobs.errors import BusyError
from jobs.kinds.evidence import ROWS, SEGMENT
from jobs.kinds.windows import ALL, Windows
from jobs.lake import delta
from jobs.lake.certificates import NOTHING, Certificate
from jobs.lake.feed import Feed
from jobs.lake.segments import Closed, arranged
from jobs.run import Run
from jobs.times import moment_or_none

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_RECORDS = 20_000_000
"""A rebuild over more records of the log is compared and replaced in ranges of windows, one after another."""
REPLACE_TRIES = 5
COMPUTING, COMPARING = 0.7, 0.2
"""The shares of a rebuild's time, about; the rest is replacing."""
CHUNK = "_chunk"

log = structlog.get_logger(__name__)


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
    asked: Windows | Callable[[Closed], Scope] = ALL,
    repair: bool = False,
    chunk_records: int = CHUNK_RECORDS,
) -> Rebuilt:
    """Compute everything in one pass over the log; then, chunk by chunk, compare and replace.

    A difference replaces nothing unless `repair` says so. `asked` are the windows, or what finds out which
    are due. `open_segment` tells which segment the owner appends to. What an earlier attempt of the same job
    has computed is used again, the chunks that it replaced are skipped, and the others are compared where it
    had pinned the version, so that one certificate tells of one position; what it repaired counts as found.
    Raises BusyError when somebody else rewrites the same rows, CancelledError between chunks.
    """
    wanted: Asked = asked.to_json() if isinstance(asked, Windows) else "due"
    attempt = Attempt(staging / "attempt.json", run.id, feed, closed, wanted)
    closed = attempt.closed
    computed = staging / "computed"
    scope = attempt.scope
    if scope is None:
        if computed.exists():
            shutil.rmtree(computed)  # of another position
        scope = Scope(windows=asked) if isinstance(asked, Windows) else asked(closed)
        attempt.cut(scope, chunks(feed, closed, scope.windows, chunk_records))
    parts = attempt.parts
    run.check_cancelled()
    pin = replace(closed.pin, segment=closed.through)
    made = begin("rebuild", pin, run, created_at, scope)
    unrepaired = NOTHING
    replaced = skipped = 0
    begun, share = COMPUTING * len(parts), 1 - COMPUTING
    if not all(attempt.done(part) for part in parts):
        run.progress(0, len(parts), "chunks", f"computing {scope.windows.words}", span=begun)
        if not attempt.files or attempt.files != _files(computed):
            _compute(feed, closed, scope.windows, parts, computed)
            attempt.computed(_files(computed))
    for number, part in enumerate(parts):
        run.check_cancelled()
        if attempt.done(part):
            skipped += 1
            continue
        at = begun + number * share
        run.progress(at, len(parts), "chunks", f"comparing {part.words}", span=COMPARING)
        batch = _computed(feed, computed, number)
        found = compare(feed, closed_rows(feed, closed, part), batch)
        if found.equal or repair:
            run.check_cancelled()
            left = share - COMPARING
            run.progress(at + COMPARING, len(parts), "chunks", f"replacing {part.words}", span=left)
            attempt.replacing(part, found)
            if not found.equal:
                log.error(
                    "speed and batch differ, and the difference is replaced", job=run.id,
                    table=feed.version.table, version=feed.version.name, differing=found.differing,
                    differences=found.differences,
                )  # fmt: skip
            breakpoints.at(Point.BEFORE_REPLACE, feed.version.table)
            _replace_or_retry(feed, closed, part, batch, open_segment, attempt.next_epoch, run)
            breakpoints.at(Point.AFTER_REPLACE, feed.version.table)
            attempt.replaced(part, found)
            replaced += 1
        else:
            unrepaired += found
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
    part: Windows,
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


def chunks(feed: Feed, closed: Closed, windows: Windows, chunk_records: int = CHUNK_RECORDS) -> list[Windows]:
    """The windows to compare and replace one after another, about as many stored rows in each part.

    Tables without windows are one chunk; where no window is asked for there is none.
    """
    from pyspark.sql import functions as F

    grid = feed.definition.grid
    if grid is None or not windows.ranges or closed.records <= chunk_records:
        return [windows] if windows.ranges else []
    rows = closed_rows(feed, closed, windows)
    held = rows.agg(F.sum(ROWS).alias("records")).first()
    count = -(-((held and held["records"]) or 0) // chunk_records)
    if count <= 1:
        return [windows]
    shares = F.lit([part / count for part in range(1, count)])
    found = rows.agg(F.percentile_approx(F.unix_micros(grid.column), shares).alias("bounds")).first()
    moments = map(moment_or_none, (found and found["bounds"]) or [])
    return list(windows.cut([moment for moment in moments if moment]))


def closed_rows(feed: Feed, closed: Closed, windows: Windows) -> DataFrame:
    """The stored partial rows of the closed segments at the pinned Delta version, limited to the windows.

    After an earlier chunk of this rebuild the pinned version still tells the truth about the other windows.
    """
    rows = feed.rows(closed.pin.delta_version).where(f"{SEGMENT} <= {closed.through}")
    return rows.where(within(feed, windows))


def replace_closed(
    feed: Feed,
    closed: Closed,
    windows: Windows,
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
        predicate += f" AND ({within(feed, windows)})"
    told = {
        "kind": "rebuild",
        "epoch": epoch,
        "through_segment": closed.through,
        "job": job,
        "windows": windows.to_json(),
    }
    rows = arranged(feed, batch, closed.through)
    return delta.replace(rows, feed.path, predicate, feed.batch_lane, epoch, told)


def _compute(feed: Feed, closed: Closed, windows: Windows, parts: Sequence[Windows], place: Path) -> None:
    """The batch result as files by chunk, in one pass over the log."""
    from pyspark.sql import functions as F

    batch = feed.definition.partial(feed.log.rows(0, closed.pin.position[feed.topic]), windows)
    cases = (f"WHEN {within(feed, part)} THEN {number}" for number, part in enumerate(parts[1:], start=1))
    chunk = f"CASE {' '.join(cases)} ELSE 0 END" if len(parts) > 1 else "0"
    batch.withColumn(CHUNK, F.expr(chunk)).write.mode("overwrite").partitionBy(CHUNK).parquet(str(place))


def _files(place: Path) -> dict[str, int]:
    return {str(file.relative_to(place)): file.stat().st_size for file in sorted(place.rglob("*.parquet"))}


def _computed(feed: Feed, place: Path, number: int) -> DataFrame:
    """The batch result of one chunk: states."""
    files = sorted(map(str, (place / f"{CHUNK}={number}").glob("*.parquet")))
    if not files:
        return feed.spark.read.schema(feed.states).parquet(str(place)).drop(CHUNK).limit(0)
    return feed.spark.read.schema(feed.states).parquet(*files)

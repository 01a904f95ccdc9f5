"""Rebuild: the batch layer. Computes closed history again from the log and replaces it in the version.

The caller holds the version's batch lock from before the segment is closed until the last replace. A late
replace with an old segment number would not conflict but count twice (9,000 became 15,000): the lock keeps
that from happening, and the batch writer's transaction number refuses it if it happens all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.base.times import moment_or_none, parse_moment
from twinlake.batch.attempt import Asked, Attempt
from twinlake.batch.due import Scope
from twinlake.batch.staged import Staged
from twinlake.batch.verify import begin, compare
from twinlake.difference.touched import within
from twinlake.kinds.evidence import ROWS, SEGMENT, TELLS
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.certificates import NOTHING, Certificate
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import Closed, segment_of
from twinlake.lake.delta import delta
from twinlake.lake.delta.table_state import LiveFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_RECORDS = 20_000_000
"""A rebuild over more records of the log is compared and replaced in ranges of windows, one after another."""
REPLACE_TRIES = 5
COMPUTING, COMPARING = 0.7, 0.2
"""The shares of a rebuild's time, about; the rest is replacing."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """The certificate of the comparison, and what was replaced; `skipped` chunks an earlier attempt did."""

    certificate: Certificate
    replaced: bool
    chunks: int
    skipped: int


def rebuild(
    feed: MaintainedVersion,
    closed: Closed,
    open_segment: Callable[[], int],
    run: Run,
    staging: Location,
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
    staged = Staged(feed, staging / "computed")
    scope = attempt.scope or (Scope(windows=asked) if isinstance(asked, Windows) else asked(closed))
    shown = scope.windows.since(feed.shown(closed.pin))
    if attempt.scope is None:
        staged.drop()
        attempt.cut(scope, chunks(feed, closed, shown, chunk_records))
    parts = attempt.parts
    run.check_cancelled()
    pin = replace(closed.pin, segment=closed.through)
    made = begin("rebuild", pin, run, created_at, scope)
    unrepaired = NOTHING
    replaced = skipped = 0
    begun, share = COMPUTING * len(parts), 1 - COMPUTING
    if not all(attempt.done(part) for part in parts):
        run.progress(0, len(parts), "chunks", f"computing {scope.windows.words}", span=begun)
        if not staged.take_over(attempt.files):
            attempt.computed(staged.compute(closed, shown, parts))
    for number, part in enumerate(parts):
        run.check_cancelled()
        if attempt.done(part):
            skipped += 1
            continue
        at = begun + number * share
        run.progress(at, len(parts), "chunks", f"comparing {part.words}", span=COMPARING)
        found = compare(feed, closed_rows(feed, closed, part), staged.rows(number))
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
            replace_closed(
                staged, number, closed, part, open_segment, attempt.next_epoch, run, same=found.equal
            )
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


def chunks(
    feed: MaintainedVersion, closed: Closed, windows: Windows, chunk_records: int = CHUNK_RECORDS
) -> list[Windows]:
    """The windows to compare and replace one after another, about as many stored rows in each part.

    Tables without windows are one chunk; where no window is asked for there is none.
    """
    from pyspark.sql import functions as F

    grid = feed.definition.cells
    if grid is None or not windows.ranges or closed.records <= chunk_records:
        return [windows] if windows.ranges else []
    rows = closed_rows(feed, closed, windows)
    held = rows.where(TELLS).agg(F.sum(ROWS).alias("records")).first()
    count = -(-((held and held["records"]) or 0) // chunk_records)
    if count <= 1:
        return [windows]
    shares = F.lit([part / count for part in range(1, count)])
    found = rows.agg(F.percentile_approx(F.unix_micros(grid.column), shares).alias("bounds")).first()
    moments = map(moment_or_none, (found and found["bounds"]) or [])
    return list(windows.cut([moment for moment in moments if moment]))


def closed_rows(feed: MaintainedVersion, closed: Closed, windows: Windows) -> DataFrame:
    """The stored partial rows of the closed segments at the pinned Delta version, limited to the windows.

    After an earlier chunk of this rebuild the pinned version still tells the truth about the other windows.
    """
    rows = feed.rows(closed.pin.delta_version).where(f"{SEGMENT} <= {closed.through}")
    return rows.where(within(feed, windows))


def replace_closed(
    staged: Staged,
    number: int,
    closed: Closed,
    windows: Windows,
    open_segment: Callable[[], int],
    epoch: int,
    run: Run,
    same: bool,
) -> delta.Commit:
    """Replace the closed segments' rows (of these windows) by those of a staged chunk, in one short commit.

    `same` says that readers see no change. `epoch` must be the batch writer's next number: one that was used
    before is refused, whatever was written since. What somebody else rewrites meanwhile (an OPTIMIZE, say) is
    looked up again, since its rows are the same; BusyError if that goes on, CancelledError between tries.
    """
    feed, segment = staged.feed, open_segment()
    if closed.through >= segment:
        raise BusyError(
            f"segment {closed.through} of {feed.version} is not closed",
            f"the owner still appends to segment {segment}",
            "start the rebuild again; it closes the open segment itself",
        )
    metadata = {
        "kind": "rebuild",
        "epoch": epoch,
        "through_segment": closed.through,
        "job": run.id,
        "windows": windows.to_json(),
    }
    into = {SEGMENT: str(closed.through)}
    for left in reversed(range(REPLACE_TRIES)):
        whole, partly = files_within(feed, closed, windows)
        files = [*staged.files(number), *staged.beside(partly, windows)]
        added, removed = feed.appender.adopt(files, into), [*whole, *partly]
        try:
            return feed.appender.commit(added, feed.batch_writer, epoch, metadata, removed, same)
        except BusyError as error:
            if not left:
                raise BusyError(
                    f"{feed.version} was changed beside the rebuild",
                    error.why,
                    "start the rebuild again when nothing else rewrites the table; nothing was half done",
                ) from error
        run.check_cancelled()
    raise AssertionError("the last try returns or raises")


def files_within(
    feed: MaintainedVersion, closed: Closed, windows: Windows
) -> tuple[dict[str, int], dict[str, int]]:
    """The live files of closed segments that have rows of these windows only, and those that may have others
    too: paths, as Delta's log writes them, and bytes."""
    whole, partly = {}, {}
    for path, file in feed.appender.files().items():
        if segment_of(path) > closed.through:
            continue
        span = None if windows.is_all else _span(feed, file)
        if windows.is_all or (span and windows.has_all(*span)):
            whole[path] = file.bytes
        elif span is None or windows.has_any(*span):
            partly[path] = file.bytes
    return whole, partly


def _span(feed: MaintainedVersion, file: LiveFile) -> tuple[datetime, datetime] | None:
    """Between which starts of windows its rows are; None where that is not known of every row."""
    grid = feed.definition.cells
    least, greatest = (file.least(grid.column), file.greatest(grid.column)) if grid else (None, None)
    if grid is None or least is None or greatest is None or file.may_lack(grid.column):
        return None
    try:
        return parse_moment(least), parse_moment(greatest)
    except UsageError:  # Spark knows years before 1 and after 9999
        return None

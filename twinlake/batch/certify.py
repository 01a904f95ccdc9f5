"""Certify: verify or rebuild one living version of the open lake, and keep the certificate."""

from __future__ import annotations

from collections.abc import Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import structlog

from twinlake.base.errors import DifferenceError, UsageError
from twinlake.base.job import Failed, Run
from twinlake.base.times import format_moment, parse_moment
from twinlake.batch.due import WHOLE, Scope, due, gained, rewritten
from twinlake.batch.rebuild import Rebuilt, rebuild
from twinlake.batch.verify import verify
from twinlake.batch.witnessing import witnessed
from twinlake.batch.witnessing_topics import witness_topics
from twinlake.config.sections import WITNESS_OFF
from twinlake.kinds.kind import grid_of
from twinlake.kinds.windows import ALL, Windows, window_range
from twinlake.lake.catalog.certificates import Certificate, Work
from twinlake.lake.catalog.disputed import disputed
from twinlake.lake.catalog.failing_record import REMEDY
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened, feeds
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store
from twinlake.topics.verdict import records_in

LOCK_WAIT_S = 15 * 60.0
"""A rebuild waits so long for another one of the same version; then it ends "busy"."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Certified:
    """How a version stands after it was verified or rebuilt.

    `repaired` are the differences that a rebuild replaced; `certificate` was made after that.
    """

    certificate: Certificate
    due: bool = True
    """False where the job was to do what is due and nothing was: the certificate is the one of before."""
    replaced: bool = False
    chunks: int = 0
    chunks_done_before: int = 0
    repaired: list[dict[str, Any]] = field(default_factory=list)
    first_window: str | None = None
    """Where a range was asked for: the start of the table's first window, if it has any."""
    topics: list[str] = field(default_factory=list)
    """What a second decoder says of the ingest of each topic upstream, in words."""

    def to_json(self) -> dict[str, Any]:
        made = self.certificate
        said = {
            name: getattr(made, name)
            for name in ("table", "version", "equal", "position", "rows_compared", "differing", "differences")
        }
        answer = made.witness.answer if made.witness else None
        return {
            **asdict(self), **said, "covers": made.covers, "proof": made.proof, "clocks": made.clocks,
            "disputed": disputed(answer) if answer else [],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asked:
    """All of history; the windows that start in [start, end) (RFC 3339); or with `only_due` what the
    scheduled work has to do now (`batch/due.py`). With `repair` a difference is rebuilt away."""

    start: str | None = None
    end: str | None = None
    repair: bool = False
    only_due: bool = False

    def windows(self, opened: Opened) -> Windows:
        """UsageError for a range of a table without windows, or beside `only_due`."""
        found = window_range(self.start, self.end, grid_of(opened.definition), opened.version.table)
        if self.only_due and not found.is_all:
            why = "--due and --from or --to"
            raise UsageError("what is pending has its own range", why, "leave out one of them")
        return found


def verify_version(lake: OpenLake, version: Version, run: Run, asked: Asked) -> Certified | Failed:
    """Certify a version at a pinned position. Of a view kind there is nothing to be rebuilt.

    UsageError where that cannot be asked of it.
    """
    opened = lake.versions.opened(version)
    windows = asked.windows(opened)
    pin, scope = lake.versions.pin(version, run), Scope(windows=windows)
    if asked.only_due:
        found = _due("verify", lake, opened, pin)
        if found is None:
            return _not_due(lake, version)
        scope = found
    made = new_certificate(lake, version, run, pin, scope)
    if made.equal or not asked.repair or not isinstance(opened, MaintainedVersion):
        first, topics = _first_window(opened, windows), _topics(lake, made)
        return _ended(Certified(certificate=made, first_window=first, topics=topics), opened)
    return rebuild_version(lake, version, run, replace(asked, only_due=False))


def rebuild_version(lake: OpenLake, version: Version, run: Run, asked: Asked) -> Certified | Failed:
    """Replace the closed segments by the batch result; a repaired difference is verified once more.

    UsageError where that cannot be asked of it. A version of a view kind has nothing to replace: it is
    verified.
    """
    opened = lake.versions.opened(version)
    windows = asked.windows(opened)
    if not isinstance(opened, MaintainedVersion):
        return verify_version(lake, version, run, Asked(only_due=asked.only_due))
    begun = store.exists(lake.staging(run.id))  # what an attempt has repaired is not to be forgotten
    if asked.only_due and not begun and grid_of(opened.definition) is None:
        if _due("rebuild", lake, opened, lake.versions.pin(version, run)) is None:
            return _not_due(lake, version)
    rebuilt = _rebuild(lake, opened, None if asked.only_due else windows, asked.repair, run)
    found = Certified(
        certificate=rebuilt.certificate, replaced=rebuilt.replaced, chunks=rebuilt.chunks,
        chunks_done_before=rebuilt.skipped, first_window=_first_window(opened, windows),
    )  # fmt: skip
    if rebuilt.replaced and not rebuilt.certificate.equal:
        again = new_certificate(lake, version, run)
        found = Certified(**{
            **vars(found), "certificate": again, "repaired": rebuilt.certificate.differences,
        })  # fmt: skip
    return _ended(found, opened)


def new_certificate(
    lake: OpenLake, version: Version, run: Run, pin: Pin | None = None, scope: Scope = WHOLE
) -> Certificate:
    """Verify the version at the pin, or where it stands now; the certificate is kept, a difference is an
    incident. Another engine is asked too, where `_asks` says so.

    CancelledError, and no certificate, where the run is cancelled meanwhile.
    """
    run.progress(0, 1, "comparisons", f"comparing {version.table} with its log", span=1)
    opened, pin = lake.versions.opened(version), pin or lake.versions.pin(version, run)
    made = verify(opened, pin, run, format_moment(lake.clock()), scope)
    run.check_cancelled()
    if _asks(lake, made, pin):
        staging = lake.staging(run.id)
        witness = witnessed(
            opened, pin, run, staging, made.created_at, lambda: lake.versions.pin(version, run)
        )
        run.check_cancelled()
        if made.is_whole:
            witness_topics(lake, pin.position, run)
        made = replace(made, witness=witness, created_at=format_moment(lake.clock()))
    return _kept(lake, made)


def _asks(lake: OpenLake, made: Certificate, pin: Pin) -> bool:
    """Whether another engine is asked: it evaluates all of history, so with each comparison of all of it, and
    with others while the logs are small. What Spark cannot evaluate has no rows to compare."""
    proof = lake.settings.values.proof
    if proof.witness == WITNESS_OFF or made.raises or not made.covers_all:
        return False
    ends = (lake.logs[topic].metadata().get("counts", {}) for topic in pin.position)
    return made.is_whole or sum(map(records_in, ends)) <= proof.window_rows


def _topics(lake: OpenLake, made: Certificate) -> list[str]:
    if made.witness is None:
        return []
    found = (lake.certificates.topics.newest(topic) for topic in sorted(made.position))
    return [f"{one.topic}: {one.words}" for one in found if one is not None]


def difference_error(made: Certificate, whose: str, remedy: str) -> DifferenceError:
    """What a job that found a difference ends with."""
    if made.raises:
        return DifferenceError(f"{whose} cannot be read", made.why, REMEDY)
    return DifferenceError(f"{made.found} of {whose}", made.why, remedy)


def _first_window(opened: Opened, windows: Windows) -> str | None:
    """By the statistics of its files, which Delta writes for every window's start."""
    grid = grid_of(opened.definition)
    if windows.is_all or grid is None or not isinstance(opened, MaintainedVersion):
        return None
    starts = [least for file in opened.appender.files().values() if (least := file.least(grid.column))]
    return format_moment(min(map(parse_moment, starts))) if starts else None


def _due(work: Work, lake: OpenLake, opened: Opened, pin: Pin) -> Scope | None:
    """What is due of the version at the pin.

    A verify goes on from the last verify and covers what rebuilds have written since besides; a rebuild goes
    on from the last rebuild.
    """
    version, certificates = opened.version, lake.certificates
    newest = certificates.newest(version.table, version.name)
    last = certificates.base(version.table, version.name, work)

    def changed(since: Certificate) -> Windows:
        windows = gained(opened, since.position, pin.position)
        if isinstance(opened, MaintainedVersion) and (start := opened.log.start):  # after they were read
            if since.position[opened.topic] < start.batch:
                return ALL  # which windows the records since were in is not known any more
        return windows | rewritten(opened, since.delta_version, pin) if work == "verify" else windows

    return due(opened, newest, last, lake.clock(), changed)


def _not_due(lake: OpenLake, version: Version) -> Certified:
    newest = lake.certificates.newest(version.table, version.name)
    assert newest is not None  # otherwise all of history is due
    return Certified(certificate=newest, due=False)


def _rebuild(
    lake: OpenLake, feed: MaintainedVersion, windows: Windows | None, repair: bool, run: Run
) -> Rebuilt:
    """With the lock held from before the segment is closed until the last replace; None: what is due."""
    version, staging = feed.version, lake.staging(run.id)

    def due_at(closed: Closed) -> Scope:
        return _due("rebuild", lake, feed, closed.pin) or WHOLE

    with lake.versions.batch_lock(version, LOCK_WAIT_S, run):
        closed = lake.versions.close_segment(version, run)
        done = rebuild(
            feed,
            closed,
            lambda: lake.versions.open_segment(version),
            run,
            staging,
            format_moment(lake.clock()),
            windows or due_at,
            repair,
        )
    _kept(lake, done.certificate)
    with suppress(OSError):  # a clean-up deletes it
        store.delete_tree(staging)
    return done


def _kept(lake: OpenLake, made: Certificate) -> Certificate:
    """With the last answer of another engine, where none was asked now: it was logged then. One that failed
    said nothing of the version. Of a range without windows nothing is kept: it was compared with nothing."""
    if made.equal and not made.rows_compared and not made.covers_all:
        return made
    is_fresh = made.witness is not None
    if not is_fresh and lake.settings.values.proof.witness != WITNESS_OFF:
        before = lake.certificates.newest(made.table, made.version)
        found = before.witness if before else None
        made = replace(made, witness=None if found is None or found.answer.has_failed else found.short)
    lake.certificates.add(made)
    if is_fresh and made.witness and made.witness.answer.is_wrong:
        log.error(
            "another engine does not agree", job=made.job, table=made.table, version=made.version,
            **_short(made.witness),
        )  # fmt: skip
    if not made.equal:
        log.error(
            "the certificate is not equal", found=made.found, job=made.job, table=made.table,
            version=made.version, position=made.position, differing=made.differing,
            differences=made.differences,
        )  # fmt: skip
    return made


def _short(witness: Witnessed) -> dict[str, Any]:
    answer = witness.answer
    return {
        "found": answer.words, "at": witness.place, "differing": answer.differing,
        "differences": [asdict(one) for one in answer.differences],
    }  # fmt: skip


def _ended(found: Certified, opened: Opened) -> Certified | Failed:
    """A difference is an incident: the job fails, and keeps its whole result."""
    made = found.certificate
    if made.equal:
        return found
    remedy = "find the cause; `twinlake rebuild` with --repair replaces what is stored by what the log gives"
    if found.replaced:
        remedy = "find what changes the table beside the lake server; the difference came back after a repair"
    if not isinstance(opened, MaintainedVersion):
        remedy = _remedy_of_view(opened, {one["cause"] for one in made.differences})
    return Failed(error=difference_error(made, f"{made.table} {made.version}", remedy), result=found)


def _remedy_of_view(view: LogView, causes: Set[str]) -> str:
    """It stores nothing that could be replaced: what is wrong lies below it, or in its definition."""
    if "key_given_twice" in causes:
        return "name more of its columns as keys in its definition, then release that"
    if "depends_on_others" in causes:
        return "name fewer columns in `by` of its definition, or none: changelogs and explanations follow it"
    if "counted_more_than_once" in causes:
        return "find what writes the log beside the lake server: nothing else brings a record there twice"
    below = ", ".join(sorted({feed.version.table for feed in feeds(view)}))
    decided = "let every order in its SQL end in a key: what decides otherwise is chance"
    return f"verify and rebuild (--repair) what it reads: {below}; or {decided}" if below else decided

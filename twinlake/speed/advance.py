"""Advance: the speed layer's one step. Computes the partial of new log batches and appends it, exactly once.

Only the version's owner may call what is here; nothing in it starts a thread.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import LostVersionError
from twinlake.base.location import Location
from twinlake.kinds.evidence import SEGMENT
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import arranged
from twinlake.lake.delta import delta
from twinlake.lake.invariants import LogState, VersionState, never_ahead_of_log, same_history
from twinlake.lake.log.fresh_rows import FreshFiles, FreshRows, NewRows
from twinlake.lake.log.log import Log
from twinlake.lake.self_check import refuse_broken_version
from twinlake.spark.prepared_plan import TooLargeError, computed
from twinlake.topics.verdict import rows_in

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SMALL_RECORDS = 100_000
"""Up to so many records of the log are computed by one core and written as one file, as are those that are at
hand; more are spread over the cores."""
LONG_RECORDS = 5_000_000
"""One step of a long catch-up takes about this many records."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a version stands: the last committed step, the open segment, and the position, a batch number.

    `records` counts the log's records up to the position, so that a lag is a subtraction. `watermark`, and
    how far the log's own `clocks` have come, are in microseconds, and may be earlier ones where the commit
    that says so is cleaned up. `history` says which records of Kafka those are ("" where that is not
    known): a log that was restored and has read on may count as many, and have others.
    """

    step: int = 0
    segment: int = 0
    position: int = 0
    watermark: int | None = None
    clocks: dict[str, int | None] = field(default_factory=dict)
    records: int = 0
    steps_open: int = 0
    history: str = field(default="", compare=False)

    def state(self, name: str) -> VersionState:
        """What the invariants go by."""
        return VersionState(
            name=name, position=self.position, step=self.step, segment=self.segment,
            steps_open=self.steps_open, records=self.records, history=self.history,
        )  # fmt: skip


def standing(feed: MaintainedVersion) -> Standing:
    """Read from Delta where the version stands; LostVersionError for a version ahead of its log, or
    of one that has other batches of these numbers by now.

    The step comes from the snapshot's transactions (the last commit may be a rebuild's), the position
    from the commit of exactly that step.
    """
    step = feed.appender.transaction(feed.table_id)
    if step == 0:
        return Standing()
    found = delta.newest_metadata(feed.path, where=lambda metadata: metadata.get("step") == step)
    if found is None:
        raise LostVersionError(
            "no_position",
            f"the position of {feed.version} cannot be found",
            f"no commit in {feed.path}/_delta_log tells the position of step {step}",
        )
    at = _read(found, feed.topic)
    name, topic, end = str(feed.version), feed.topic, feed.log.end()
    if never_ahead_of_log(at.state(name), LogState(topic=topic, batch=end)):
        raise LostVersionError(
            "ahead_of_log",
            f"{feed.version} is at batch {at.position}, ahead of its log ({end})",
            f"the log {feed.log.path} was restored to an earlier state than the table",
        )
    metadata = feed.log.metadata(at.position)
    now, history = rows_in(metadata.get("counts", {})), history_of(metadata)
    log = LogState(
        topic=topic, batch=at.position, counts={"": now} if metadata.get("counts") else {}, history=history
    )
    if same_history(at.state(name), log):
        others = "other records" if now == at.records else f"{now:,} records"
        raise LostVersionError(
            "other_history",
            f"batch {at.position} of the log is not the one that {feed.version} has taken",
            f"up to it the log has {others} now, and had {at.records:,}: "
            f"{feed.log.path} was restored to an earlier state, and has read on since",
        )
    return at


def last_standing(path: Location, topic: str) -> Standing:
    """Where a version stands by the newest commit that says so, to be shown of one that cannot be opened."""
    if not delta.exists(path):
        return Standing()
    found = delta.newest_metadata(path, where=lambda metadata: metadata.get("kind") in ("step", "close"))
    return _read(found, topic) if found else Standing()


def advance(feed: MaintainedVersion, at: Standing, to: int, rows: NewRows | None = None) -> Standing:
    """One step: the partial of the batches in (at.position, to], from `rows` where the caller has them.

    Returns where the version stands then. SilentSkipError when Delta knew the step already.
    """
    if to <= at.position:
        return at
    metadata = feed.log.metadata(to)
    # the newest commits tell it for nothing; in a catch-up they may be cleaned up
    records = rows_in(metadata["counts"]) if metadata.get("counts") else feed.log.records(to)
    new = replace(
        at,
        step=at.step + 1,
        position=to,
        watermark=metadata.get("watermark") if metadata else at.watermark,
        clocks=metadata.get("clocks", {}) if metadata else at.clocks,
        records=records,
        steps_open=at.steps_open + 1,
        history=history_of(metadata),
    )
    refuse_broken_version(at.state(str(feed.version)), new.state(str(feed.version)))
    metadata = _metadata(feed, "step", new)
    states = None
    if isinstance(rows, FreshRows) or records - at.records <= SMALL_RECORDS:
        states = _in_memory(feed, at.position, to, rows)
    if states is None:
        partial = arranged(feed, _partial(feed, at.position, to, rows), at.segment)
        breakpoints.at(Point.BEFORE_PARTIAL, feed.version.table)
        delta.append(partial, feed.path, feed.table_id, new.step, metadata)
        return new
    breakpoints.at(Point.BEFORE_PARTIAL, feed.version.table)
    added = feed.appender.write(states, {SEGMENT: str(at.segment)})
    breakpoints.at(Point.BEFORE_STEP_COMMIT, feed.version.table)
    feed.appender.commit(added, feed.table_id, new.step, metadata)
    return new


def history_of(metadata: Mapping[str, Any]) -> str:
    """The offsets up to which a log's commit has read each partition of each epoch, and its counts; short."""
    if "ends" not in metadata:
        return ""
    meaning = json.dumps([metadata["ends"], metadata.get("counts")], sort_keys=True)
    return hashlib.sha256(meaning.encode()).hexdigest()[:16]


def _in_memory(feed: MaintainedVersion, after: int, to: int, rows: NewRows | None) -> pa.Table | None:
    """The partial of these rows, None where there are too many bytes of it."""
    try:
        if isinstance(rows, FreshRows):
            return feed.partial_of(rows)
        return computed(feed.sorted(_partial(feed, after, to, rows, by_one_core=True)))
    except TooLargeError:
        return None


def _partial(
    feed: MaintainedVersion, after: int, to: int, rows: NewRows | None, by_one_core: bool = False
) -> DataFrame:
    """The states of these batches' records, read from storage by the schema that the version was made with;
    where the log starts later, of a version that begins, with what is kept of those before."""
    at, start = feed.log.started()
    if start is not None and after < start.batch:
        if after == 0:
            return feed.computed(to)
        raise LostVersionError(
            "log_started_later",
            f"{feed.version} is at batch {after}, and the log of {feed.topic} starts after {start.batch}",
            "retention has deleted the records in between",
        )
    read = feed.log.rows_of(rows.files) if isinstance(rows, FreshFiles) else feed.log.rows(after, to, at)
    return feed.definition.partial(read.coalesce(1) if by_one_core else read)


def close(feed: MaintainedVersion, at: Standing) -> Standing:
    """Close the open segment by an empty append that takes the next step number.

    Only after this commit may anyone treat the segment as closed.
    """
    new = replace(at, step=at.step + 1, steps_open=0)
    closed = replace(new, segment=at.segment + 1)
    refuse_broken_version(at.state(str(feed.version)), closed.state(str(feed.version)))
    feed.appender.commit([], feed.table_id, new.step, _metadata(feed, "close", new))
    return closed


def _metadata(feed: MaintainedVersion, kind: str, at: Standing) -> dict[str, Any]:
    """The metadata of a step or a close: all that a later start needs to go on."""
    return {"kind": kind, **asdict(at), "position": {feed.topic: at.position}}


def _read(metadata: Mapping[str, Any], topic: str) -> Standing:
    """The inverse of `_metadata`."""
    closed = metadata["kind"] == "close"
    return Standing(
        step=metadata["step"],
        segment=metadata["segment"] + 1 if closed else metadata["segment"],
        position=metadata["position"][topic],
        watermark=metadata["watermark"],
        clocks=metadata.get("clocks", {}),
        records=metadata["records"],
        history=metadata.get("history", ""),
        steps_open=0 if closed else metadata["steps_open"],
    )


def cuts(log: Log, after: int, to: int, limit: int = LONG_RECORDS) -> list[int]:
    """Batch numbers at which to cut (after, to]: each part has at most `limit` records, or is one batch; what
    the log has lost to retention is no part of its own."""
    after = max(after, log.start.batch if log.start else 0)
    sizes = log.all(after, to).groupBy("batch").count().collect()
    found: list[int] = []
    held = 0
    for batch, size in sorted((row["batch"], row["count"]) for row in sizes):
        if held and held + size > limit:
            found.append(batch - 1)
            held = 0
        held += size
    return [*found, to]

"""Retention: deletes a log's records that are older than its contract says, and changes no row by it; and of
tables with a retention of their own, what they show no more (`batch/ended.py`).

What living versions have counted of them is computed once more, from the log, and kept beside it; one commit
deletes the records and says so (`lake/log/log_start.py`). What is in quarantine, and what views list as late,
stays. A table that reads the records themselves needs them: then nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow.parquet as pq

from twinlake.base import breakpoints, quote
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.base.times import EPOCH, format_duration, format_moment, from_micros
from twinlake.base.waiting import holding
from twinlake.batch.ended import Ended, expire_table, with_retention
from twinlake.batch.merge import files_for
from twinlake.kinds.clock import LOG_APPEND_TIME
from twinlake.kinds.grid import micros
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta.table_state import LiveFile
from twinlake.lake.log import log_start
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_clock import fold_at, moment_sql
from twinlake.lake.log.log_start import KeptStates, LogStart
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store
from twinlake.topics.verdict import EXPIRED, IGNORED, VALID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOCK_WAIT_S = 900.0
"""So long it waits for a replay of the topic, and for the log's files to be merged."""


@dataclass(frozen=True, kw_only=True)
class Expired:
    """What of one topic's log is older than its contract keeps it, and what became of that.

    `batch` is the last one that goes, 0 where none does; `until` the latest Kafka time of a record in it.
    `records` and `bytes` are deleted, or would be; of files that hold younger records, too, `bytes` counts
    nothing. `kept` are the versions whose states of those records stay; `needed_by` the tables because of
    which nothing is deleted, with the reason.
    """

    topic: str
    retention: str
    batch: int = 0
    until: str | None = None
    records: int = 0
    bytes: int = 0
    kept: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Expiry:
    topics: tuple[Expired, ...]
    tables: tuple[Ended, ...] = ()

    def to_json(self) -> dict[str, Any]:
        topics = [
            {**asdict(one), "kept": list(one.kept), "needed_by": list(one.needed_by)} for one in self.topics
        ]
        return {"topics": topics, "tables": [asdict(one) for one in self.tables]}


def expire(
    lake: OpenLake, topic: str | None, run: Run, only_check: bool = False, table: str | None = None
) -> Expiry:
    """Of the topic or table; of all that have a retention where neither is named.

    With `only_check` nothing is deleted. NotFoundError for a name that is not there. An error of one is
    raised once the others are done. Killed anywhere, it is as it was, or done.
    """
    active, tables = lake.topics.active(), {one.table for one in lake.versions.living()}
    _refuse_unknown("topic", topic, active)
    _refuse_unknown("table", table, tables)
    # tables first: what they show no more need not be kept beside a log
    asked = [("table", name) for name in with_retention(lake) if topic is None and table in (None, name)]
    asked += [
        ("topic", name) for name in sorted(active)
        if table is None and topic in (None, name) and active[name].contract.retention
    ]  # fmt: skip
    ended, found, failed = list[Ended](), list[Expired](), list[TwinlakeError]()
    for number, (what, name) in enumerate(asked):
        run.check_cancelled()
        run.progress(number, len(asked), "topics and tables", f"looking at {what} {name}", span=1)
        try:
            if what == "table":
                ended += expire_table(lake, name, run, only_check)
            else:
                found.append(_expire(lake, name, run, only_check))
        except TwinlakeError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return Expiry(topics=tuple(found), tables=tuple(ended))


def _refuse_unknown(what: str, name: str | None, known: Collection[str]) -> None:
    if name is not None and name not in known:
        why = f"known: {', '.join(sorted(known)) or 'none'}"
        raise NotFoundError(f"there is no {what} {name!r}", why, "check the name")


def _expire(lake: OpenLake, name: str, run: Run, only_check: bool) -> Expired:
    found = expired(lake, lake.logs[name])
    if not found.batch or found.needed_by or only_check:
        return found
    with ExitStack() as held:
        ingest, log = lake.ingests[name], lake.logs[name]
        held.enter_context(holding(ingest.replaying, "a replay of the topic to end", LOCK_WAIT_S, run))
        held.enter_context(holding(log.lock, "the log's files to be merged", LOCK_WAIT_S, run))
        _refuse_reloaded(lake, log)
        found = expired(lake, log)  # as it is now that nothing rewrites the log
        if not found.batch or found.needed_by:
            return found
        run.progress(0, 1, "logs", f"keeping what tables have counted of {name}", span=1)
        return _delete(lake, log, found, run)


def _refuse_reloaded(lake: OpenLake, log: Log) -> None:
    """BusyError where the topic has other files by now: another retention, perhaps."""
    if lake.logs.get(log.topic.name) is not log:
        raise BusyError(
            f"topic {log.topic.name} was reloaded meanwhile", "its contract may say another retention now",
            "nothing was deleted; ask again",
        )  # fmt: skip


def expired(lake: OpenLake, log: Log) -> Expired:
    """What is older than the contract keeps it, and who needs it; nothing is changed."""
    retention = log.topic.contract.retention
    assert retention is not None
    words, start = format_duration(retention), log.start
    came = _came(lake.clock())
    batch = last_expired(log, _before(lake, log, retention), came)
    if batch <= (start.batch if start else 0):
        return Expired(topic=log.topic.name, retention=words)
    gone = log.all(0, batch).where(f"verdict = '{VALID}'")
    (found,) = gone.selectExpr("count(*) AS records", f"unix_micros(max({came})) AS until").collect()
    if not found["records"]:
        return Expired(topic=log.topic.name, retention=words)
    whole = (file for file in log.appender.files().values() if (file.greatest("batch") or batch + 1) <= batch)
    return Expired(
        topic=log.topic.name, retention=words, batch=batch, until=format_moment(from_micros(found["until"])),
        records=found["records"], bytes=sum(file.bytes for file in whole),
        kept=tuple(str(feed.version) for feed in _feeds(lake, log)),
        needed_by=tuple(_needed_by(lake, log, batch)),
    )  # fmt: skip


def _before(lake: OpenLake, log: Log, retention: timedelta) -> datetime:
    """What came before goes. Ids that ingest may still be asked for stay, however far behind it is: those
    within `uniqueWithin` of where Kafka's clock stands in the log. TwinlakeError while a clock is known to be
    wrong by which more would go."""
    if error := lake.aging_error():
        raise TwinlakeError(
            f"nothing of topic {log.topic.name} was deleted, for nobody knows how old its records are",
            f"{error.what}: {error.why}", error.remedy,
        )  # fmt: skip
    before, within = lake.clock() - retention, log.topic.contract.unique_within
    appended = log.metadata().get("clocks", {}).get(LOG_APPEND_TIME)
    if within is None or appended is None:
        return before
    return min(before, from_micros(appended) - within)


def _came(now: datetime) -> str:
    """When a record came, as SQL: its time in Kafka, or where that is to come when it was ingested; NULL
    where nobody knows. Else one record whose producer's clock was wrong would keep all that came later."""
    return f"if(timestamp > {moment_sql(micros(now - EPOCH))}, ingested_at, timestamp)"


def last_expired(log: Log, before: datetime, came: str) -> int:
    """The last batch up to which every record came before that moment; copies that replays have appended are
    as old as their originals, and do not count."""
    end, moment = log.end(), moment_sql(micros(before - EPOCH))
    young = log.all(0, end).where(
        f"timestamp >= {moment} AND coalesce({came} >= {moment}, true) AND NOT coalesce(replay, false)"
    )
    (found,) = young.selectExpr("min(batch) AS first").collect()
    return end if found["first"] is None else int(found["first"]) - 1


def _feeds(lake: OpenLake, log: Log) -> Iterator[MaintainedVersion]:
    """The living versions that have counted the topic's records; one that cannot be opened is left out."""
    for version in lake.versions.living():
        if log.topic.name in version.topics:
            with suppress(TwinlakeError):
                opened = lake.versions.opened(version)
                if isinstance(opened, MaintainedVersion) and opened.topic == log.topic.name:
                    yield opened


def _needed_by(lake: OpenLake, log: Log, batch: int) -> Iterator[str]:
    """Why nothing may be deleted, of each version because of which that is so."""
    name = log.topic.name
    for version in lake.versions.living():
        if name not in version.topics:
            continue
        try:
            opened = lake.versions.opened(version)
        except TwinlakeError as error:
            yield f"{version}: it stands still ({error.what})"
            continue
        if isinstance(opened, LogView) and name in opened.definition.inputs:
            yield f"{version}: its rows are records of the topic"
        elif isinstance(opened, MaintainedVersion) and opened.topic == name:
            if (at := lake.versions.position(version)[name]) < batch:
                yield f"{version}: it has counted the topic up to batch {at} only"
            made = lake.certificates.newest(version.table, version.name)
            if made is not None and not made.equal:
                yield f"{version}: speed and batch differ, and its records tell why"


def _delete(lake: OpenLake, log: Log, found: Expired, run: Run) -> Expired:
    """Writes what stays, then deletes by one commit. The caller holds all that rewrites the log.

    Versions go on meanwhile: what is kept is of one batch, and the same whoever asks for it.
    """
    before, number = log.start, log.appender.transaction(log_start.app_id(log.appender.table_id)) + 1
    folder = log_start.folder(log.path, number)
    if store.exists(folder):  # of one that was killed before its commit
        store.delete_tree(folder)
    made_at, kept = format_moment(lake.clock()), list[KeptStates]()
    for feed in _feeds(lake, log):
        run.check_cancelled()
        kept.append(_keep(feed, found.batch, folder))
    run.check_cancelled()
    removed = [path for path, file in log.appender.files().items() if _may_hold(file, found.batch)]
    rows, until = _written(log, removed, found.batch, _came(lake.clock()))
    staying = _staying(log, removed, found.batch, lake.staging(run.id) / "staying")
    added = log.appender.adopt(staying)
    left = sum(LiveFile(bytes=one["size"], stats=one["stats"]).records or 0 for one in added)
    start = LogStart(
        number=number, batch=found.batch, until=max(until, before.until if before else until),
        rows=rows - left + (before.rows if before else 0), made_at=made_at,
        clock=fold_at(log, found.batch), kept=tuple(kept),
    )  # fmt: skip
    start.save(log.path)
    _refuse_unkept(lake, log, start)
    _refuse_reloaded(lake, log)
    breakpoints.at(Point.BEFORE_RETENTION, log.topic.name)
    metadata = {"kind": "retention", "through": found.batch, "number": number, "job": run.id}
    app = log_start.app_id(log.appender.table_id)
    log.appender.commit(added, app, number, metadata, removed, same=False)
    breakpoints.at(Point.AFTER_RETENTION, log.topic.name)
    log.started()
    _drop_older(log, number)
    return replace(found, deleted=True, records=rows - left)


def _refuse_unkept(lake: OpenLake, log: Log, start: LogStart) -> None:
    """BusyError where a version lives by now of which nothing is kept: it was built, or opened, meanwhile."""
    kept = {(one.table, one.version) for one in start.kept}
    for version in lake.versions.living():
        if log.topic.name not in version.topics or (version.table, version.name) in kept:
            continue
        opened = lake.versions.opened(version)
        if isinstance(opened, MaintainedVersion) or log.topic.name in opened.definition.inputs:
            raise BusyError(
                f"{version} was built, or opened again, meanwhile",
                f"nothing is kept for it of the records of topic {log.topic.name}",
                "nothing was deleted; ask again",
            )  # fmt: skip


def _keep(feed: MaintainedVersion, batch: int, folder: Location) -> KeptStates:
    """The version's states at the batch, as the log gives them, below the folder."""
    version = feed.version
    place = f"{version.table}/{version.name}"
    at, topic = feed.log.metadata(batch), feed.topic
    pin = Pin(
        version=version, position={topic: batch}, watermarks={topic: at.get("watermark")},
        clocks={topic: at.get("clocks", {})},
    )  # fmt: skip
    states = feed.sorted(feed.computed(batch, feed.shown(pin)))
    states.write.parquet(str(folder / version.table / version.name))
    names = sorted(store.names(folder / version.table / version.name))
    return KeptStates(
        table=version.table, version=version.name, fingerprint=version.fingerprint,
        files=tuple(f"{place}/{name}" for name in names if name.endswith(".parquet")),
    )  # fmt: skip


def _may_hold(file: LiveFile, batch: int) -> bool:
    first = file.least("batch")
    return first is None or first <= batch


def _written(log: Log, files: Iterable[str], batch: int, came: str) -> tuple[int, int]:
    """How many rows these files have, and when the last of the valid ones came that go."""
    goes = f"batch <= {batch} AND verdict = '{VALID}'"
    (found,) = _rows(log, files).selectExpr(
        "count(*) AS rows", f"unix_micros(max(if({goes}, {came}, NULL))) AS until"
    ).collect()  # fmt: skip
    return found["rows"], found["until"]


def _staying(log: Log, files: Sequence[str], batch: int, folder: Location) -> list[Location]:
    """What stays of these files, written again: younger batches, what is in quarantine, and, no longer as
    valid, what came late."""
    listed, read = f"retention_{uuid4().hex}", _rows(log, files)
    read.createOrReplaceTempView(listed)
    names = ", ".join(map(quote.name, read.columns))
    past = ", ".join(
        f"'{EXPIRED}' AS verdict" if name == "verdict" else f"l.{quote.name(name)}" for name in read.columns
    )
    same = "l.epoch = r.epoch AND l.partition = r.partition AND l.offset = r.offset AND l.batch < r.batch"
    # an original whose copy stays is what that copy is shown beside
    copies = f"(SELECT epoch, partition, offset, batch FROM {listed} WHERE replay AND batch <= {batch})"
    latest = f"FROM {listed} l LEFT ANTI JOIN {copies} r ON {same} WHERE l.batch <= {batch}"
    of_l = ", ".join(f"l.{quote.name(name)}" for name in read.columns)
    try:
        found = log.spark.sql(
            f"SELECT {names} FROM {listed} WHERE batch > {batch} UNION ALL "
            f"SELECT {of_l} {latest} AND l.verdict NOT IN ('{VALID}', '{IGNORED}') UNION ALL "
            f"SELECT {past} {latest} AND l.verdict = '{VALID}' AND l.late"
        )
        size = sum(log.appender.files()[name].bytes for name in files)
        found = found.repartitionByRange(files_for(size), "batch")
        found = found.sortWithinPartitions("batch", "epoch", "partition", "offset")
        found.write.mode("overwrite").parquet(str(folder))
    finally:
        log.spark.catalog.dropTempView(listed)
    written = [folder / name for name in sorted(store.names(folder)) if name.endswith(".parquet")]
    return [file for file in written if pq.read_metadata(store.reader(file)).num_rows]


def _rows(log: Log, files: Iterable[str]) -> DataFrame:
    """Every column of all rows of these data files of the log (paths as Delta writes them)."""
    read = log.spark.read.schema(log.appender.schema())
    return read.parquet(*(str(log.path / unquote(name)) for name in files))


def _drop_older(log: Log, number: int) -> None:
    """The states kept before, but not those of the last time: whoever has begun to read them goes on."""
    for name in store.names(log.path / log_start.FOLDER):
        if name.isdigit() and int(name) < number - 1:
            with suppress(OSError):  # it is tried again the next time
                store.delete_tree(log_start.folder(log.path, int(name)))

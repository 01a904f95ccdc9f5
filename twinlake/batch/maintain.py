"""Maintain: keep the cost of a step the same after a day as in the first minute.

Files that were replaced are deleted after a safe time, commit files behind an old checkpoint too, and what
dead jobs left in staging; the log's small files become large ones; old jobs, certificates and plans go.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import DamagedError
from twinlake.base.job import Job, Run
from twinlake.base.location import Location
from twinlake.base.times import parse_moment
from twinlake.base.waiting import holding
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.delta import delta
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.delta.kept_commits import KEEP_COMMITS_S
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.delta.table_state import whole_checkpoints
from twinlake.lake.log.log import Log
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEP_FILES_HOURS = 6
"""Above the longest query of a reader. Rollback needs no old files: what one can go back to stays fed."""
SMALL_FILES = 64
"""The log is compacted when it has so many files that are worth merging."""
SMALL_BYTES = 32 << 20

SLACK_S = 600.0
"""A clean-up takes time before it deletes: what a job pinned in its first moment must be kept until then."""
OTHER_WAIT_S = 3600.0
"""A clean-up waits so long for another one, which may have a month's files to delete."""

journal = structlog.get_logger(__name__)
_one_at_a_time = threading.Lock()
_UNPUBLISHED = re.compile(r"\..+\.tmp")
"""What a writer of a commit, checksum or checkpoint file has left that was killed."""
_OF_VERSION = re.compile(r"\.?(\d{20})\.(json|crc|checkpoint\.parquet)(\.crc|\.sha256)?|"
                         r"\.?(\d{20})\.(\d{20})\.compacted\.json(\.crc)?")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Maintained:
    commit_files_deleted: int
    logs_compacted: tuple[str, ...]
    versions_deleted: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "commit_files_deleted": self.commit_files_deleted, "logs_compacted": list(self.logs_compacted),
            "versions_deleted": list(self.versions_deleted),
        }  # fmt: skip


def drop_old_commits(path: Location, now_s: float, keep_s: float = KEEP_COMMITS_S) -> int:
    """Delete the commit files that `old_commits` names; how many."""
    gone = old_commits(path, now_s, keep_s)
    for name in gone:
        store.delete(path / delta.LOG_FOLDER / name)
    return len(gone)


def old_commits(path: Location, now_s: float, keep_s: float = KEEP_COMMITS_S) -> list[str]:
    """The commit files before the newest checkpoint that is older than `keep_s`, in the order in which they
    may go.

    Delta does the same by itself, but by whole days (86,400 files at a step each second), and it knows
    nothing of the metadata that a quiet table has in its last commits; so versions have Delta's own clean-up
    switched off.
    """
    log = path / delta.LOG_FOLDER
    whole = whole_checkpoints(log)
    old = next((one.version for one in whole if now_s - store.stat(one.file).modified_s > keep_s), None)
    newest = delta.newest_commit(path, lambda metadata: "position" in metadata or "batch" in metadata)
    if old is None or newest is None:
        return []
    first_kept = min(old, newest.version)  # the newest metadata is where the next start begins
    gone = []
    for name in sorted(store.names(log)):
        named = _OF_VERSION.fullmatch(name)
        unpublished = _UNPUBLISHED.fullmatch(name) and now_s - store.stat(log / name).modified_s > keep_s
        if unpublished or (named and int(named[1] or named[5]) < first_kept):
            gone.append(name)
    return gone


def vacuum(spark: SparkSession, path: Location, keep_hours: int) -> None:
    """Delete the data files that no version younger than `keep_hours` uses; Delta rounds, so no fractions."""
    clean_up_session(spark).sql(f"VACUUM {relation_sql(path)} RETAIN {keep_hours} HOURS")


def compact_log(log: Log) -> bool:
    """Merge the log's small files (OPTIMIZE; the order of batches is kept). Appends are not in its way."""
    if sum(file.bytes < SMALL_BYTES for file in log.appender.files().values()) < SMALL_FILES:
        return False
    with log.lock:
        clean_up_session(log.spark).sql(f"OPTIMIZE {relation_sql(log.path)}")
    return True


def _compacted(lake: OpenLake, log: Log) -> bool:
    try:
        return compact_log(log)
    except Exception as error:
        if damage_in(error, lake.path):
            raise
        journal.exception("the log was not compacted; the rest of the clean-up goes on", topic=log.topic.name)
        return False


def clean_up_session(spark: SparkSession) -> SparkSession:
    """A session with the settings of clean-up, so that nobody else's are touched."""
    session = spark.newSession()
    for key, value in {
        "spark.databricks.delta.optimize.minFileSize": str(SMALL_BYTES),
        "spark.databricks.delta.optimize.maxFileSize": str(4 * SMALL_BYTES),
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.vacuum.logging.enabled": "false",
        # otherwise RETAIN is ignored, and the table's own property decides, which is the longest that can be
        "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
        # VACUUM lists folders in so many tasks: 10,000 by default, 86 s for three files where 4 take 8 s
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    }.items():
        session.conf.set(key, value)
    return session


def drop_staging(staging: Location, alive: Callable[[], Collection[str]]) -> list[str]:
    """Delete what jobs left in staging, but not of those that are alive or may be continued.

    Asked of each folder that is there, right before it goes: a job may begin, or be asked for again, while
    the folders of others are deleted.
    """
    gone = []
    for job in store.names(staging):
        if job not in alive():
            with suppress(OSError):  # it is tried again
                store.delete_tree(staging / job)
            gone.append(job)
    return gone


def maintain(lake: OpenLake, table: str | None = None, run: Run | None = None) -> Maintained:
    """One clean-up at a time, of everything or of one table; a stalled version is left as it is.

    It conflicts with no append and no rebuild, so it needs no lock. What a running job has pinned stays
    readable, however long it takes. A table with a damaged file is left as it is, and its DamagedError is
    raised once the others are cleaned up.
    """
    stalled = {(health.table, health.version) for health in lake.versions.health() if health.stalled}
    feeds = [
        opened
        for version in lake.versions.living()
        if table in (None, version.table) and (version.table, version.name) not in stalled
        if isinstance(opened := lake.versions.opened(version), MaintainedVersion)
    ]
    logs = list(lake.logs.values()) if table is None else []
    with holding(_one_at_a_time, "another clean-up to end", OTHER_WAIT_S, run):
        compacted, deleted, damages = list[str](), 0, list[DamagedError]()
        for log in logs:
            with _noting(lake, damages):
                if _compacted(lake, log):
                    compacted.append(log.topic.name)
        for path in [*(feed.path for feed in feeds), *(log.path for log in logs)]:
            with _noting(lake, damages):
                deleted += clean_table(lake, path)
        gone = tuple(str(version) for version in drop_retired(lake, table))
        if table is None:
            lake.plans.drop({release.plan for release in release_log.releases(lake.path) if release.plan})
            lake.runs.compact()
            lake.certificates.compact()
            lake.certificates.topics.compact()
    if damages:
        raise damages[0]
    return Maintained(commit_files_deleted=deleted, logs_compacted=tuple(compacted), versions_deleted=gone)


def clean_table(lake: OpenLake, path: Location) -> int:
    """Delete what nobody needs any more of one Delta table; how many commit files that were."""
    now_s = lake.clock().timestamp()
    keep_s = max(KEEP_COMMITS_S, pinned_s(lake.runs.all(), now_s))
    if keep_s <= KEEP_FILES_HOURS * 3600:  # Delta knows only for so long what was replaced, and when
        vacuum(lake.spark, path, KEEP_FILES_HOURS)
    else:
        journal.info("no files are deleted: a running job may have pinned them", table=str(path))
    return drop_old_commits(path, now_s, keep_s)


@contextmanager
def _noting(lake: OpenLake, damages: list[DamagedError]) -> Iterator[None]:
    """What is damaged is left as it is; nothing else waits for it."""
    try:
        yield
    except Exception as error:
        damage = damage_in(error, lake.path)
        if damage is None:
            raise
        lake.damages.note(damage)
        damages.append(damage)


def drop_retired(lake: OpenLake, table: str | None = None) -> list[Version]:
    """Delete the rows of versions (of the table) that were retired so long ago that nobody reads them; which.

    Their JSON stays: a release that used them can still be explained, and no build number is used twice.
    """
    now_s, gone = lake.clock().timestamp(), []
    keep_s = max(KEEP_FILES_HOURS * 3600, pinned_s(lake.runs.all(), now_s))
    for version in stored_versions(lake.path):
        rows = version.path(lake.path)
        if version.retired_at is None or not store.exists(rows) or table not in (None, version.table):
            continue
        if now_s - parse_moment(version.retired_at).timestamp() > keep_s:
            store.delete_tree(rows)
            gone.append(version)
    return gone


def pinned_s(jobs: Iterable[Job], now_s: float) -> float:
    """For how many seconds those that run may have pinned something: since the first of them began."""
    began = (job.started_at for job in jobs if job.state == "running")
    return max((now_s - parse_moment(text).timestamp() + SLACK_S for text in began if text), default=0.0)

"""The edge to Delta: commits with a transaction id and metadata, and reading the newest ones back cheaply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from twinlake.base import quote
from twinlake.base.errors import DamagedError, SilentSkipError, UsageError
from twinlake.base.location import Location, Stat
from twinlake.lake.delta import checkpoint_files
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LOG_FOLDER = "_delta_log"
ENGINE = "Twinlake"
"""Who has made a commit of our own, as it says."""
LINKED, RENAMED = "twinlake.lake.LinkedCommits", "io.delta.storage.HDFSLogStore"
_known: dict[Location, int] = {}
"""The newest version that was seen of each table: a hint where to look for the next one."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit of a Delta table as its `_delta_log` file tells it."""

    version: int
    metadata: dict[str, Any] = field(default_factory=dict)  # our userMetadata; {} where there is none
    transactions: dict[str, int] = field(default_factory=dict)  # appId -> txnVersion
    added: tuple[str, ...] = ()  # paths below the table
    changes_data: bool = False  # whether it says that readers may see other rows


def exists(path: Location) -> bool:
    """Whether a Delta table is at `path`."""
    return newest_version(path) >= 0


def newest_version(path: Location) -> int:
    """The newest version at `path`, -1 where there is no table. No Spark.

    The folder, which may have tens of thousands of names, is listed once; then the next name is looked for.
    """
    folder = path / LOG_FOLDER
    at = _known.get(path, -1)
    if at < 0 or not store.exists(commit_file(folder, at)):
        at = max(commits(folder), default=-1)
    while at >= 0 and store.exists(commit_file(folder, at + 1)):
        at += 1
    _known[path] = at
    return at


def commits(folder: Location) -> list[int]:
    """The versions whose commits are in a `_delta_log` folder, in no order."""
    numbers = (name.removesuffix(".json") for name in store.names(folder) if name.endswith(".json"))
    return [int(number) for number in numbers if number.isdigit()]


def commit_file(folder: Location, version: int) -> Location:
    """Where the commit of that version is in a `_delta_log` folder."""
    return folder / f"{version:020d}.json"


def actions(folder: Location, version: int) -> list[dict[str, Any]] | None:
    """The actions of a commit in a `_delta_log` folder, None where it is not there; DamagedError for one
    that is not whole."""
    try:
        return _actions(commit_file(folder, version))
    except FileNotFoundError:
        return None


def _actions(file: Location) -> list[dict[str, Any]]:
    content = store.read(file)
    try:  # texts may hold other ends of lines
        found = [json.loads(line) for line in content.decode().split("\n") if line]
        return _whole(found)
    except ValueError as error:
        raise damaged(file, f"{len(content)} bytes: {error}", "a whole commit, one action a line") from error


def refuse_torn(path: Location, version: int | None = None) -> None:
    """DamagedError where a commit is not whole, or gone, that tells what the table has at that version, the
    newest unless one is given. Spark and deltalake pass over an empty one and show the table without it.

    They read those after the newest checkpoint; so each is read here once, and again when it has changed.
    """
    folder, last = path / LOG_FOLDER, newest_version(path) if version is None else version
    missing, begin = -1, -1
    for begin in _checkpoints(folder, last):
        found = _first_missing(folder, begin, last)
        if found is None:
            return
        missing = found
    if missing < last and (begin >= 0 or missing > 0):  # else that version is not kept
        raise gone(folder, missing)


def gone(folder: Location, version: int) -> DamagedError:
    """What to raise where a commit is not there that others were built on."""
    return damaged(
        commit_file(folder, version),
        "it is not there; there are newer ones, and no checkpoint that can be read lies between",
        "the commit, or a checkpoint of it or a later one",
    )


def _checkpoints(folder: Location, last: int) -> Iterator[int]:
    """From which versions a reader of version `last` may begin, -1 where there is no checkpoint: by what the
    last one that was made says of itself, and by a list of the folder, which may be long."""
    hint = checkpoint_files.last_checkpoint(folder)
    if hint is not None and hint <= last and checkpoint_files.is_whole(folder, hint):
        yield hint
    named = (checkpoint_files.NAME.fullmatch(name) for name in store.names(folder))
    known = sorted((found for one in named if one and (found := int(one[1])) <= last), reverse=True)
    yield next((one for one in known if checkpoint_files.is_whole(folder, one)), -1)


def _first_missing(folder: Location, begin: int, last: int) -> int | None:
    """The first commit after `begin` that is not there; DamagedError for one that is not whole."""
    for version in range(begin + 1, last + 1):
        file = commit_file(folder, version)
        try:
            # a store of other machines keeps its own checksums, and is not asked again about each file
            _look(file, store.stat(file) if isinstance(file, Path) else None)
        except FileNotFoundError:
            return version
    return None


@lru_cache(maxsize=50_000)
def _look(file: Location, now: Stat | None) -> None:
    """Once for each commit as it is now."""
    _actions(file)


def _whole(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same; ValueError where some lack. Commits of our own say how many files they name."""
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise ValueError("it has no actions")
    info = actions[0].get("commitInfo") or {}
    if info.get("engineInfo") == ENGINE:
        named = sum("add" in action for action in actions)
        if str(named) != info["operationMetrics"]["numFiles"]:
            raise ValueError(f"it names {named} of {info['operationMetrics']['numFiles']} data files")
    return actions


def commit(path: Location, version: int) -> Commit | None:
    """The commit of that version, None where its file is gone (cleaned up) or not there yet."""
    found = actions(path / LOG_FOLDER, version)
    if found is None:
        return None
    info: dict[str, Any] = {}
    transactions: dict[str, int] = {}
    added: list[str] = []
    changes_data = False
    for action in found:
        changes_data |= any(
            action[kind].get("dataChange", True) for kind in ("add", "remove") if kind in action
        )
        if "commitInfo" in action:
            info = action["commitInfo"]
        elif "txn" in action:
            transactions[action["txn"]["appId"]] = action["txn"]["version"]
        elif "add" in action:
            added.append(unquote(action["add"]["path"]))
    return Commit(
        version=version,
        metadata=_metadata(info.get("userMetadata")),
        transactions=transactions,
        added=tuple(added),
        changes_data=changes_data,
    )


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def newest_commit(
    path: Location, where: Callable[[dict[str, Any]], bool] = bool, kept: bool = False
) -> Commit | None:
    """The newest commit whose metadata `where` accepts; reads backwards, no Spark.

    What is `kept` is never cleaned up: DamagedError where a commit on the way to it is gone.
    """
    at = newest_version(path)
    while at >= 0:
        found = commit(path, at)
        if found is None and kept:
            file = commit_file(path / LOG_FOLDER, at)
            raise damaged(file, "it is not there, and later commits are", "the commit before them")
        if found is None:
            return None
        if where(found.metadata):
            return found
        at -= 1
    return None


def newest_metadata(
    path: Location, where: Callable[[dict[str, Any]], bool] = bool, kept: bool = False
) -> dict[str, Any] | None:
    """The metadata of `newest_commit`, None where no commit fits."""
    found = newest_commit(path, where, kept)
    return found.metadata if found else None


def rows(spark: SparkSession, path: Location, version: int | None = None) -> DataFrame:
    """The table at that version, the newest unless one is given; DamagedError where its log is torn."""
    refuse_torn(path, version)
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(str(path))


def snapshot(spark: SparkSession, path: Location) -> Any:
    """Delta's own snapshot (a JVM object), brought up to date; DamagedError where its log is torn."""
    refuse_torn(path)
    jvm = spark._jvm
    assert jvm is not None
    nothing = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    return log.update(False, nothing, nothing)


def refuse_overwriting_store(spark: SparkSession, lake: Location) -> None:
    """UsageError unless this session publishes commits so that they cannot overwrite those of an Appender.

    Delta's own store for local disks looks whether a commit's file is there and then renames its own over it;
    the one for HDFS, which it takes by itself, has the name node rename, which refuses.
    """
    scheme, wanted = ("file", LINKED) if isinstance(lake, Path) else (lake.scheme, RENAMED)
    for setting in ("spark.delta.logStore.class", f"spark.delta.logStore.{scheme}.impl"):
        found = spark.conf.get(setting, "") or ""
        if found != wanted and (found or (scheme == "file" and setting.endswith(".impl"))):
            raise UsageError(
                f"{setting} is {found or 'not set'}: a commit of Spark's could overwrite another one",
                f"a lake in {lake} needs {wanted}",
                "remove the setting from Spark's configuration",
            )


def files(spark: SparkSession, path: Location) -> DataFrame:
    """The data files of the table's snapshot as Delta lists them: `path`, `size`, `partitionValues`, ..."""
    from pyspark.sql import DataFrame

    return DataFrame(snapshot(spark, path).allFiles().toDF(), spark)


def statistics(spark: SparkSession, path: Location, column: str) -> DataFrame:
    """Per data file of the snapshot `path`, `records`, and `first` and `last` value of a bigint column.

    The last three are NULL where the writer left no statistics. They outlive commit files and OPTIMIZE.
    """
    names = {"records": "numRecords", "first": f"minValues.{column}", "last": f"maxValues.{column}"}
    facts = (f"CAST(get_json_object(stats, '$.{statistic}') AS bigint) AS {name}"
             for name, statistic in names.items())  # fmt: skip
    return files(spark, path).selectExpr("path", *facts)


def create(
    spark: SparkSession,
    path: Location,
    schema: StructType,
    properties: Mapping[str, str] = {},
    partition_by: Sequence[str] = (),
) -> None:
    """Creates an empty table; an existing one is left as it is."""
    if not exists(path):
        if any(name.endswith(".parquet") or "=" in name for name in store.names(path)):
            raise damaged(path / LOG_FOLDER / f"{0:020d}.json", "there are data files and no commits",
                          "the commits that name the data files")  # fmt: skip
        from delta.tables import DeltaTable

        builder = DeltaTable.createIfNotExists(spark).location(str(path)).addColumns(schema)
        if partition_by:
            builder = builder.partitionedBy(*partition_by)
        for key, value in properties.items():
            builder = builder.property(key, value)
        builder.execute()


def append(
    df: DataFrame,
    path: Location,
    app_id: str,
    txn_version: int,
    metadata: Mapping[str, Any],
    partition_by: Sequence[str] = (),
) -> Commit:
    """Appends once; the commit it made. A write that Delta skipped without a word is a SilentSkipError, and a
    torn log a DamagedError: Spark's own checkpoint would make the loss last."""
    refuse_torn(path)
    before = newest_version(path)
    writer = df.write.format("delta").mode("append")
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    _identified(writer, app_id, txn_version, metadata).save(str(path))
    return _made(path, before, app_id, txn_version)


def replace(
    df: DataFrame,
    path: Location,
    predicate: str,
    app_id: str,
    txn_version: int,
    metadata: Mapping[str, Any],
) -> Commit:
    """Replaces the rows that match `predicate` by `df` in one commit, once; the commit it made. DamagedError
    where the log is torn."""
    refuse_torn(path)
    before = newest_version(path)
    writer = df.write.format("delta").mode("overwrite").option("replaceWhere", predicate)
    _identified(writer, app_id, txn_version, metadata).save(str(path))
    return _made(path, before, app_id, txn_version)


def _identified(writer: Any, app_id: str, txn_version: int, metadata: Mapping[str, Any]) -> Any:
    return (
        writer.option("txnAppId", app_id)
        .option("txnVersion", txn_version)
        .option("userMetadata", json.dumps(metadata, separators=(",", ":")))
    )


def _made(path: Location, before: int, app_id: str, txn_version: int) -> Commit:
    version = before
    while True:
        version += 1
        found = commit(path, version)
        if found is None:
            raise SilentSkipError(
                what=f"the write of transaction {txn_version} to {path} left no commit",
                why=f"Delta already knows transaction {txn_version} or a later one of {app_id!r} "
                "and skips it silently",
                remedy="do not write to the lake by other means; restart the lake server, "
                "it reads the last transaction again",
            )
        if found.transactions.get(app_id) == txn_version:
            return found


def relation_sql(path: Location, delta_version: int | None = None) -> str:
    """A Delta table by its path, pinned at a Delta version where one is given, for a statement that is made
    now; DamagedError where its log is torn."""
    refuse_torn(path, delta_version)
    pinned = "" if delta_version is None else f" VERSION AS OF {delta_version}"
    return f"delta.{quote.name(str(path))}{pinned}"

"""Advance: the speed layer's one step. Computes the partial of new log batches and appends it, exactly once.

Only the version's owner may call what is here (design.md, section 7); nothing in it starts a thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.errors import StalledVersionError
from jobs.kinds import compile
from jobs.kinds.table import Events, Table
from jobs.lake import delta
from jobs.lake.log import Log
from jobs.lake.version import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SMALL_RECORDS = 100_000
"""Up to this many records are computed in one task and written as one file; more are spread over the
cores."""
LONG_RECORDS = 5_000_000
"""One step of a long catch-up takes about this many records."""

PROPERTIES = {
    "delta.checkpointInterval": "100",
    # the file count of the Delta log slows every append: 0.35 s at few, over 1.2 s at 60,000
    "delta.logRetentionDuration": "interval 1 days",
    "delta.enableExpiredLogCleanup": "false",  # jobs.maintain does it, see there
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.enableDeletionVectors": "false",
}


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a version stands. `step` is the last committed one, `segment` the open one, `position` a
    batch number.

    `records` counts the log's records up to the position, so that a lag is a subtraction.
    """

    step: int = 0
    segment: int = 0
    position: int = 0
    watermark: int | None = None
    records: int = 0
    steps_open: int = 0


@dataclass(frozen=True, kw_only=True)
class Feed:
    """A version ready to be computed: its definition, its log, its Delta table."""

    version: Version
    definition: Table
    log: Log
    path: Path
    table_id: str
    schema: StructType

    @property
    def spark(self) -> SparkSession:
        return self.log.spark

    @property
    def batch_lane(self) -> str:
        """The Delta transaction app of rebuilds and merges."""
        return f"{self.table_id}:batch"

    @property
    def keys(self) -> list[str]:
        """The columns that identify one row of the table: keys, then the window's start."""
        return list(self.definition.key_columns)

    @property
    def order(self) -> list[str]:
        """How files are sorted: by window, then by key, so that both prune."""
        return [*reversed(self.keys)]

    @property
    def states(self) -> list[str]:
        return [name for name in self.schema.names if name not in self.keys and name != "_segment"]

    def rows(self, version: int | None = None) -> DataFrame:
        """The version's partial rows, `_segment` included, at a Delta version."""
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.path))


def is_stored(definition: Table) -> bool:
    """Whether versions of the table hold rows of their own; an Events table is a view over its log."""
    return not isinstance(definition, Events)


def open_feed(lake: Path, version: Version, log: Log) -> Feed:
    """Create the version's Delta table where it is missing, and make it ready."""
    from pyspark.sql.types import IntegerType

    definition = Table.from_json(version.definition)
    path = version.path(lake)
    if not is_stored(definition):
        return Feed(
            version=version, definition=definition, log=log, path=log.path,
            table_id=delta.table_id(log.spark, log.path), schema=log.rows(0, 0).schema,
        )  # fmt: skip
    schema = compile.partial(definition, log.rows(0, 0)).schema.add("_segment", IntegerType())
    properties = {**PROPERTIES, **_statistics(schema, definition.key_columns)}
    table_id = delta.create(log.spark, path, schema, properties, partition_by=("_segment",))
    return Feed(version=version, definition=definition, log=log, path=path, table_id=table_id, schema=schema)


def _statistics(schema: StructType, keys: Iterable[str]) -> dict[str, str]:
    """Statistics on the columns that prune, and on no other: they are paid for in every step."""
    pruning = (
        "string",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "date",
        "timestamp",
    )
    named = [key for key in keys if schema[key].dataType.simpleString().split("(")[0] in pruning]
    if not named:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {"delta.dataSkippingStatsColumns": ",".join(f"`{key}`" for key in named)}


def standing(feed: Feed) -> Standing:
    """Read from Delta where the version stands; a version ahead of its log is refused.

    The step comes from the snapshot's transactions (the last commit may be a rebuild's), the position
    from the commit of exactly that step.
    """
    if not is_stored(feed.definition):
        return advance(feed, Standing(), feed.log.end())
    step = delta.transaction_version(feed.spark, feed.path, feed.table_id)
    if step == 0:
        return Standing()
    found = delta.newest_metadata(feed.path, where=lambda metadata: metadata.get("step") == step)
    if found is None:
        raise StalledVersionError(
            f"the position of {feed.version.table} {feed.version.name} cannot be found",
            f"no commit in {feed.path}/_delta_log tells the position of step {step}",
            "restore the folder's _delta_log, or build the table anew (`twinlake plan`, `twinlake build`)",
        )
    at = Standing(
        step=step,
        segment=found["segment"] + 1 if found["kind"] == "close" else found["segment"],
        position=found["position"][feed.log.topic.name],
        watermark=found["watermark"],
        records=found["records"],
        steps_open=0 if found["kind"] == "close" else found["steps_open"],
    )
    end = feed.log.end()
    if at.position > end:
        raise StalledVersionError(
            f"{feed.version.table} {feed.version.name} is at batch {at.position}, ahead of its log ({end})",
            f"the log {feed.log.path} was restored to an earlier state than the table",
            "restore the log's newer state, or build the table anew (`twinlake plan`, `twinlake build`)",
        )
    return at


def _told(feed: Feed, kind: str, at: Standing) -> dict[str, Any]:
    """The metadata of a step or a close: all that a later start needs to go on."""
    return {"kind": kind, **asdict(at), "position": {feed.log.topic.name: at.position}}


def advance(feed: Feed, at: Standing, to: int, rows: DataFrame | None = None) -> Standing:
    """One step: the partial of the batches in (at.position, to], from `rows` where the caller has them
    in memory."""
    from pyspark.sql import functions as F

    if to <= at.position:
        return at
    told = feed.log.metadata(to)
    records = sum(told["counts"][verdict] for verdict in COUNTED) if told.get("counts") else at.records
    new = replace(
        at,
        step=at.step + 1,
        position=to,
        watermark=told.get("watermark") if told else at.watermark,
        records=records,
        steps_open=at.steps_open + 1,
    )
    if not is_stored(feed.definition):
        return new
    if rows is None:
        rows = feed.log.rows(at.position, to)
    if records - at.records <= SMALL_RECORDS:
        rows = rows.coalesce(1)
    partial = compile.partial(feed.definition, rows).sortWithinPartitions(*feed.order)
    delta.append(
        partial.withColumn("_segment", F.lit(at.segment)).select(*feed.schema.names),
        feed.path,
        feed.table_id,
        new.step,
        _told(feed, "step", new),
    )
    return new


def close(feed: Feed, at: Standing) -> Standing:
    """Close the open segment by an empty append that takes the next step number.

    Only after this commit may anyone treat the segment as closed.
    """
    new = replace(at, step=at.step + 1, steps_open=0)
    if not is_stored(feed.definition):
        return at
    nothing = feed.spark.createDataFrame([], feed.schema)
    delta.append(nothing, feed.path, feed.table_id, new.step, _told(feed, "close", new))
    return replace(new, segment=at.segment + 1)


COUNTED = ("valid", "invalid", "duplicate", "too_late")
"""The verdicts: every record of the log has one of them (`late` counts some of the valid ones again)."""


def cuts(log: Log, after: int, to: int, limit: int = LONG_RECORDS) -> list[int]:
    """Batch numbers at which to cut (after, to] so that each part has at most `limit` records, or one
    batch."""
    sizes = log.all(after, to).groupBy("batch").count().collect()
    found: list[int] = []
    held = 0
    for batch, size in sorted((row["batch"], row["count"]) for row in sizes):
        if held and held + size > limit:
            found.append(batch - 1)
            held = 0
        held += size
    return [*found, to]

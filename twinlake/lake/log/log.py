"""The log of one topic: where it is, how far it goes, and the relations others read from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from twinlake.base import quote
from twinlake.base.errors import StoppedTopicError
from twinlake.base.location import Location
from twinlake.base.times import moment_or_none, parse_moment
from twinlake.kinds.late import DISCARDED
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.delta.data_file import Column
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log import active_topics, contracts, log_fields, log_start
from twinlake.lake.log.log_start import LogStart
from twinlake.lake.log.quarantine import latest_sql
from twinlake.topics import record_id, record_key
from twinlake.topics.contract import JSON
from twinlake.topics.earlier import MadeWith, as_of_schema
from twinlake.topics.spark_type import is_record
from twinlake.topics.verdict import EXPIRED, TOO_LATE, VALID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.topics.topic import Topic

BATCH, ACCEPT, REPLAY = "batch", "accept", "replay"
EVENT = "event"
_BEFORE_EVENT = {
    "epoch": "int", "partition": "int", "offset": "bigint", "timestamp": "timestamp", "timestamp_type": "int",
    "key": "binary", "value": "binary", "headers": "array<struct<key string, value binary>>",
    "schema_id": "int",
}  # fmt: skip
_AFTER_EVENT = {
    "verdict": "string", "reasons": "array<string>", "late": "boolean", "contract": "string",
    "replay": "boolean", "batch": "bigint", "ingested_at": "timestamp",
}  # fmt: skip
COLUMNS = (*_BEFORE_EVENT, EVENT, *_AFTER_EVENT)
"""The columns of a log's rows, in order."""
PROPERTIES = {
    "delta.appendOnly": "true",
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.enableExpiredLogCleanup": "false",  # batch/maintain.py does it: Delta's own goes by age alone
    "delta.deletedFileRetentionDuration": "interval 2 days",
}
PRUNING = ("epoch", "partition", "offset", "timestamp", "batch", "ingested_at")
"""Readers ask for batches, the index for times, a rebuild of some windows for those of their clock: the event
time joins these."""


def log_path(lake: Location, topic: str) -> Location:
    return lake / "logs" / topic


class Log:
    """The Delta table `<lake>/logs/<topic>`, one commit per batch number; retention alone deletes of it."""

    def __init__(self, spark: SparkSession, lake: Location, topic: Topic) -> None:
        self.spark = spark
        self.topic = topic
        self.lake = lake
        self.path = log_path(self.lake, topic.name)
        self.lock = threading.Lock()
        """What compacts the log's files: one at a time."""
        self.on_commit: Callable[[float], None] = lambda seconds: None
        self.on_batch: Callable[[float], None] = lambda seconds: None
        """Called with the seconds that a commit by put-if-absent took, and a batch up to its commit."""
        self._appender: Appender | None = None
        self._read: dict[str, str] | None = None
        self.known_start: LogStart | None = None
        """Where it started when somebody asked last; an open log has been asked."""

    def end(self) -> int:
        """The newest batch number, 0 for an empty log."""
        return int(self.metadata().get("batch", 0))

    @property
    def start(self) -> LogStart | None:
        """Where the log starts; None as long as it holds all that it has read."""
        return self.started()[1]

    def started(self) -> tuple[int, LogStart | None]:
        """A version of the Delta table, the newest, and where the log starts by it."""
        version, number = self.appender.moment(log_start.app_id(self.appender.table_id))
        start = self.known_start  # another thread may ask, and find a later one
        if number and (start is None or start.number != number):
            self.known_start = start = log_start.load(self.path, number)
        return version, start if number else None

    def metadata(self, batch: int | None = None) -> dict[str, Any]:
        """The metadata of the newest commit, or of the one that made `batch`; {} where there is none.

        The newest is always there. Older ones are cleaned up after hours: ask only for what may be missing.
        """

        def wanted(found: dict[str, Any]) -> bool:
            return found.get("kind") in (BATCH, ACCEPT, REPLAY) and batch in (None, found.get("batch"))

        return delta.newest_metadata(self.path, wanted, kept=batch is None) or {}

    def records(self, to: int) -> int:
        """How many rows the batches up to `to` have, copies among them, by the statistics of the log's files,
        and those that retention has deleted.

        They outlive commits and OPTIMIZE; only files that hold batches on both sides of the end are read.
        """
        from pyspark.sql import functions as F

        whole = F.col("last") <= to
        unknown = F.expr("records IS NULL OR first IS NULL OR last IS NULL")
        found = delta.statistics(self.spark, self.path, "batch").agg(
            F.sum(F.when(~unknown & whole, F.col("records"))).alias("whole"),
            F.collect_list(F.when(unknown | (~whole & (F.col("first") <= to)), F.col("path"))).alias("cut"),
        )
        (row,) = found.collect()
        held, files = row["whole"] or 0, [str(self.path / unquote(name)) for name in row["cut"]]
        if files:
            held += self.spark.read.schema("batch bigint").parquet(*files).where(f"batch <= {to}").count()
        start = self.start
        return int(held) + (start.rows if start and to >= start.batch else 0)

    @property
    def ddl(self) -> str:
        """What readers of the newest schema need: all columns in order, of `event` the fields of `read`."""
        return ddl(self.read)

    @property
    def read(self) -> dict[str, str]:
        """The fields of `event` that the newest schema's are read from, with their Spark types."""
        if self._read is None:
            self._read = log_fields.read_from(self.event(), self.topic.newest.fields)
        return self._read

    def open(self) -> str:
        """Creates the table where there is none, adds fields that the newest schema has gained; its id.

        From then on readers see the contract and schemas of the topic.
        StoppedTopicError when the log has one of them with another type, from a producer that was first.
        """
        from pyspark.sql.types import StructType

        newest = self.topic.newest
        fields = {field.name: field.type for field in newest.fields}
        pruning = ",".join(".".join(map(quote.name, column)) for column in self._pruning)
        properties = {**PROPERTIES, "delta.dataSkippingStatsColumns": pruning}
        delta.create(self.spark, self.path, StructType.fromDDL(ddl(fields)), properties)
        self._appender = self._read = None
        self._gain_columns()
        self._refuse_unfit()
        self.keep(
            fields,
            newest.file,
            remedy="give the field that type in the file, or another name; then `twinlake reload`",
        )
        metadata = self.metadata()
        contracts.begin(self.lake, self.topic, int(metadata.get("batch", 0)))
        self.publish(metadata.get("schemas", {}))  # last: its columns must be there
        self.started()
        return self.appender.table_id

    def publish(self, met: Iterable[int | str]) -> None:
        """Readers see the contract and schemas of the topic, and whose records are in the log: how a
        field is read depends on both."""
        active_topics.publish(self.lake, self.topic, sorted(map(int, met)))

    def _refuse_unfit(self) -> None:
        """StoppedTopicError for a newest schema that cannot read records that are valid in the log."""
        if found := self._unfit():
            schema_id, why = found
            raise StoppedTopicError(
                what=f"{self.topic.newest.file} cannot read records of schema {schema_id}, which the log of "
                f"topic {self.topic.name} has",
                why=why,
                remedy="give the field that type in the file, or another name; then `twinlake reload`",
            )

    def _unfit(self) -> tuple[str, str] | None:
        """The schema whose records are valid in the log and cannot be read by the newest one, and why."""
        newest, kept = self.topic.newest, self.event()
        for schema_id, names in self.metadata().get("schemas", {}).items():
            if why := log_fields.unfit(newest.fields, names, kept):
                return schema_id, why
        return None

    def why_not_opened(self) -> str | None:
        """Why `open` would refuse the topic as it is; None where it would not. Changes nothing."""
        if not delta.exists(self.path):
            return None
        if found := self._unfit():
            return found[1]
        event: Mapping[str, str] = self.event()
        try:
            for field in self.topic.newest.fields:
                event = log_fields.with_field(event, field.name, field.type)
        except ValueError as error:
            return str(error)
        return None

    def _gain_columns(self) -> None:
        """Gives a log of before the columns that it lacks; its rows read NULL there."""
        there = self.appender.schema().names
        if lacking := [f"{name} {type_}" for name, type_ in _AFTER_EVENT.items() if name not in there]:
            self.spark.sql(f"ALTER TABLE {relation_sql(self.path)} ADD COLUMNS ({', '.join(lacking)})")
            self._appender = None  # it would refuse to go on with a table that was altered

    @property
    def appender(self) -> Appender:
        """What appends to the log: batches for ingest, and what an operator accepts while it stands still."""
        if self._appender is None:
            self._appender = Appender(self.path, self._pruning)
            self._appender.on_commit = lambda seconds: self.on_commit(seconds)
        return self._appender

    @property
    def _pruning(self) -> list[Column]:
        time = self.topic.contract.event_time
        timed = [(EVENT, field.name) for field in self.topic.newest.fields if field.name == time]
        return [*((name,) for name in PRUNING), *timed]

    def event(self) -> dict[str, str]:
        """Every field of the events in the log, shown or not, with its Spark type; in order."""
        event = self.appender.schema()[EVENT].dataType
        return {field.name: field.dataType.simpleString() for field in event}  # type: ignore[attr-defined]

    def keep(self, fields: Mapping[str, str], source: str, remedy: str) -> dict[str, str]:
        """`event` after it has gained those of the fields that it lacks: what is sent is never dropped.

        Rows before read NULL there. StoppedTopicError, with `source` as who has the fields, when one of them
        is there with a type that has nothing to do with its own.
        """
        there = self.event()
        missing = [one for one in fields.items() if log_fields.kept_as(there, *one) is None]
        try:
            gained = {
                path: new for one in missing for path, new in log_fields.new_fields(there, *one).items()
            }
        except ValueError as error:
            what = f"the log of topic {self.topic.name} cannot keep the events of {source}"
            raise StoppedTopicError(what, str(error), remedy) from error
        if gained:
            columns = ", ".join(
                f"{'.'.join(map(quote.name, (EVENT, *path)))} {type_}" for path, type_ in gained.items()
            )
            self.spark.sql(f"ALTER TABLE {relation_sql(self.path)} ADD COLUMNS ({columns})")
            self._appender = self._read = None  # it would refuse to go on with a table that was altered
        return self.event()

    def all(self, after: int, to: int, at: int | None = None) -> DataFrame:
        """Every column of every record of the batches in (after, to], at a version of the Delta table."""
        found = delta.rows(self.spark, self.path, at)
        return found.where(f"batch > {after} AND batch <= {to}")

    def rows(self, after: int, to: int, at: int | None = None) -> DataFrame:
        """The rows every definition reads: valid records of the batches in (after, to], at a version of the
        Delta table.

        Columns: the newest schema's fields, its defaults applied; _epoch, _partition, _offset, _timestamp,
        _ingested_at (NULL in batches of before the log recorded it).
        """
        return self._rows(self.all(after, to, at))

    def no_rows(self) -> DataFrame:
        """The columns of `rows`, and none of them: what expressions are analysed over. Reads nothing."""
        from pyspark.sql import functions as F

        columns = self.topic.columns
        return self.spark.range(0).select(*(F.lit(None).cast(type_).alias(name) for name, type_ in columns))

    def files_since(self, micros: int) -> list[str]:
        """The data files (paths below the table) that may have records of Kafka's time `micros` or later."""
        since = moment_or_none(micros - 1_000)  # statistics tell milliseconds
        newest = {path: file.greatest("timestamp") for path, file in self.appender.files().items()}
        return [
            unquote(path)
            for path, ingested_at in newest.items()
            if since is None or ingested_at is None or parse_moment(ingested_at) >= since
        ]

    def data_files(self) -> tuple[str, ...]:
        """The paths of all data files, as another engine reads them; of a lake on a disk."""
        return tuple(str(self.path / unquote(path)) for path in self.appender.files())

    def as_of_schema(self, made_with: MadeWith | None) -> Log:
        """The same log, read by an earlier schema of the topic; itself for the newest, and for None."""
        topic = as_of_schema(self.topic, made_with)
        return self if topic is self.topic else _EarlierLog(self, topic)

    def rows_of(self, files: Iterable[str], batches: str = "true") -> DataFrame:
        """The same rows of these data files (paths below the table), of the batches that meet a condition: no
        snapshot, no listing."""
        read = self.spark.read.schema(self.ddl).parquet(*(str(self.path / name) for name in files))
        return self._rows(read.where(batches))

    def rows_sql(self, to: int) -> str:
        """The same rows as SELECT text, up to batch `to`."""
        return f"{self.valid_sql(relation_sql(self.path))} AND batch <= {to}"

    def traced_sql(self, relation: str) -> str:
        """The rows of `valid_sql`, and of each the batch that it is of, as `_batch`."""
        return self.valid_sql(relation, f"batch AS `{record_id.BATCH}`")

    def valid_sql(self, relation: str, *more: str) -> str:
        """The same rows as SELECT text, of all that the relation has of the log; with more columns of it."""
        columns = ", ".join((*self.columns(), *more))
        return f"SELECT {columns} FROM {relation} WHERE verdict = '{VALID}'"

    def late_sql(self, relation: str) -> str:
        """SELECT text of records that came late: the columns of `rows`, and whether they were too late and
        were not validated again since (`_discarded`). `relation` is the log's.
        """
        return f"""SELECT {", ".join(self.columns())}, verdict = '{TOO_LATE}' AS `{DISCARDED}`
FROM {latest_sql(relation)}
WHERE (verdict IN ('{VALID}', '{EXPIRED}') AND late) OR verdict = '{TOO_LATE}'"""

    def _rows(self, found: DataFrame) -> DataFrame:
        return found.where(f"verdict = '{VALID}'").selectExpr(*self.columns())

    def columns(self) -> tuple[str, ...]:
        """SQL of what every definition reads, over the log's columns; another one once a schema is met."""
        schemas = self.met()
        contract, fields = self.topic.contract, []
        asked = self._has_places and (self._read is not None or delta.exists(self.path))
        kept = self.read if asked else log_fields.NOT_ASKED
        for field in self.topic.newest.fields:
            value = log_fields.as_read(field, schemas, kept)
            if deleted := record_key.of_tombstone(contract, field.name):
                value = f"CASE WHEN {EVENT} IS NULL THEN {deleted} ELSE {value} END"
            fields.append(f"{value} AS {quote.name(field.name)}")
        return (*fields, *record_key.from_log(contract), *record_id.FROM_LOG)

    def met(self) -> Mapping[str, list[str]]:
        """By id of the schemas met, under which names their records are kept."""
        schemas: dict[str, list[str]] = self.metadata().get("schemas", {})
        return schemas

    @property
    def _has_places(self) -> bool:
        """Whether a field's values may be in several fields of `event`; else `read` is not looked up."""
        fields, is_json = self.topic.newest.fields, self.topic.contract.format == JSON
        return is_json or len(self.topic.schemas) > 1 or any(is_record(field.type) for field in fields)


class _EarlierLog(Log):
    """A log whose rows have the names and types of an earlier schema. It is only read."""

    _has_places = True

    def met(self) -> Mapping[str, list[str]]:
        """Of one that was met before a field got its new name: without that. Its records have had the field's
        default, which is in the states of versions by now."""
        if self.topic.contract.format == JSON:  # its records name no schema
            return {}
        number, topic = self.topic.newest.number, self._log.topic
        then = {name for field in topic.schemas[number - 1].fields for name in field.names}
        later = {name for field in self.topic.newest.fields for name in field.names} - then
        met_by = self.metadata().get("met_by", {})
        return {
            schema_id: log_fields.without(names, later)
            if met_by.get(schema_id, number + 1) <= number
            else names
            for schema_id, names in super().met().items()
        }

    def __init__(self, log: Log, topic: Topic) -> None:
        super().__init__(log.spark, log.lake, topic)
        self.lock, self._log = log.lock, log
        self._seen: Appender | None = None

    @property
    def appender(self) -> Appender:
        return self._log.appender

    @property
    def read(self) -> dict[str, str]:
        if self._seen is not self.appender:  # the log has gained fields
            self._seen, self._read = self.appender, None
        return super().read


def late_after(logs: Mapping[str, Log]) -> dict[str, timedelta]:
    """By topic, when its contract calls a record late."""
    found = {name: log.topic.contract.late_after for name, log in logs.items()}
    return {name: length for name, length in found.items() if length is not None}


def ddl(fields: Mapping[str, str]) -> str:
    """The log's columns in order, of `event` these fields (with their Spark types)."""
    event = ", ".join(f"{quote.name(name)}: {type_}" for name, type_ in fields.items())
    types = {**_BEFORE_EVENT, EVENT: f"struct<{event}>", **_AFTER_EVENT}
    return ", ".join(f"{name} {types[name]}" for name in COLUMNS)

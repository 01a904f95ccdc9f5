"""The log of one topic: where it is, how far it goes, and the relations others read from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.ingest.writer_schema import default_sql
from jobs.lake import delta
from jobs.topics.verdict import VALID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.topics.schema import Field
    from jobs.topics.topic import Topic

BATCH, ACCEPT = "batch", "accept"
BEFORE_EVENT = (
    "epoch int", "partition int", "offset bigint", "timestamp timestamp", "timestamp_type int", "key binary",
    "value binary", "headers array<struct<key string, value binary>>", "schema_id int",
)  # fmt: skip
AFTER_EVENT = (
    "verdict string", "reasons array<string>", "late boolean", "contract string", "replay boolean",
    "batch bigint",
)  # fmt: skip
PROPERTIES = {
    "delta.appendOnly": "true",
    "delta.checkpointInterval": "100",
    # columns that prune: readers ask for batches, the index for times
    "delta.dataSkippingStatsColumns": "epoch,partition,offset,timestamp,batch",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 2 days",
}
COORDINATE = "epoch AS _epoch", "partition AS _partition", "offset AS _offset", "timestamp AS _timestamp"


class Log:
    """The Delta table `<lake>/logs/<topic>`, append only, one commit per batch number."""

    def __init__(self, spark: SparkSession, lake: Path, topic: Topic) -> None:
        self.spark = spark
        self.topic = topic
        self.path = Path(lake) / "logs" / topic.name

    def end(self) -> int:
        """The newest batch number, 0 for an empty log."""
        return int(self.metadata().get("batch", 0))

    def metadata(self, batch: int | None = None) -> dict[str, Any]:
        """The metadata of the newest commit (of the one that made `batch`); {} where there is none."""

        def wanted(found: dict[str, Any]) -> bool:
            return found.get("kind") in (BATCH, ACCEPT) and batch in (None, found.get("batch"))

        return delta.newest_metadata(self.path, wanted) or {}

    @property
    def event_ddl(self) -> str:
        """The type of the column `event`: the newest schema's fields, all nullable."""
        fields = (f"{quote.name(field.name)}: {field.type}" for field in self.topic.newest.fields)
        return f"struct<{', '.join(fields)}>"

    @property
    def ddl(self) -> str:
        """All columns in order."""
        return ", ".join((*BEFORE_EVENT, f"event {self.event_ddl}", *AFTER_EVENT))

    def open(self) -> str:
        """Creates the table where there is none, adds fields that the newest schema has gained; its id."""
        from pyspark.sql.types import StructType

        table_id = delta.create(self.spark, self.path, StructType.fromDDL(self.ddl), PROPERTIES)
        there = set(self.spark.read.format("delta").load(str(self.path)).schema["event"].dataType.names)
        gained = [field for field in self.topic.newest.fields if field.name not in there]
        if gained:
            columns = ", ".join(f"event.{quote.name(field.name)} {field.type}" for field in gained)
            self.spark.sql(f"ALTER TABLE {self._relation} ADD COLUMNS ({columns})")
        return table_id

    @property
    def _relation(self) -> str:
        return f"delta.{quote.name(str(self.path))}"

    def all(self, after: int, to: int) -> DataFrame:
        """Every column of every record of the batches in (after, to]."""
        found = self.spark.read.format("delta").load(str(self.path))
        return found.where(f"batch > {after} AND batch <= {to}")

    def rows(self, after: int, to: int) -> DataFrame:
        """The rows every definition reads: valid records of the batches in (after, to].

        Columns: the newest schema's fields, its defaults applied; _epoch, _partition, _offset, _timestamp.
        """
        return self._rows(self.all(after, to))

    def fresh_rows(self, commit: delta.Commit) -> DataFrame:
        """The same rows of one batch, straight from the files of its commit: no snapshot, no listing."""
        files = [str(self.path / name) for name in commit.added]
        return self._rows(self.spark.read.schema(self.ddl).parquet(*files))

    def _rows(self, found: DataFrame) -> DataFrame:
        return found.where(f"verdict = '{VALID}'").selectExpr(*self._columns())

    def _columns(self) -> tuple[str, ...]:
        schemas: dict[str, list[str]] = self.metadata().get("schemas", {})
        fields = (_as_read(field, schemas) for field in self.topic.newest.fields)
        return (*fields, *COORDINATE)

    def events_sql(self) -> str:
        """SELECT text of the valid records: event fields, _epoch, _partition, _offset, _timestamp."""
        return f"SELECT {', '.join(self._columns())} FROM {self._relation} WHERE verdict = '{VALID}'"

    def quarantine_sql(self) -> str:
        """SELECT text of the records that are not valid by their latest verdict, with verdict and reasons."""
        return f"""SELECT l.epoch, l.partition, l.offset, l.timestamp, l.key, l.value, l.verdict, l.reasons
FROM {self._relation} l
LEFT ANTI JOIN (SELECT epoch, partition, offset, batch FROM {self._relation} WHERE replay) r
  ON l.epoch = r.epoch AND l.partition = r.partition AND l.offset = r.offset AND l.batch < r.batch
WHERE l.verdict <> '{VALID}'"""


def _as_read(field: Field, schemas: dict[str, list[str]]) -> str:
    """The field with the newest schema's default where the writer had no such field."""
    name = quote.name(field.name)
    without = sorted(int(schema_id) for schema_id, names in schemas.items() if field.name not in names)
    if not without:
        return f"event.{name} AS {name}"
    ids = ", ".join(map(str, without))
    return f"CASE WHEN schema_id IN ({ids}) THEN {default_sql(field)} ELSE event.{name} END AS {name}"

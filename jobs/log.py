"""The log of one topic: where it is, how far it goes, and the relations others read from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.topic import Topic


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
        raise NotImplementedError

    def rows(self, after: int, to: int) -> DataFrame:
        """The rows every definition reads: valid records of the batches in (after, to]."""
        raise NotImplementedError

    def all(self, after: int, to: int) -> DataFrame:
        """Every column of every record of the batches in (after, to]."""
        raise NotImplementedError

    def events_sql(self) -> str:
        """SELECT text of the valid records: event fields, _epoch, _partition, _offset, _timestamp."""
        raise NotImplementedError

    def quarantine_sql(self) -> str:
        """SELECT text of the records that are not valid, with verdict and reasons."""
        raise NotImplementedError

"""The look at a micro-batch: the first pass over it, as Arrow; by a kept plan where it fits in memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from jobs.ingest import first_pass, source
from jobs.ingest.unreadable import Unreadable
from jobs.ingest.writer_schema import Writer
from jobs.ingest.writers import Writers
from jobs.lake.kept_plan import ArrowFile, KeptPlan, Newest, computed
from jobs.topics.topic import Topic

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Look:
    """`end_marker` as in `first_pass.selections`."""

    def __init__(self, spark: SparkSession, topic: Topic, end_marker: bytes) -> None:
        self._spark = spark
        self._topic = topic
        self._end_marker = end_marker
        self._kept = Newest()

    def whole(self, records: DataFrame, writers: Writers, event: Mapping[str, str]) -> pa.Table:
        """What a batch says of itself, and all that the log stores of it, in one job: in memory."""

        def make() -> KeptPlan:
            return KeptPlan(
                self._spark, records.schema, lambda source: self._over(source, writers, event), nullcontext()
            )  # fmt: skip

        return self._kept.plan((*_known(writers), tuple(event.items())), make).run(records)

    def again(self, records: ArrowFile, writers: Writers, event: Mapping[str, str]) -> pa.Table:
        """The same of records that the log has; the file has the columns of `source.COLUMNS`."""
        from pyspark.sql.types import StructType

        def make() -> KeptPlan:
            columns = StructType.fromDDL(", ".join(map(" ".join, source.COLUMNS.items())))
            return KeptPlan(self._spark, columns, lambda slot: self._over(slot, writers, event))

        return self._kept.plan((*_known(writers), tuple(event.items())), make).run(records)

    def bare(self, records: DataFrame, writers: Writers) -> pa.Table:
        """What a batch too large for that says of itself; the log's columns are made by a second pass."""
        return computed(self._over(records, writers))

    def _over(
        self, records: DataFrame, writers: Writers, event: Mapping[str, str] | None = None
    ) -> DataFrame:
        found = records
        readable, unreadable = _known(writers)
        for expressions in first_pass.selections(self._topic, readable, self._end_marker, event, unreadable):
            found = found.selectExpr(*expressions)
        return found


def _known(writers: Writers) -> tuple[tuple[Writer, ...], tuple[Unreadable, ...]]:
    return tuple(writers.all()), tuple(writers.unreadable())

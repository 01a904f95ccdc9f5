"""The look at a micro-batch: the first pass over it, as Arrow; by a prepared plan where it fits in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.ingest import first_pass, protobuf_body, source
from twinlake.ingest.decoding import may_hide_decimals
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import Writer
from twinlake.ingest.writers import Writers
from twinlake.spark.prepared_plan import ArrowFile, Newest, PreparedPlan, computed
from twinlake.topics.contract import JSON
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


SHARES = 2
"""Among so many threads the partitions of a large batch are divided: everything else that is done meanwhile
leaves one core of two idle for most of the look."""


class Scan:
    """`end_marker` as in `first_pass.selections`."""

    def __init__(self, spark: SparkSession, topic: Topic, end_marker: bytes) -> None:
        self._spark = spark
        self._topic = topic
        self._end_marker = end_marker
        self._kept = [Newest() for _ in range(SHARES)]
        self._kept_closely = [Newest() for _ in range(SHARES)]

    def whole(
        self, records: DataFrame, writers: Writers, event: Mapping[str, str], is_large: bool = False
    ) -> pa.Table:
        """What a batch says of itself, and all that the log stores of it, in one job: in memory. Threads
        share the partitions of a large one; its rows come in the order of one thread."""
        shares = SHARES if is_large else 1
        return self._by_prepared_plan(
            records, lambda: records.schema, writers, event, nullcontext(), shares=shares
        )

    def again(self, records: ArrowFile, writers: Writers, event: Mapping[str, str]) -> pa.Table:
        """The same of records that the log has; the file has the columns of `source.COLUMNS`."""

        def columns() -> StructType:
            from pyspark.sql.types import StructType

            return StructType.fromDDL(", ".join(map(" ".join, source.COLUMNS.items())))

        return self._by_prepared_plan(records, columns, writers, event)

    def bare(self, records: DataFrame, writers: Writers) -> pa.Table:
        """What a batch too large for that says of itself; the log's columns are made by a second pass."""
        return _twice(lambda closely: computed(self._over(records, writers, closely)), self._topic, writers)

    def _by_prepared_plan(
        self,
        records: ArrowFile | DataFrame,
        columns: Callable[[], StructType],
        writers: Writers,
        event: Mapping[str, str],
        *turns: AbstractContextManager[Any],
        shares: int = 1,
    ) -> pa.Table:
        """`columns` are those of the records, asked when a plan is made; `turns` as PreparedPlan has them."""

        def look(closely: bool) -> pa.Table:
            def make() -> PreparedPlan:
                return PreparedPlan(
                    self._spark, columns(), lambda slot: self._over(slot, writers, closely, event), *turns
                )

            kept = self._kept_closely if closely else self._kept
            made_for = (*_known(writers), tuple(event.items()))
            plans = [one.plan(made_for, make) for one in kept[:shares]]
            if shares == 1:
                return plans[0].run(records)
            with ThreadPoolExecutor(shares - 1) as others:
                rest = [
                    others.submit(plan.run, records, share, shares) for share, plan in enumerate(plans[1:], 1)
                ]
                first = plans[0].run(records, 0, shares)
            return pa.concat_tables([first, *(one.result() for one in rest)])

        return _twice(look, self._topic, writers)

    def _over(
        self,
        records: DataFrame,
        writers: Writers,
        closely: bool,
        event: Mapping[str, str] | None = None,
    ) -> DataFrame:
        found = records
        readable, unreadable = _known(writers)
        protobuf_body.register_all(records, readable)
        selections = first_pass.selections(
            self._topic, readable, self._end_marker, event, unreadable, closely
        )
        for expressions in selections:
            found = found.selectExpr(*expressions)
        return found


def _twice(look: Callable[[bool], pa.Table], topic: Topic, writers: Writers) -> pa.Table:
    """Closely where a value could not be read and a decimal may be why: of every batch that took 1.3 times as
    long (0.76 and 1.02 CPU-seconds for 500,000 orders in Avro), and hardly one needs it."""
    import pyarrow.compute as pc

    found = look(False)
    if not pc.any(pc.match_substring(found.column("reasons"), may_hide_decimals(topic))).as_py():
        return found
    # only then: what a writer has is read out of its schema's text
    decimals = (
        any("decimal(" in field.type for field in topic.newest.fields)
        if topic.contract.format == JSON
        else any(one.bytes_schema_text for one in writers.all())
    )
    return look(True) if decimals else found


def _known(writers: Writers) -> tuple[tuple[Writer, ...], tuple[Unreadable, ...]]:
    return tuple(writers.all()), tuple(writers.unreadable())

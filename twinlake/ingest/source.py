"""How a topic's records are read from Kafka: committed ones, from named offsets; why that failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakMethod

from twinlake.base.errors import DeniedError, TwinlakeError, first_lines
from twinlake.config.login import Login
from twinlake.config.settings import Settings
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.storage import store
from twinlake.spark.session import scratch_folder
from twinlake.topics.refusal import refusal_in_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "partition": "int", "offset": "bigint", "timestamp": "timestamp", "timestampType": "int", "key": "binary",
    "headers": "array<struct<key string, value binary>>", "value": "binary",
}  # fmt: skip
"""Those of a record that ingest looks at, as Kafka's reader names them, with their Spark types."""
GROUPS = "twinlake-ingest"
"""How the names of its consumer groups begin; nothing is committed to them."""
# Measured: the defaults make a call to the broker for every 500 records.
OPTIONS = {
    "includeHeaders": "true",
    "groupIdPrefix": GROUPS,
    "failOnDataLoss": "true",
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "20000",
    # a fetch waits for no more than there is: one thread asks partition after partition (60 ms, not 110)
    "kafka.fetch.min.bytes": "1",
    "kafka.fetch.max.wait.ms": "1",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.default.api.timeout.ms": "15000",
    "kafka.request.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "15000",
}


class Limit:
    """How many offsets the next batch of a stream has at most. Spark's own limit is fixed when one starts."""

    def __init__(self, spark: SparkSession, offsets: int) -> None:
        java: Any = spark._jvm
        self.name = uuid4().hex
        self._java = java.twinlake.ingest.BoundedKafka
        self.set(offsets)

    def set(self, offsets: int) -> None:
        self._java.limit(self.name, offsets)


def stream(
    spark: SparkSession, login: Login, topic: str, starts: Mapping[int, int], limit: Limit
) -> DataFrame:
    """The topic's records from these offsets on, by partition."""
    begin = {topic: {str(partition): offset for partition, offset in starts.items()}}
    return (
        spark.readStream.format("twinlake.ingest.BoundedKafka")
        .options(**OPTIONS)
        .options(**login.spark())
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps(begin))
        .option("twinlake.limit", limit.name)
        .load()
    )


class BatchFailedError(Exception):
    """A batch ended the stream."""


def calling(batch: WeakMethod[Callable[[DataFrame, int], None]]) -> Callable[[DataFrame, int], None]:
    """What the JVM calls while its stream lives. It does not keep the ingest, whose prepared plan keeps the
    stream: a circle through both processes, which neither of their collectors would ever find. Nor does an
    error, which PySpark keeps with the frames that it came through."""

    def has_failed(records: DataFrame, number: int) -> bool:
        taken = batch()
        try:
            if taken:
                taken(records, number)
        except BaseException:  # the ingest knows why
            return True
        return taken is None

    def called(records: DataFrame, number: int) -> None:
        if has_failed(records, number):
            # Spark's stream takes a stack frame for every character of an error that came from Java
            raise BatchFailedError("the batch was not committed")

    return called


def refusal(error: BaseException, login: Login, topic: str) -> DeniedError | None:
    """What Spark tells of a cluster that does not let it in, or not read; None for anything else."""
    rights = f"READ and DESCRIBE on topic {topic}, READ on groups that begin with {GROUPS}"
    return refusal_in_java(str(error), login, f"read topic {topic!r}", rights)


def ends(checkpoint: Path, batch: int, topic: str) -> dict[int, int]:
    """The offset that a micro-batch of the stream ends before, by partition, as Spark has planned it.

    It is beyond the last record where a transaction's marker or aborted records are: once retention has taken
    those, nobody could tell them from records that were lost.
    """
    planned = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]
    return {int(partition): end for partition, end in json.loads(planned)[topic].items()}


def explained(
    error: BaseException, spark: SparkSession, settings: Settings, topic: str, batch: int
) -> TwinlakeError:
    """The error in words for an operator; `batch` is the last one that the log has."""
    if known := store.no_room(settings.lake, error, scratch_folder(spark)) or damage_in(error, settings.lake):
        return known
    if isinstance(error, TwinlakeError):
        return error
    with suppress(TwinlakeError):  # without an address of Kafka it was something else
        if refused := refusal(error, settings.services().kafka("ingest"), topic):
            return refused
    return TwinlakeError(
        what=f"ingest of topic {topic} failed after batch {batch}",
        why=f"{type(error).__name__}: {first_lines(error)}",
        remedy="it is tried again from the log's end; if it goes on, see `twinlake logs lake`",
    )

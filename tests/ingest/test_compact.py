"""The log is compacted while it grows: on a real table, whose readers see the same rows before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.project import OURS
from tests.written_log import write_batch
from twinlake.base.errors import BusyError
from twinlake.base.waiting import wait_for
from twinlake.ingest import compact as module
from twinlake.ingest.compact import Compaction, LogFile, choose, compact, small_files
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.topics.topic import load_topic


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Iterator[Log]:
    found = Log(spark, tmp_path, load_topic("orders", OURS))
    found.open()
    yield found


class Writer:
    """Appends small batches as ingest does, each like the first but for its number."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.app_id = "log:" + log.open()
        commit = write_batch(log, 3)
        self.rows = pq.ParquetFile(log.path / commit.added[0]).read()
        self.batch = 1
        self.told = commit.metadata

    def append(self, batches: int) -> None:
        for _ in range(batches):
            self.batch += 1
            number = pa.repeat(pa.scalar(self.batch, pa.int64()), self.rows.num_rows)
            rows = self.rows.set_column(self.rows.schema.get_field_index("batch"), "batch", number)
            told = {**self.told, "batch": self.batch}
            self.log.appender.commit(self.log.appender.write(rows), self.app_id, self.batch, told)


def read(log: Log) -> list[Any]:
    return log.all(0, 10_000).select("batch", "offset", "event.order_id").orderBy("batch", "offset").collect()


def test_small_files_become_one_and_nobody_reads_anything_else(log: Log) -> None:
    writer = Writer(log)
    writer.append(9)
    before, pinned = read(log), delta.newest_version(log.path)

    assert [file.batch for file in compact(log.appender)] == [*range(1, 11)]
    assert [file.batch for file in small_files(log.appender)] == [1]
    assert read(log) == before and len(before) == 30
    at_pin = log.spark.read.format("delta").option("versionAsOf", pinned).load(str(log.path))
    assert at_pin.count() == 30
    assert log.metadata()["batch"] == 10 and log.records(4) == 12
    writer.append(1)
    assert len(read(log)) == 33
    log.spark.sql(f"OPTIMIZE delta.`{log.path}`")
    assert len(read(log)) == 33


def test_files_before_a_field_was_gained_are_left_alone(log: Log) -> None:
    writer = Writer(log)
    writer.append(3)
    log.keep({"more": "string"}, "a test", "")
    commit = write_batch(log, 3)  # Spark writes what it is given: the event of before
    rows = pq.ParquetFile(log.path / commit.added[0]).read()
    event = rows.column("event").combine_chunks()
    fields = [*event.flatten(), pa.nulls(len(event), pa.string())]
    names = [*(field.name for field in event.type), "more"]
    writer.rows = rows.set_column(
        rows.schema.get_field_index("event"), "event", pa.StructArray.from_arrays(fields, names)
    )
    writer.batch = commit.metadata["batch"]
    writer.append(4)

    assert [file.batch for file in compact(log.appender)] == [6, 7, 8, 9]
    assert len(read(log)) == 27


def test_files_that_somebody_else_has_replaced_are_not_replaced_again(log: Log) -> None:
    writer = Writer(log)
    writer.append(4)
    stale = [file.path for file in small_files(log.appender)]
    added = log.appender.write(writer.rows)
    log.spark.sql(f"OPTIMIZE delta.`{log.path}`")

    with pytest.raises(BusyError, match="5 of 5 are gone"):
        log.appender.commit(added, "compaction", 1, {}, removed=stale)
    assert len(read(log)) == 15


def test_it_runs_beside_the_ingest_every_so_many_batches(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_BATCHES", 4)
    writer, compaction = Writer(log), Compaction(log)
    for _ in range(8):
        writer.append(1)
        compaction.after_batch()
        if running := compaction._running:
            wait_for("the compaction", lambda running=running: running.done() or None, 60)

    assert len(log.appender.files()) <= 4
    assert len(read(log)) == 27


def test_how_many_files_are_left_of_many_batches() -> None:
    """A million records in batches of 500, 200 bytes each on disk."""
    files: list[LogFile] = []
    written = most = 0
    for batch in range(2000):
        files.append(LogFile(path=str(batch), batch=batch, bytes=100_000))
        if batch % module.EVERY_BATCHES == 0:
            small = [file for file in files if file.bytes < module.LARGE_BYTES]
            chosen = choose(small)
            if len(chosen) > 1:
                size = sum(file.bytes for file in chosen)
                written += size
                files = [file for file in files if file not in chosen]
                files.append(LogFile(path="merged", batch=chosen[0].batch, bytes=size))
        most = max(most, len(files))

    assert most < 2 * module.EVERY_BATCHES and len(files) < 50
    assert written < 6 * 2000 * 100_000

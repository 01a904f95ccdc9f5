"""The log on real Delta: what it tells of itself must not depend on how long commit files are kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.history import SALES, version_of
from tests.project import OURS
from tests.written_log import write_batch
from twinlake.batch.maintain import clean_up_session, drop_old_commits
from twinlake.batch.rebuild import chunks
from twinlake.kinds.evidence import SEGMENT
from twinlake.kinds.windows import ALL
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta
from twinlake.lake.log.fresh_rows import FROM_LOG, FreshRows
from twinlake.lake.log.log import COLUMNS, Log
from twinlake.speed import advance as module
from twinlake.speed.advance import Standing, advance, cuts
from twinlake.speed.lags import Lags
from twinlake.topics.topic import load_topic
from twinlake.topics.verdict import VALID

SIZES = (3, 5, 1, 40, 2, 0, 7, 4)
"""Records of the batches 1, 2, ...; the sixth is as empty as an accepted topic's."""
DAY_S = 86_400


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Log:
    found = Log(spark, tmp_path, load_topic("orders", OURS))
    for size in SIZES:
        write_batch(found, size)
    return found


def cleaned_up(log: Log) -> None:
    """What `maintain` does to a log some hours later."""
    checkpoint(log)
    (newest,) = (log.path / delta.LOG_FOLDER).glob("*.checkpoint.parquet")
    assert drop_old_commits(log.path, newest.stat().st_mtime + DAY_S)
    assert log.metadata(len(SIZES)) and log.metadata(len(SIZES) - 1) == {}


def optimized(log: Log) -> None:
    clean_up_session(log.spark).sql(f"OPTIMIZE delta.`{log.path}`")
    assert delta.files(log.spark, log.path).count() < len(SIZES) - 1


def checkpoint(log: Log) -> None:
    """With Delta's own clean-up after it, as after every hundredth commit."""
    jvm = log.spark._jvm
    assert jvm is not None
    found = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(log.spark._jsparkSession, str(log.path))
    found.checkpoint(delta.snapshot(log.spark, log.path), jvm.scala.Option.empty())


def story(log: Log, build: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A version built from the log's beginning: where each step ended, whether it was a small one,
    how far it then lagged, and in how many ranges the end of it would be rebuilt and certified."""
    feed = open_version(log.path.parents[1], version_of(SALES, build), {"orders": log})
    assert isinstance(feed, MaintainedVersion)
    small: list[bool] = []

    def spy(which: bool, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            small.append(which)
            return call(*given)

        return called

    monkeypatch.setattr(module, "SMALL_RECORDS", 20)
    monkeypatch.setattr(module, "arranged", spy(False, module.arranged))
    monkeypatch.setattr(feed.appender, "write", spy(True, feed.appender.write))
    at, end, told = Standing(), Lags({"orders": log}).end("orders"), []
    for to in cuts(log, 0, log.end(), limit=10):
        at = advance(feed, at, to)
        told.append((at.step, at.position, at.records, end.records - at.records))
    monkeypatch.undo()
    pin = Pin(version=feed.version, position={"orders": at.position}, delta_version=None)
    ranges = chunks(feed, Closed(pin=pin, through=0, records=at.records), ALL, chunk_records=20)
    return [*told, small, len(ranges), at.watermark]


@pytest.mark.faults
def test_a_version_is_built_alike_whatever_clean_up_and_compaction_have_left_of_the_log_s_commits(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = story(log, 1, monkeypatch)

    optimized(log)
    compacted = story(log, 2, monkeypatch)
    cleaned_up(log)
    cleaned = story(log, 3, monkeypatch)

    assert before[:3] == [(1, 3, 9, 53), (2, 4, 49, 13), (3, 7, 58, 4)]
    assert before[4:] == [[True, False, True, True], 4, 8]
    assert compacted == cleaned == before


@pytest.mark.faults
def test_records_are_counted_up_to_any_batch_after_clean_up_and_after_compaction(log: Log) -> None:
    expected = [sum(SIZES[:to]) for to in range(len(SIZES) + 1)]

    cleaned_up(log)
    assert [log.records(to) for to in range(len(SIZES) + 1)] == expected
    optimized(log)
    assert [log.records(to) for to in range(len(SIZES) + 1)] == expected


def test_delta_s_own_clean_up_leaves_the_newest_batch_s_commit_even_of_a_quiet_log(log: Log) -> None:
    """It deletes by age alone: of a topic without a record for days it took what ingest goes on from."""
    for file in (log.path / delta.LOG_FOLDER).iterdir():
        if file.is_file():
            os.utime(file, times=(0, 0))
    optimized(log)

    checkpoint(log)

    assert log.end() == len(SIZES)


def test_rows_that_are_at_hand_are_taken_in_memory_however_many(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = open_version(log.path.parents[1], version_of(SALES, 9), {"orders": log})
    assert isinstance(feed, MaintainedVersion)
    monkeypatch.setattr(module, "SMALL_RECORDS", 0)
    monkeypatch.setattr(module, "arranged", lambda *_: pytest.fail("they are read again"))
    rows = FreshRows(log, log.all(0, 1).select(*COLUMNS).toArrow())

    advance(feed, Standing(), 1, rows)

    expected = feed.definition.partial(log.rows(0, 1))
    assert expected.count() and not feed.rows().drop(SEGMENT).exceptAll(expected).count()


def test_fresh_rows_have_nothing_in_a_field_that_their_record_has_gained_since(log: Log) -> None:
    sent = pa.struct([("after", pa.struct([("id", pa.int32())]))])
    events = pa.array([{"after": {"id": 7}}, {"after": None}], sent)
    read = {"after": "struct<in:struct<a:string>,id:int>"}
    rows = pa.table({**dict.fromkeys(FROM_LOG, [None] * 2), "verdict": [VALID] * 2, "event": events})

    file = FreshRows(log, rows).file(read)

    with pa.memory_map(str(file.path)) as written:
        found = pa.ipc.open_stream(written).read_all().column("event").to_pylist()
    assert found == [{"after": {"in": None, "id": 7}}, {"after": None}]


def test_the_index_of_ids_reads_the_files_that_may_have_them(log: Log) -> None:
    batches = log.all(0, log.end()).selectExpr("batch", "unix_micros(timestamp) AS at").toArrow().to_pylist()
    newest = max(row["at"] for row in batches)

    assert set(log.files_since(0)) == {unquote(path) for path in log.appender.files()}
    for since in (newest, newest - 60_000_000):
        kept = log.rows_of(log.files_since(since)).where(f"unix_micros(_timestamp) >= {since}").count()
        assert kept == log.rows(0, log.end()).where(f"unix_micros(_timestamp) >= {since}").count()
    assert not log.files_since(newest + 1_001_000)

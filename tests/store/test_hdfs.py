"""A lake's place in a real HDFS: the rules of every store, Python and Spark at one table, who is let in."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.lake.stores import RULES
from tests.store.hdfs import Hdfs
from twinlake.base.errors import BusyError, UnreachableError
from twinlake.base.location import Location, Remote
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.delta.ledger import Ledger
from twinlake.lake.storage import store
from twinlake.lake.storage.fit import check_store
from twinlake.reading.live import LiveTables
from twinlake.server import lease

COMMITS = 30


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_hdfs(rule: Callable[[Location], None], lake: Remote) -> None:
    rule(lake)


def test_of_python_and_the_jvm_one_has_a_commit(spark: SparkSession, lake: Remote) -> None:
    """Delta's own store of Spark's commits, and ours; each writes what it is into the file."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    settings = session.sessionState().newHadoopConf()
    delta_store = jvm.io.delta.storage.HDFSLogStore(settings)
    store.make_folder(lake)
    begin = threading.Barrier(4)

    def publish(writer: int) -> list[int]:
        won = []
        for number in range(COMMITS):
            begin.wait()
            if writer % 2:
                if store.put_if_absent(delta.commit_file(lake, number), f"{writer}\n"):
                    won.append(number)
                continue
            line = jvm.java.util.ArrayList()
            line.add(str(writer))
            path = jvm.org.apache.hadoop.fs.Path(str(delta.commit_file(lake, number)))
            try:
                delta_store.write(path, line.iterator(), False, settings)
                won.append(number)
            except Exception as error:
                assert "FileAlreadyExists" in str(error)
        return won

    with ThreadPoolExecutor(4) as pool:
        won = [*pool.map(publish, range(4))]

    assert sorted(number for numbers in won for number in numbers) == [*range(COMMITS)]
    for writer, numbers in enumerate(won):
        assert {store.read_text(delta.commit_file(lake, number)) for number in numbers} <= {f"{writer}\n"}


def test_appends_and_sparks_commits_to_one_table_lose_nothing(spark: SparkSession, lake: Remote) -> None:
    table = lake / "tables" / "t"
    schema = spark.sql("SELECT 1L a, 1L _segment").schema
    delta.create(spark, table, schema, {"delta.checkpointInterval": "10"}, ["_segment"])

    def by_us(first: int) -> None:
        mine = Appender(table, [("a",)])
        for number in range(1, COMMITS + 1):
            added = mine.write(pa.table({"a": [first + number]}), {"_segment": "1"})
            mine.commit(added, f"us{first}", number, {"position": number})

    def by_spark() -> None:
        for number in range(1, 6):
            rows = spark.createDataFrame([(number, 2)], schema)
            delta.append(rows, table, "spark", number, {"position": number})

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(by_us, 1_000), pool.submit(by_us, 2_000), pool.submit(by_spark)]:
            done.result()

    expected = [*range(1, 6), *range(1_001, 1_001 + COMMITS), *range(2_001, 2_001 + COMMITS)]
    read = spark.read.format("delta").load(str(table))
    assert sorted(row.a for row in read.collect()) == expected
    assert sorted(DeltaTable(str(table)).to_pyarrow_table()["a"].to_pylist()) == expected
    live = spark.sql(f"SELECT * FROM {LiveTables(spark).relation_sql(table)}")
    assert sorted(row.a for row in live.collect()) == expected
    assert delta.newest_version(table) == 2 * COMMITS + 5


def test_a_reader_follows_commits_one_by_one(spark: SparkSession, lake: Remote) -> None:
    table = lake / "tables" / "t"
    delta.create(spark, table, spark.sql("SELECT 1L a").schema)
    live, mine = LiveTables(spark), Appender(table, [("a",)])
    relation = live.relation_sql(table)

    for number in range(1, 5):
        mine.commit(mine.write(pa.table({"a": [number]})), "us", number, {})

        found = spark.sql(f"SELECT max(a) FROM {relation}").collect()
        assert found[0][0] == number
    live.close(table)


def test_ledgers_and_the_release_log_are_kept_there(lake: Remote) -> None:
    facts = Ledger(lake / "runs", pa.schema([("number", pa.int64())]))
    assert facts.rows() == []

    for number in range(210):
        facts.append([{"number": number}])
    assert facts.compact()

    again = Ledger(lake / "runs", facts.schema)
    assert sorted(row["number"] for row in again.rows()) == [*range(210)]
    first = Release(number=1, kind="initial", tables={"t": "v"}, created_at="now", approved_by="test")
    assert release_log.commit(lake, first) == release_log.live(lake) == first


def test_a_ledger_goes_on_beside_what_a_killed_writer_has_left(lake: Remote) -> None:
    facts = Ledger(lake / "runs", pa.schema([("number", pa.int64())]))
    facts.append([{"number": 1}])
    log = lake / "runs" / delta.LOG_FOLDER
    for number in (2, 3):  # deltalake gives a commit its name when it is whole
        store.replace(log / f".{number:020d}.json.tmp.1", "torn")

    facts.append([{"number": 2}])
    facts.append([{"number": 3}])

    assert sorted(row["number"] for row in facts.rows()) == [1, 2, 3]


def test_a_server_may_be_in_it_and_a_second_one_is_refused(lake: Remote) -> None:
    check_store(lake, datetime.now(UTC))
    held = lease.take(lake, beat_s=0.1, silent_s=3)

    with pytest.raises(BusyError, match=f"process {os.getpid()} on"):
        lease.take(lake, beat_s=0.1, silent_s=3)
    held.close()
    lease.take(lake, beat_s=0.1, silent_s=3).close()


def test_who_may_only_read_cannot_write(lake: Remote) -> None:
    store.replace(lake / "one", "1")
    code = (
        "import sys; from twinlake.lake.storage import store; from twinlake.base.location import Remote; "
        f"file = Remote({str(lake / 'one')!r}); assert store.read_text(file) == '1'; store.replace(file, '2')"
    )
    environ = {**os.environ, "HADOOP_USER_NAME": "nobody"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)

    assert done.returncode == 1 and "Permission denied: user=nobody, access=WRITE" in done.stderr
    assert store.read_text(lake / "one") == "1"


def test_a_store_that_does_not_answer_is_told_in_words() -> None:
    began = time.monotonic()

    with pytest.raises(UnreachableError, match="cannot be written"):
        check_store(Remote("hdfs://127.0.0.1:1/lake"), datetime.now(UTC))
    assert time.monotonic() - began < 60


def test_a_quota_that_is_used_up_is_told_as_a_full_disk(hdfs: Hdfs, lake: Remote) -> None:
    from twinlake.base.errors import FullDiskError

    store.make_folder(lake)
    hdfs.quota(lake, names=3)

    with pytest.raises(FullDiskError, match="has no room"):
        for number in range(5):
            store.replace(lake / str(number), "x")

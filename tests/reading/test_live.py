"""Live tables: after every sort of commit the rows that Delta tells, and no file left out wrongly."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.reading.conftest import Released, SqlServer
from twinlake.base.errors import ChangedTableError
from twinlake.base.waiting import wait_for
from twinlake.lake.delta import checkpoints, delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.delta.table_state import whole_checkpoints
from twinlake.reading.live import LiveTables

DDL = "id bigint, name string, at timestamp, day date, small int, weight double, inner struct<id: bigint>"
PRUNING = [("id",), ("name",), ("at",), ("day",), ("small",), ("weight",), ("inner", "id")]
ARROW = pa.schema([
    ("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()),
    ("small", pa.int32()), ("weight", pa.float64()), ("inner", pa.struct([("id", pa.int64())])),
])  # fmt: skip
EARLY = datetime(1969, 12, 31, 23, 59, 59, 999_001, tzinfo=UTC)


def rows(*ids: int | None) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in ids], ARROW)


def row(number: int | None) -> dict[str, Any]:
    if number is None:
        return dict.fromkeys(ARROW.names)
    far = {998: datetime(1, 1, 1, tzinfo=UTC), 1000: datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)}
    return {
        "id": number, "name": f"n{number}", "at": far.get(number, EARLY + timedelta(microseconds=number)),
        "day": date(1970, 1, 1) + timedelta(days=number), "small": -number, "weight": number / 4,
        "inner": {"id": number},
    }  # fmt: skip


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    path = tmp_path / "a table of ünits"
    names = ",".join(".".join(column) for column in PRUNING)
    delta.create(
        spark,
        path,
        StructType.fromDDL(f"{DDL}, part int"),
        {"delta.dataSkippingStatsColumns": names},
        ("part",),
    )
    return path


@pytest.fixture
def live(spark: SparkSession, table: Path) -> Iterator[Callable[[], DataFrame]]:
    """Reads the table as views do."""
    tables = LiveTables(spark)

    def read() -> DataFrame:
        jvm: Any = spark._jvm
        plan = jvm.twinlake.reading.LiveTable.relation(str(table))
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)

    tables.relation_sql(table)
    read.tables = tables  # type: ignore[attr-defined]
    yield read
    tables.close(table)


def add(appender: Appender, txn: int, *ids: int | None, part: int = 1) -> None:
    appender.commit(appender.write(rows(*ids), {"part": str(part)}), "me", txn, {"kind": "step", "n": txn})


def ids(read: DataFrame) -> list[int]:
    return sorted(found.id for found in read.select("id").collect())


def test_every_sort_of_commit_is_seen_by_the_next_statement(
    spark: SparkSession, table: Path, live: Callable[[], DataFrame]
) -> None:
    appender = Appender(table, PRUNING)
    assert ids(live()) == []
    add(appender, 1, 1, 2)
    assert ids(live()) == [1, 2]
    add(appender, 2)  # a close
    add(appender, 3, 3, part=2)
    assert ids(live()) == [1, 2, 3]
    old = [path for path in appender.files() if path.startswith("part=1/")]
    merged = appender.write(rows(1, 2), {"part": "1"})
    appender.commit(merged, "me:merge", 1, {"kind": "merge"}, removed=old)
    assert ids(live()) == [1, 2, 3]
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert ids(live()) == [1, 2, 3]
    frame = spark.read.format("delta").load(str(table)).where("id = 1")
    delta.replace(frame, table, "part = 1", "me:batch", 1, {"kind": "rebuild"})
    assert ids(live()) == [1, 3]
    whole = spark.read.format("delta").load(str(table)).drop("part")
    assert live().columns == whole.columns and sorted(live().collect()) == sorted(whole.collect())


def test_columns_that_were_added_are_there_and_empty_before(
    spark: SparkSession, table: Path, live: Callable[[], DataFrame]
) -> None:
    add(Appender(table, PRUNING), 1, 1)
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (later string)")
    spark.sql(f"INSERT INTO delta.`{table}` (id, later, part) VALUES (2, 'b', 1)")

    assert {found.id: found.later for found in live().collect()} == {1: None, 2: "b"}


def test_what_falls_behind_its_commits_begins_anew(table: Path, live: Any) -> None:
    appender = Appender(table, PRUNING)
    for txn in range(1, 6):
        add(appender, txn, txn)
    checkpoints.make(table)
    log = table / delta.LOG_FOLDER
    wait_for("a checkpoint", lambda: any(whole_checkpoints(log)) or None, 20)
    for version in range(5):
        delta.commit_file(log, version).unlink()  # a machine that slept for days
    live.tables.follow()

    assert ids(live()) == [1, 2, 3, 4, 5]


def test_only_open_tables_can_be_read_and_none_that_needs_another_reader(
    spark: SparkSession, table: Path, live: Any
) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    with pytest.raises(ChangedTableError, match="cannot be read"):
        live.tables.follow()
    live.tables.close(table)
    with pytest.raises(UnsupportedOperationException, match="reached through the views only"):
        live()


def test_small_and_large_files_are_read_alike_the_first_time_and_from_memory(
    spark: SparkSession, table: Path, live: Callable[[], DataFrame]
) -> None:
    appender = Appender(table, PRUNING)
    for txn, some in enumerate([range(3), range(3, 20_000), [None, 20_000]], start=1):
        add(appender, txn, *some)
    whole = spark.read.format("delta").load(str(table))
    for columns in (["id"], ["inner.id", "name"], ["at", "weight"], ["*"], ["id"]):
        for _ in range(2):
            expected = whole.drop("part").select(*columns)
            found = live().select(*columns)
            assert found.exceptAll(expected).isEmpty() and expected.exceptAll(found).isEmpty(), columns
    assert live().count() == 20_002
    with ThreadPoolExecutor(4) as readers:
        seen = list(readers.map(lambda _: ids(live().where("id < 3 OR name > 'n1999'")), range(8)))
    assert seen == [[n for n in range(20_001) if n < 3 or f"n{n}" > "n1999"]] * 8


def test_a_table_that_only_its_writer_cannot_go_on_with_is_read_on(
    spark: SparkSession, table: Path, live: Any
) -> None:
    add(Appender(table, PRUNING), 1, 1)
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = true)")
    with pytest.raises(ChangedTableError, match="cannot be appended to"):
        Appender(table, PRUNING)
    live.tables.follow()

    assert ids(live()) == [1]


def test_a_statement_waits_while_a_table_begins_anew(table: Path, live: Any) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1)
    assert ids(live()) == [1]
    log = table / delta.LOG_FOLDER
    add(appender, 2, 2)
    checkpoints.make(table)
    wait_for("a checkpoint", lambda: any(whole_checkpoints(log)) or None, 20)
    for version in range(2):
        delta.commit_file(log, version).unlink()
    delta.commit_file(log, 2).rename(log / "slept")
    with pytest.raises(Py4JJavaError, match="is being read again"):
        live()
    (log / "slept").rename(delta.commit_file(log, 2))
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(live)
        live.tables.follow()
        assert ids(waiting.result()) == [1, 2]


def test_a_table_that_was_deleted_is_followed_no_more(table: Path, live: Any) -> None:
    shutil.rmtree(table)
    live.tables.follow()
    with pytest.raises(UnsupportedOperationException, match="reached through the views only"):
        live()


CONDITIONS = [
    "id = 5", "5 = id", "id <=> 5", "id < 5", "5 > id", "id <= 5", "id > 5", "5 < id", "id >= 5", "id <> 5",
    "id IS NULL", "NOT id > 5", "id IN (1, 9)", f"id IN ({', '.join(map(str, range(2, 40, 2)))})",
    "id = 1 OR small = -9", "id > 2 AND small > -4", "id > 8 OR name = 'n1'", "id IN (1, NULL)", "id = NULL",
    "inner.id = 5", "inner.id >= 9", "small < -8", "small = 0", "weight > 2.1", "name > 'n8'", "name = 'n3'",
    "day = DATE'1970-01-06'", "day < DATE'1970-01-03'", "at = TIMESTAMP'1970-01-01 00:00:00'",
    "at > TIMESTAMP'1970-01-01 00:00:00.000005'", "at < TIMESTAMP'1969-12-31 23:59:59.999003'",
    "at <= TIMESTAMP'1969-12-31 23:59:59.999003'", "at > TIMESTAMP'2400-01-01'",
    "at > TIMESTAMP'9999-12-31 23:59:59.9995'", "at > TIMESTAMP'+10000-01-01'", "at < TIMESTAMP'1500-01-01'",
    "at < TIMESTAMP'0001-01-02'", "cast(id AS string) = '5'", "id + 1 = 6", "id % 2 = 0",
]  # fmt: skip


@pytest.mark.parametrize("writes", ["appender", "spark"])
def test_files_are_left_out_by_their_statistics_and_no_row_is_lost(
    spark: SparkSession, table: Path, live: Callable[[], DataFrame], writes: str
) -> None:
    appender = Appender(table, PRUNING)
    for txn, some in enumerate([(0, 1), (2, 3), (4, 5, None), (None,), (6, 7), (8, 9), (998, 1000)], start=1):
        if writes == "appender":
            add(appender, txn, *some)
        else:
            frame = spark.createDataFrame(rows(*some)).selectExpr("*", "1 AS part").coalesce(1)
            delta.append(frame, table, "me", txn, {}, ("part",))
    whole = spark.createDataFrame(rows(None, None, *range(10), 998, 1000)).cache()
    for condition in CONDITIONS:
        found = live().where(condition)
        assert sorted(found.select("id").collect(), key=str) == sorted(
            whole.where(condition).select("id").collect(), key=str
        ), condition

    for condition, read in {
        "id > 8": 3,
        "id = 5 AND inner.id = 5": 2,
        "day >= DATE'1970-01-09'": 3,
        "small IN (0, -7)": 3,
        "at < TIMESTAMP'1969-12-31 23:59:58'": 2,
        "id = 1 OR id = 8": 3,
        "id % 10 = 5": 7,
        "id >= 0": 7,
    }.items():  # the file of nothing but NULL is always read
        assert files_read(live().where(condition)) == read, condition


def files_read(read: DataFrame) -> int:
    plan: Any = read._jdf.queryExecution().executedPlan()
    return int(plan.collectLeaves().head().selectedPartitions().totalNumberOfFiles())


def test_a_statement_sees_a_table_at_one_version_however_often_it_names_it(
    spark: SparkSession, sql: SqlServer, released: Released
) -> None:
    fed = replace(released.all_orders, fingerprint="f" * 12, build=99)
    fed.save(released.lake)
    path = fed.path(released.lake)
    state = spark.read.format("delta").load(str(released.all_orders.path(released.lake)))
    delta.append(state, path, "test", 1, {"kind": "step", "step": 1}, ("_segment",))
    appender, rows = Appender(path, [("window_start",)]), state.drop("_segment").limit(1).toArrow()
    release = released.promote(fed)
    view = f"release_{release.number}.sales_per_region"
    sql.wait_until(lambda status: status["release"] == release.number)
    done = threading.Event()

    def feed() -> None:
        for txn in count(2):
            if done.wait(0.02):
                return
            appender.commit(
                appender.write(rows, {"_segment": "0"}), "test", txn, {"kind": "step", "step": txn}
            )

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        one, two = (f"(SELECT sum(orders) FROM {view}) AS {name}" for name in ("one", "two"))
        seen = [sql.rows(f"SELECT {one}, {two}")[0] for _ in range(20)]
    finally:
        done.set()
        feeder.join()
        back = released.promote(released.all_orders)
        sql.wait_until(lambda status: status["release"] == back.number)
    totals = [found["one"] for found in seen]
    assert [found["two"] for found in seen] == totals
    assert totals == sorted(totals) and len(set(totals)) > 15, "each sees what was committed before it"

"""Appends by put-if-absent, on real tables that Spark and others write to and read as well."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset
from pyspark.sql import SparkSession

from tests.damages import forget
from tests.longer import some
from twinlake.base.errors import ChangedTableError, DamagedError, SilentSkipError
from twinlake.base.waiting import wait_for
from twinlake.lake.delta import checkpoints, data_file, delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.storage.store import put_if_absent

DDL = "id bigint, name string, price decimal(20, 2), at timestamp, day date, weight double, part int"
PRUNING = [("id",), ("name",), ("price",), ("at",), ("day",), ("weight",)]
ARROW = pa.schema([
    ("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(20, 2)),
    ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("weight", pa.float64()),
])  # fmt: skip
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def rows(*ids: int) -> pa.Table:
    found = [
        {"id": number, "name": f"n{number}", "price": Decimal(f"{number}.10"), "at": MOMENT,
         "day": date(2026, 1, 2), "weight": number / 4}
        for number in ids
    ]  # fmt: skip
    return pa.Table.from_pylist(found, ARROW)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """An empty table whose statistics are those of a version's table."""
    from pyspark.sql.types import StructType

    path = tmp_path / "t"
    properties = {"delta.dataSkippingStatsColumns": ",".join(name for (name,) in PRUNING)}
    delta.create(spark, path, StructType.fromDDL(DDL), properties, ("part",))
    return path


def add(appender: Appender, txn: int, *ids: int, part: int = 1) -> None:
    appender.commit(appender.write(rows(*ids), {"part": str(part)}), "me", txn, {"kind": "step", "n": txn})


def ids(spark: SparkSession, path: Path) -> list[int]:
    """What Spark, deltalake, polars and DuckDB read alike."""
    read = [row.id for row in spark.read.format("delta").load(str(path)).orderBy("id").collect()]
    known = DeltaTable(str(path))
    assert sorted(known.to_pyarrow_table().column("id").to_pylist()) == read
    assert polars.read_delta(str(path)).sort("id")["id"].to_list() == read
    if files := known.file_uris():
        found = duckdb.sql(f"SELECT id FROM read_parquet({files}) ORDER BY id").fetchall()
        assert [row[0] for row in found] == read
    return read


def parquet(folder: Path, *ids: int) -> Path:
    """A data file that was written by somebody else."""
    pq.write_table(rows(*ids), folder / "written.parquet")
    return folder / "written.parquet"


def newest(table: Path) -> list[dict[str, Any]]:
    """The actions of the newest commit."""
    return delta.actions(table / delta.LOG_FOLDER, delta.newest_version(table)) or []


@pytest.mark.faults
def test_everybody_reads_what_every_sort_of_commit_has_left(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1, 2)
    assert ids(spark, table) == [1, 2]
    add(appender, 2)  # a close
    assert ids(spark, table) == [1, 2]
    frame = spark.createDataFrame(rows(3).to_pandas()).selectExpr(
        "id", "name", "cast(price as decimal(20, 2)) price", "at", "day", "weight", "1 AS part"
    )
    delta.append(frame, table, "me", 3, {"kind": "step", "n": 3}, ("part",))
    add(appender, 4, 4, part=2)
    assert ids(spark, table) == [1, 2, 3, 4]
    spark.sql(f"OPTIMIZE delta.`{table}`")
    add(appender, 5, 5, part=2)
    assert ids(spark, table) == [1, 2, 3, 4, 5]
    delta.replace(frame, table, "part = 1", "me:batch", 1, {"kind": "merge"})
    add(appender, 6, 6, part=2)
    assert ids(spark, table) == [3, 4, 5, 6]
    gone = [path for path in appender.files() if path.startswith("part=2")]
    adopted = appender.adopt([parquet(tmp_path, 7, 8)], {"part": "2"})
    appender.commit(adopted, "me:batch", 2, {"kind": "rebuild"}, gone, same=False)
    (tmp_path / "written.parquet").unlink()
    assert ids(spark, table) == [3, 7, 8]
    changes = [action["add"]["dataChange"] for action in newest(table) if "add" in action]
    assert changes == [True] and delta.commit(table, delta.newest_version(table)).added
    appender.commit(appender.write(rows(7, 8), {"part": "2"}), "me:batch", 3, {}, [adopted[0]["path"]])
    assert [action["remove"]["dataChange"] for action in newest(table) if "remove" in action] == [False]
    assert ids(spark, table) == [3, 7, 8]
    add(appender, 7)
    assert appender.transaction("me") == 7 and appender.transaction("me:batch") == 3
    assert delta.newest_metadata(table) == {"kind": "step", "n": 7}
    assert Appender(table, PRUNING).transaction("me") == 7


def test_a_file_that_is_adopted_has_the_statistics_of_one_that_is_written(
    table: Path, tmp_path: Path
) -> None:
    written, adopted = Appender(table, PRUNING), Appender(table, PRUNING)

    [one] = written.write(rows(3, 1, 2), {"part": "1"})
    [other] = adopted.adopt([parquet(tmp_path, 3, 1, 2)], {"part": "1"})

    assert other["stats"] == one["stats"] and other["partitionValues"] == one["partitionValues"]
    assert (table / other["path"]).stat().st_ino == (tmp_path / "written.parquet").stat().st_ino


def test_a_file_that_spark_wrote_is_adopted_from_another_disk_too_and_is_new_there(
    spark: SparkSession, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    written = Appender(table, PRUNING)
    [one] = written.write(rows(5, 3, 4), {"part": "1"})
    spark.read.parquet(str(table / one["path"])).coalesce(1).write.parquet(str(tmp_path / "spark"))
    [file] = (tmp_path / "spark").glob("*.parquet")
    os.utime(file, (0, 0))
    monkeypatch.setattr(data_file, "BATCH_ROWS", 2)
    monkeypatch.setattr(os, "link", across)
    [other] = written.adopt([file], {"part": "1"})
    monkeypatch.undo()

    assert other["stats"] == one["stats"]
    assert time.time() - (table / other["path"]).stat().st_mtime < 60  # VACUUM leaves it alone
    written.commit([other], "me", 1, {})
    assert ids(spark, table) == [3, 4, 5]


def test_what_is_not_finite_in_a_part_of_a_file_has_no_bounds_in_all_of_it(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows(1, 2, 3, 4)
    weights = pa.array([1.0, math.nan, None, 4.0])
    pq.write_table(found.set_column(5, "weight", weights), tmp_path / "some.parquet")
    monkeypatch.setattr(data_file, "BATCH_ROWS", 1)

    [told] = Appender(table, PRUNING).adopt([tmp_path / "some.parquet"], {"part": "1"})

    stats = json.loads(told["stats"])
    assert (stats["numRecords"], stats["nullCount"]["weight"], stats["maxValues"]["id"]) == (4, 1, 4)
    assert "weight" not in stats["minValues"]


@pytest.mark.parametrize("maker", ["ours", "Spark's"])
def test_transactions_and_columns_outlive_commit_files_behind_a_checkpoint(
    spark: SparkSession, table: Path, maker: str
) -> None:
    appender = Appender(table, PRUNING)
    for txn in range(1, checkpoints.EVERY_COMMITS + 1):
        add(appender, txn, txn)
    folder = table / delta.LOG_FOLDER
    checkpoint = folder / f"{checkpoints.EVERY_COMMITS:020d}.checkpoint.parquet"
    hint = folder / "_last_checkpoint"  # written after the checkpoint, beside the test
    wait_for("the checkpoint and its hint", lambda: hint.exists() or None, 60)
    if maker == "Spark's":
        checkpoint.unlink()
        hint.unlink()
        delta.snapshot(spark, table).deltaLog().checkpoint()
        assert checkpoint.exists()
    for file in folder.glob("*.json"):
        if int(file.stem) < checkpoints.EVERY_COMMITS:
            file.unlink()

    again = Appender(table, PRUNING)
    assert again.table_id == appender.table_id
    assert again.transaction("me") == checkpoints.EVERY_COMMITS
    add(again, checkpoints.EVERY_COMMITS + 1, 0)
    forget(spark)
    assert ids(spark, table) == [*range(checkpoints.EVERY_COMMITS + 1)]


@pytest.mark.parametrize("txn", [1, 3])
def test_a_transaction_that_is_not_the_next_one_is_refused(table: Path, txn: int) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1)

    with pytest.raises(SilentSkipError, match=f"transaction {txn}") as refused:
        add(appender, txn, 2)
    assert delta.newest_version(table) == 1
    assert "restart the lake server, it reads the last transaction again" in refused.value.remedy
    add(Appender(table, PRUNING), 2, 2)


def test_a_table_that_somebody_has_altered_is_refused_until_it_is_opened_again(
    spark: SparkSession, table: Path
) -> None:
    appender = Appender(table, PRUNING)
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (more string)")

    for _ in range(2):
        with pytest.raises(ChangedTableError, match="altered"):
            add(appender, 1, 1)
    add(Appender(table, PRUNING), 1, 1)
    assert spark.read.format("delta").load(str(table)).select("more").first() == (None,)


def test_a_table_with_features_that_are_not_written_is_refused(spark: SparkSession, table: Path) -> None:
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")

    with pytest.raises(ChangedTableError, match="deletionVectors"):
        Appender(table, PRUNING)


def test_a_torn_checkpoint_is_passed_over(table: Path, tmp_path: Path) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1)
    folder = table / delta.LOG_FOLDER
    checkpoints._make(table)
    whole = (folder / f"{1:020d}.checkpoint.parquet").read_bytes()
    add(appender, 2, 2)
    (folder / f"{2:020d}.checkpoint.parquet").write_bytes(whole[: len(whole) // 2])

    again = Appender(table, PRUNING)

    assert again.transaction("me") == 2 and len(again.files()) == 2


def test_an_appender_that_lies_behind_cleaned_up_commits_begins_anew(table: Path) -> None:
    idle, busy = Appender(table, PRUNING), Appender(table, PRUNING)
    for txn in (1, 2, 3):
        add(busy, txn, txn)
    checkpoints._make(table)
    add(busy, 4, 4)
    folder = table / delta.LOG_FOLDER
    for version in (0, 1, 2):
        (folder / f"{version:020d}.json").unlink()

    add(idle, 5, 5)

    assert idle.files().keys() == Appender(table, PRUNING).files().keys() and len(idle.files()) == 5
    (folder / f"{4:020d}.json").unlink()
    with pytest.raises(DamagedError, match=f"{4:020d}.json"):
        Appender(table, PRUNING)


@pytest.mark.parametrize("text", some(["a\u2028b", "\u2029", "\u0085", "\x1c", "\U0010ffff"], 2))
def test_any_text_may_stand_in_statistics(spark: SparkSession, table: Path, text: str) -> None:
    appender = Appender(table, PRUNING)
    odd = rows(1).set_column(1, "name", pa.array([text]))
    appender.commit(appender.write(odd, {"part": "1"}), "me", 1, {"kind": text})
    frame = spark.createDataFrame([(2, text, 1)], "id bigint, name string, part int")
    delta.append(frame, table, "me", 2, {"kind": text}, ("part",))

    assert Appender(table, PRUNING).transaction("me") == 2
    assert delta.newest_metadata(table) == {"kind": text}
    assert ids(spark, table) == [1, 2]
    found = spark.read.format("delta").load(str(table)).where(f"name = '{text}'")
    assert found.count() == 2


def test_days_after_the_year_9999_have_no_statistics() -> None:
    day = pa.array([2_932_897], pa.int32()).cast(pa.date32())

    told = json.loads(data_file.statistics_text(pa.table({"day": day}), [("day",)]))

    assert told == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {"day": 0}}


RACER = """
import sys
from pathlib import Path
from twinlake.lake.delta.appender import Appender
appender = Appender(Path(sys.argv[1]), [])
print("ready", flush=True)
sys.stdin.read(1)
for txn in range(1, 201):
    appender.commit([], sys.argv[2], txn, {})
"""


def test_writers_of_many_processes_lose_no_commit(spark: SparkSession, table: Path) -> None:
    """Two processes, two threads of this one, and Spark's own writer."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(table), f"process {n}"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip

    def race(app_id: str) -> None:
        appender = Appender(table, PRUNING)
        for txn in range(1, 201):
            appender.commit([], app_id, txn, {})

    threads = [threading.Thread(target=race, args=(f"thread {n}",)) for n in range(2)]
    for racer in racers:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("g")
        racer.stdin.close()
    for thread in threads:
        thread.start()
    frame = spark.range(1).selectExpr("id", "1 AS part")
    for txn in range(1, 6):
        delta.append(frame, table, "spark", txn, {}, ("part",))
    for thread in threads:
        thread.join()
    assert [racer.wait(60) for racer in racers] == [0, 0]

    state = Appender(table, PRUNING)
    assert state.transaction("spark") == 5
    assert {state.transaction(f"{kind} {n}") for kind in ("process", "thread") for n in range(2)} == {200}
    assert delta.newest_version(table) == 4 * 200 + 5
    assert not list((table / delta.LOG_FOLDER).glob("*.tmp"))


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    assert put_if_absent(tmp_path / "f", "first") is True
    assert put_if_absent(tmp_path / "f", "second") is False
    assert [file.name for file in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_text() == "first"


def test_the_checksum_file_says_what_spark_finds(spark: SparkSession, table: Path) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1, 2)
    add(appender, 2, 3)

    told = json.loads((table / delta.LOG_FOLDER / f"{2:020d}.crc").read_text())
    snapshot = delta.snapshot(spark, table)
    state = snapshot.computedState()
    assert (told["numFiles"], told["tableSizeBytes"]) == (state.numOfFiles(), state.sizeInBytes())
    assert told["setTransactions"][0]["version"] == 2
    assert snapshot.checksumOpt().isDefined() and snapshot.validateChecksum(
        getattr(getattr(spark._jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()  # type: ignore[union-attr]
    )


def test_a_checksum_file_of_a_commit_that_a_backup_lacks_is_written_anew(
    spark: SparkSession, table: Path
) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1, 2)
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN later bigint")
    commit = delta.commit_file(table / delta.LOG_FOLDER, 2)
    for file in (commit, commit.with_name(f".{commit.name}.crc")):  # 2.crc was copied before them
        file.unlink(missing_ok=True)
    delta._known.clear()  # as another process finds it
    forget(spark)

    add(Appender(table, PRUNING), 2, 3)
    forget(spark)

    assert "later" not in delta.rows(spark, table).columns
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN later bigint")
    assert ids(spark, table) == [1, 2, 3] and "later" in Appender(table, PRUNING).schema().names


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
ANY_ROW = st.fixed_dictionaries({
    "id": st.none() | st.integers(-(2**63), 2**63 - 1),
    "name": st.none() | TEXTS,
    "price": st.none() | st.decimals(-(10**17), 10**17, places=2),
    "at": st.none() | MOMENTS,
    "day": st.none() | st.dates(),
    "weight": st.none() | st.floats(width=64),
})  # fmt: skip


def told_value(text: Any, name: str) -> Any:
    if name == "at":
        return datetime.fromisoformat(text)
    return date.fromisoformat(text) if name == "day" else text


@given(st.lists(ANY_ROW, min_size=1, max_size=8))
def test_no_value_is_outside_of_the_statistics(found: list[dict[str, Any]]) -> None:
    told = json.loads(
        data_file.statistics_text(pa.Table.from_pylist(found, ARROW), PRUNING), parse_float=Decimal
    )

    assert told["numRecords"] == len(found)
    for (name,) in PRUNING:
        values = [row[name] for row in found if row[name] is not None]
        assert told["nullCount"][name] == len(found) - len(values)
        if name in told["minValues"]:
            low, high = (told_value(told[which][name], name) for which in ("minValues", "maxValues"))
            if name == "name":
                low, high, values = low.encode(), high.encode(), [value.encode() for value in values]
            if name == "weight":
                low, high = float(low), float(high)
            assert all(low <= value <= high for value in values)
        else:
            assert not values or (name == "weight" and not all(map(math.isfinite, values)))


@pytest.mark.parametrize("text", ["a", "𠮷野家", "\U0010ffff", "z" * 40, "é" * 33, "😀", "'"])
@pytest.mark.parametrize("weight", [1.5, -0.0, 1e300])
def test_other_engines_find_a_row_by_every_column_that_prunes(
    tmp_path: Path, text: str, weight: float
) -> None:
    path = tmp_path / "t"
    DeltaTable.create(str(path), ARROW)
    found = rows(1).set_column(1, "name", pa.array([text])).set_column(5, "weight", pa.array([weight]))
    appender = Appender(path, PRUNING)
    appender.commit(appender.write(found), "me", 1, {})

    for _ in range(2):  # from the commit, then from a checkpoint
        known = DeltaTable(str(path))
        for name in ("name", "weight", "id", "price", "at"):
            value = found.column(name)[0].as_py()
            assert polars.scan_delta(str(path)).filter(polars.col(name) == value).collect().height == 1
            assert known.to_pyarrow_dataset().to_table(filter=dataset.field(name) == value).num_rows == 1
        checkpoints._make(path)


def test_spark_finds_a_row_by_every_column_that_prunes(spark: SparkSession, table: Path) -> None:
    appender = Appender(table, PRUNING)
    add(appender, 1, 1)
    add(appender, 2, 2, 3)

    read = spark.read.format("delta").load(str(table))
    for condition in (
        "id = 3", "name = 'n3'", "price = 3.10", "at = TIMESTAMP '2026-01-02 03:04:05.678901' AND id = 3",
        "day = DATE '2026-01-02' AND id = 3", "weight = 0.75",
    ):  # fmt: skip
        assert [row.id for row in read.where(condition).collect()] == [3]

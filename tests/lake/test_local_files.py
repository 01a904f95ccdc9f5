"""Hadoop's and Delta's local files through the project's own classes, in the session of production."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from twinlake.base.errors import UsageError
from twinlake.base.location import Remote
from twinlake.base.waiting import wait_for
from twinlake.lake.delta import delta


def jvm_of(spark: SparkSession) -> Any:
    assert spark._jvm is not None
    return spark._jvm


def settings_of(spark: SparkSession) -> JavaObject:
    return spark._jsc.hadoopConfiguration()


@pytest.fixture
def store(spark: SparkSession) -> JavaObject:
    return jvm_of(spark).twinlake.lake.LinkedCommits(settings_of(spark))


def hadoop_path(spark: SparkSession, path: Path) -> JavaObject:
    return jvm_of(spark).org.apache.hadoop.fs.Path(f"file:{path}")


@pytest.mark.faults
def test_no_process_is_started_by_commits_and_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Without Hadoop's native library its own file system starts about nine for every micro-batch."""
    flight = jvm_of(spark).jdk.jfr
    recording = flight.Recording()
    recording.enable("jdk.ProcessStart")
    batches: list[int] = []

    def write(found: DataFrame, number: int) -> None:
        with suppress(Exception):  # the one that is interrupted by the end
            delta.append(found.coalesce(1), tmp_path / "t", "me", number + 1, {})
            batches.append(number)

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    recording.start()
    jvm_of(spark).java.lang.Runtime.getRuntime().exec("true").waitFor()  # what the recording must have seen
    query = (
        source.writeStream.option("checkpointLocation", str(tmp_path / "c")).foreachBatch(write).start()
    )  # fmt: skip
    try:
        wait_for("some batches", lambda: len(batches) > 9 or None, 120)
    finally:
        query.stop()
        recording.stop()
    file = jvm_of(spark).java.io.File(str(tmp_path / "seen.jfr")).toPath()
    recording.dump(file)
    recording.close()

    assert spark.read.format("delta").load(str(tmp_path / "t")).count() >= 100
    started = [event.getString("command") for event in flight.consumer.RecordingFile.readAllEvents(file)]
    # Spark itself starts `getconf` once, and `rm` for the folder of a session that an earlier test has left
    often = Counter(command.split()[0] for command in started)
    assert "true" in often and max(often.values()) < len(batches)


@pytest.mark.parametrize("kind", ["FileSystem", "FileContext"])
def test_a_file_keeps_its_facts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "with space" / "f"
    file.parent.mkdir()
    file.write_bytes(b"12345")
    file.chmod(0o640)
    jvm = jvm_of(spark)
    found = (
        jvm.org.apache.hadoop.fs.FileSystem.get(hadoop_path(spark, file).toUri(), settings_of(spark))
        if kind == "FileSystem"
        else jvm.org.apache.hadoop.fs.FileContext.getFileContext(settings_of(spark))
    )  # fmt: skip
    status = found.getFileStatus(hadoop_path(spark, file))

    assert (status.getLen(), status.isFile(), status.getPermission().toString()) == (5, True, "rw-r-----")
    assert status.getModificationTime() == int(file.stat().st_mtime * 1000)
    assert status.getOwner() == psutil.Process().username()
    found.setPermission(hadoop_path(spark, file), jvm.org.apache.hadoop.fs.permission.FsPermission("604"))
    assert file.stat().st_mode & 0o777 == 0o604
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        found.getFileStatus(hadoop_path(spark, tmp_path / "none"))


def lines(spark: SparkSession, *found: str) -> JavaObject:
    made = jvm_of(spark).java.util.ArrayList()
    for line in found:
        made.add(line)
    return made.iterator()


def test_a_commit_is_not_overwritten_by_spark_either(spark: SparkSession, store: Any, tmp_path: Path) -> None:
    commit = tmp_path / f"{7:020d}.json"
    target = hadoop_path(spark, commit)
    store.write(target, lines(spark, "one", "two"), False, settings_of(spark))

    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        store.write(target, lines(spark, "three"), False, settings_of(spark))
    assert commit.read_text() == "one\ntwo\n"
    store.write(target, lines(spark, "four"), True, settings_of(spark))
    assert commit.read_text() == "four\n"
    assert [file.name for file in tmp_path.iterdir()] == [commit.name]


def test_only_names_asked_for_are_listed_in_order(spark: SparkSession, store: Any, tmp_path: Path) -> None:
    for number in (3, 1, 2):
        (tmp_path / f"{number:020d}.json").write_text("{}")

    listed = store.listFrom(hadoop_path(spark, tmp_path / f"{2:020d}.json"), settings_of(spark))
    assert [listed.next().getPath().getName() for _ in range(2)] == [f"{n:020d}.json" for n in (2, 3)]
    assert not listed.hasNext()
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        store.listFrom(hadoop_path(spark, tmp_path / "none" / "x"), settings_of(spark))


def test_a_session_that_could_overwrite_commits_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    delta.refuse_overwriting_store(other, tmp_path)
    other.conf.set("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")

    with pytest.raises(UsageError, match="LocalLogStore"):
        delta.refuse_overwriting_store(other, tmp_path)


def test_delta_is_left_its_own_store_for_hdfs_and_no_other(spark: SparkSession) -> None:
    lake = Remote("hdfs://namenode:8020/lake")
    other = spark.newSession()
    delta.refuse_overwriting_store(other, lake)
    other.conf.set("spark.delta.logStore.hdfs.impl", "io.delta.storage.LocalLogStore")

    with pytest.raises(UsageError, match="LocalLogStore"):
        delta.refuse_overwriting_store(other, lake)

"""A process whose Spark runs nothing any more says so and ends; one that is busy, or idle, goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.longer import some
from tests.project import PROJECT
from twinlake.base.errors import TwinlakeError
from twinlake.base.waiting import wait_for
from twinlake.spark.jvm import EXIT_CODE
from twinlake.spark.watch import LATE_LOOKS, PROBE_LOOKS, SparkWatch

SERVER = """
import sys, threading
from pathlib import Path
from twinlake.base import service_log
from twinlake.spark.jvm import end_together
from twinlake.config.settings import Settings
from twinlake.spark.session import session
from twinlake.spark.watch import SparkWatch
from tests.breaking import broken

service_log.start()
spark = session(Settings(home=Path(sys.argv[1])), "watched", memory="512m", cores=2)
end_together(spark.sparkContext._gateway.proc)
SparkWatch(spark).begin()
print(spark.range(10).count(), flush=True)
broken(sys.stdin.readline().strip())
threading.Event().wait()
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "why"),
    some([
        ("the executor ends", "its executor has ended"), ("Spark stops", "it has stopped by itself"),
        ("every task fails", "failed one after the other"),
        ("nothing is handed out", "waits beside free places"),
    ]),
)  # fmt: skip
def test_a_process_whose_spark_runs_nothing_any_more_ends_and_says_why(
    way: str, why: str, tmp_path: Path
) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], cwd=PROJECT, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin and server.stdout
    assert server.stdout.readline() == "10\n"
    jvms = [one for one in psutil.Process(server.pid).children() if one.name() == "java"]

    _, said = server.communicate(way + "\n", timeout=180)

    assert server.returncode == EXIT_CODE, said
    (told,) = [json.loads(line) for line in said.splitlines() if '"level": "critical"' in line]
    assert (told["event"], told["exit_code"]) == ("Spark runs nothing any more in this process", EXIT_CODE)
    assert why in told["why"] and "supervisor" in told["remedy"]
    wait_for("the JVM to end", lambda: True if not jvms[0].is_running() else None, 20)


@pytest.fixture
def given_up() -> list[TwinlakeError]:
    return []


def test_an_idle_spark_is_given_one_task_in_a_while_and_goes_on(
    spark: SparkSession, given_up: list[TwinlakeError]
) -> None:
    watch = SparkWatch(spark, given_up.append)
    before = watch._threads.getCompletedTaskCount()

    looked = []
    for _ in range(PROBE_LOOKS + 2):
        looked.append(watch.look())
    wait_for("the watch's task", lambda: watch._task is None or watch._task.isDone() or None, 60)

    assert looked == [""] * len(looked) and watch.error is None
    assert watch.look() == ""
    assert watch._threads.getCompletedTaskCount() == before + 1


def test_a_spark_whose_places_are_all_taken_is_not_taken_for_a_broken_one(
    spark: SparkSession, given_up: list[TwinlakeError]
) -> None:
    """Whether the watch's own task waits for a place already, or is not there yet."""
    watch = SparkWatch(spark, given_up.append)
    places = spark.sparkContext.defaultParallelism
    sleep = "reflect('java.lang.Thread', 'sleep', 20000L)"
    tag = "busy"
    spark.addTag(tag)
    waiting = spark.range(places, numPartitions=places).selectExpr(sleep)._jdf.javaRDD().countAsync()
    spark.removeTag(tag)
    try:
        wait_for("every place to be taken", lambda: None if watch._has_place() else True, 60)
        looked = [watch.look() for _ in range(LATE_LOOKS + PROBE_LOOKS + 2)]
        assert watch._task is None
        watch._task = watch._one_row.countAsync()
        looked += [watch.look() for _ in range(LATE_LOOKS + 2)]
    finally:
        waiting.cancel(True)

    assert looked == [""] * len(looked)

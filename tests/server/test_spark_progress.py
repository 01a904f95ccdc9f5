"""Progress by Spark's tasks, and cancelling between two Spark jobs, on a real session."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import pytest
from pyspark.sql import SparkSession

from twinlake.base.job import Progress, Run
from twinlake.base.waiting import wait_for
from twinlake.server import spark_progress
from twinlake.server.executors import Executors
from twinlake.server.spark_progress import watched


def slow(spark: SparkSession, tasks: int, seconds: float) -> None:
    """A Spark job of so many tasks, each of which takes so long."""
    spark.sparkContext.parallelize(range(tasks), tasks).foreach(lambda _: time.sleep(seconds))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_progress, "LOOK_S", 0.05)


def test_the_tasks_of_a_step_move_its_progress_and_never_back(spark: SparkSession) -> None:
    told: list[Progress] = []
    run = Run(id="moves", report=told.append)

    with watched(spark.sparkContext, run):
        run.progress(0, 2, "chunks", "first", span=0.5)
        slow(spark, 1, 0.2)
        time.sleep(0.3)  # a look falls between the two
        assert told[-1].done == 0
        slow(spark, 10, 0.4)
        slow(spark, 4, 0.2)
        run.progress(0.5, 2, "chunks", "second", span=0.5)
        slow(spark, 10, 0.4)
        run.progress(1, 2, "chunks", "not counted")
        slow(spark, 4, 0.2)

    for message, begun in (("first", 0), ("second", 0.5)):
        done = [one.done for one in told if one.message == message]
        assert done == sorted(done) and done[0] == begun and len(set(done)) > 3
        assert begun + 0.2 < done[-1] <= begun + 0.5, done
    assert [one.done for one in told if one.message == "not counted"] == [1]


@pytest.mark.parametrize("job", [lambda spark: slow(spark, 2, 30), lambda spark: slow(spark, 600, 0.1)])
def test_a_cancel_that_comes_between_two_spark_jobs_ends_the_second(
    spark: SparkSession, job: Callable[[SparkSession], None]
) -> None:
    run = Run(id="cancelled")
    began = time.monotonic()

    with pytest.raises(Exception, match="cancelled"), watched(spark.sparkContext, run):
        slow(spark, 2, 0.01)
        run.cancelled.set()
        job(spark)

    assert time.monotonic() - began < 20


class Lost:
    """Executors that are there once somebody brings them."""

    missing: str | None = "executors of spark://here:7077"

    def lacking(self) -> str | None:
        return self.missing


def test_a_job_says_that_it_waits_for_executors_until_they_are_there(spark: SparkSession) -> None:
    told: list[str | None] = []
    executors = Lost()
    run = Run(id="waits", waits=told.append)

    with watched(spark.sparkContext, run, cast("Executors", executors)):
        wait_for("what it waits for", lambda: told or None, 10)
        executors.missing = None
        wait_for("that it goes on", lambda: True if len(told) > 1 else None, 10)

    assert told == [Lost.missing, None]

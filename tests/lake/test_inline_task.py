"""Small relations are computed in the calling thread, and what computes there ends when it is cancelled."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from twinlake.base.waiting import wait_for
from twinlake.spark import prepared_plan
from twinlake.spark.prepared_plan import TooLargeError, small
from twinlake.spark.session import cancel


def jobs(spark: SparkSession, rows: DataFrame) -> int:
    """How many Spark jobs it takes to ask for it."""
    tag, context = uuid4().hex, spark.sparkContext
    context.addJobTag(tag)
    try:
        small(rows)
    finally:
        context.removeJobTag(tag)
    return len(context._jsc.sc().statusTracker().getJobIdsForTag(tag))


def test_one_partition_without_a_shuffle_takes_no_job(spark: SparkSession) -> None:
    rows = spark.range(0, 5, 1, 1).selectExpr("id", "CAST(id AS decimal(20, 2)) AS price", "null AS nothing")
    found = small(rows)

    assert found is not None and found.to_pylist() == [row.asDict() for row in rows.collect()]
    assert jobs(spark, rows) == 0
    broadcast = rows.join(F.broadcast(spark.range(2)), "id")
    told = small(broadcast)
    assert told is not None and sorted(told.column("id").to_pylist()) == [0, 1]
    with_scalar = rows.where("id > (SELECT max(id) - 2 FROM range(5))")
    told = small(with_scalar)
    assert told is not None and told.column("id").to_pylist() == [3, 4]


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_what_needs_more_than_this_thread_is_left_to_spark(
    spark: SparkSession, adaptive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.adaptive.enabled", adaptive)
    many = other.range(0, 10, 1, 2)

    assert small(many) is None
    assert small(many.groupBy().count()) is None
    assert jobs(other, many.groupBy().count()) == 0, "what tasks compute is computed once"
    monkeypatch.setattr(prepared_plan, "SMALL_BYTES", 500)
    with pytest.raises(TooLargeError):
        small(other.range(0, 1000, 1, 1))


def test_a_failure_is_told_and_leaves_the_thread_as_it_was(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        small(spark.range(0, 1, 1, 1).selectExpr("1 / id"))

    found = small(spark.range(0, 1, 1, 1))
    assert found is not None and found.num_rows == 1


def test_a_cancel_ends_what_this_thread_computes_and_nothing_else(spark: SparkSession) -> None:
    context = spark.sparkContext
    endless = spark.range(0, 1 << 60, 1, 1).selectExpr("sum(id % 7)")

    def ask(tag: str, rows: DataFrame) -> object:
        context.addJobTag(tag)
        try:
            return small(rows)
        finally:
            context.removeJobTag(tag)

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, "endless", endless)
        cancel(context, "another")
        time.sleep(2)
        assert not asked.done()
        wait_for("its end", lambda: cancel(context, "endless") or asked.done() or None, 30)
        with pytest.raises(Exception, match="TaskKilled"):
            asked.result()
        assert threads.submit(ask, "endless", spark.range(0, 3, 1, 1)).result(timeout=60) is not None

"""A statement's rows are the same whether its own thread or Spark's tasks compute them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from twinlake.base.errors import UsageError
from twinlake.reading.answer import Answers
from twinlake.reading.followed import Followed
from twinlake.reading.reader import Reader, _message
from twinlake.spark import prepared_plan

SORTED = """
    SELECT k, max(struct(time, id)).id AS newest, max_by(name, time) AS name
    FROM (SELECT id % 900 AS k, id, timestamp_seconds(id) AS time, cast(id AS string) AS name
          FROM range(0, 2000, 1, 1))
    GROUP BY k ORDER BY k
"""


@pytest.mark.parametrize("most", [1 << 20, 5_000, 10], ids=["small", "larger than thought", "large"])
def test_a_sort_that_was_begun_in_this_thread_is_done_by_tasks_where_it_is_too_large(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(prepared_plan, "SMALL_BYTES", most)
    answer = Answers(spark).of(spark.sql(SORTED), 1_000)
    found = answer.found.to_pylist()
    answer.close()

    assert [row["k"] for row in found] == list(range(900))
    assert found[0] == {"k": 0, "newest": 1800, "name": "1800"}


def test_a_failure_inside_of_what_is_waited_for_is_told(spark: SparkSession) -> None:
    failing = "SELECT 1 / (id - id) AS id FROM range(9)"

    with pytest.raises((PySparkException, Py4JJavaError)) as raised:
        broadcast = f"SELECT /*+ BROADCAST(b) */ * FROM range(9) a JOIN ({failing}) b USING (id)"
        Answers(spark).of(spark.sql(broadcast), 10)
    assert _message(raised.value).startswith("[DIVIDE_BY_ZERO]")


def test_a_date_that_python_does_not_know_is_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any) -> Any:
        return pa.array([4_000_000], pa.int32()).cast(pa.date32()).to_pylist()

    monkeypatch.setattr(Reader, "_in_time", read)
    with pytest.raises(UsageError, match="cannot be shown: date value out of range"):
        Reader(spark, Path("/none"), Followed, lambda: None).read("SELECT 1", 1, threading.Event())

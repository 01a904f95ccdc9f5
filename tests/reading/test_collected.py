"""A statement's rows are the same whether its own thread or Spark's tasks compute them."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.lake import kept_plan
from jobs.reading.reader import _collected, _message

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
    monkeypatch.setattr(kept_plan, "SMALL_BYTES", most)
    found = _collected(spark.sql(SORTED))

    assert [row["k"] for row in found] == list(range(900))
    assert found[0] == {"k": 0, "newest": 1800, "name": "1800"}


def test_a_failure_inside_of_what_is_waited_for_is_told(spark: SparkSession) -> None:
    failing = "SELECT 1 / (id - id) AS id FROM range(9)"

    with pytest.raises((PySparkException, Py4JJavaError)) as raised:
        _collected(spark.sql(f"SELECT /*+ BROADCAST(b) */ * FROM range(9) a JOIN ({failing}) b USING (id)"))
    assert _message(raised.value).startswith("[DIVIDE_BY_ZERO]")

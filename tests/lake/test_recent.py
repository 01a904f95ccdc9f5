"""The newest batches of a log are found by its files, however those hold them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.project import OURS
from tests.written_log import write_batch
from twinlake.lake.delta.table_state import LiveFile
from twinlake.lake.log.log import Log
from twinlake.lake.log.recent import Held, Recent, everything, newest
from twinlake.lake.log.sampled_log import sampled
from twinlake.topics.topic import load_topic

SIZES = (3, 5, 1, 40, 2, 0, 7, 4)
END = len(SIZES)


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Log:
    found = Log(spark, tmp_path_factory.mktemp("recent"), load_topic("orders", OURS))
    for size in SIZES:
        write_batch(found, size)
    return found


@pytest.fixture(scope="module", params=["a file for each batch", "one file", "no statistics"])
def held_so(request: pytest.FixtureRequest, log: Log) -> Log:
    """The log, its batches in files like that; in this order, each made of the one before."""
    if request.param == "one file":
        log.spark.sql(f"OPTIMIZE delta.`{log.path}`")
    if request.param == "no statistics":
        files = log.appender.files()
        log.appender.files = lambda: {path: LiveFile(one.bytes, None) for path, one in files.items()}
    return log


def batches(found: Recent) -> dict[int, int]:
    return {batch: one.records for batch, one in sorted(found.held.items())}


@pytest.mark.parametrize(
    ("to", "most", "after", "expected"),
    [
        (END, 1, 7, {8: 4}),  # the newest one is taken however large it is
        (END, 4, 7, {8: 4}),
        (END, 12, 5, {7: 7, 8: 4}),
        (END, 13, 4, {5: 2, 7: 7, 8: 4}),
        (6, 3, 4, {5: 2}),  # the sixth is empty
        (END, 61, 1, {2: 5, 3: 1, 4: 40, 5: 2, 7: 7, 8: 4}),
        (END, 62, 0, {1: 3, 2: 5, 3: 1, 4: 40, 5: 2, 7: 7, 8: 4}),
        (0, 10, 0, {}),
    ],
)
def test_they_hold_at_most_so_many_records(
    held_so: Log, to: int, most: int, after: int, expected: dict[int, int]
) -> None:
    found = newest(held_so, to, most)

    assert batches(found) == expected
    assert (found.records, found.whole) == (sum(expected.values()), after == 0)
    with sampled({"orders": held_so}, {"orders": found.batches}) as logs:
        rows = logs["orders"].rows(0, END)
        assert rows.count() == held_so.rows(found.batches.after, to).count() == found.records
        by_sql = held_so.spark.sql(logs["orders"].rows_sql(END))
        assert by_sql.dtypes == rows.dtypes and by_sql.count() == found.records
    assert found.batches.after >= after  # an empty batch before them may count, too


def test_their_times_are_those_of_their_records(held_so: Log) -> None:
    found, rows = newest(held_so, END, 13), held_so.all(4, END)
    times = "unix_micros(min(timestamp)) AS begin", "unix_micros(max(timestamp)) AS end"
    counted = rows.groupBy("batch").count().collect()
    (row,) = rows.selectExpr(*times).collect()

    assert {one["batch"]: one["count"] for one in counted} == batches(found)
    begin, end = (min(one.begin for one in found.held.values()), max(one.end for one in found.held.values()))
    assert abs(begin - row["begin"]) < 1_000 and abs(end - row["end"]) < 1_000


def test_of_all_the_log_holds_they_say_how_much(log: Log) -> None:
    assert everything(log, END).after == 0
    assert Held(records=1, begin=5, end=7).with_more(Held(records=2, begin=3, end=6)) == Held(
        records=3, begin=3, end=7
    )

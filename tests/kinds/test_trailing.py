"""What a Trailing promises beside its rows, which laws ask about: what filters read, a hot key costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from tests.history import START
from tests.kinds.test_joins import HOUR, files_read, hours
from tests.world import World
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.spread import Stddev
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.running import Running
from twinlake.kinds.trailing import Trailing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACES = Trailing(
    name="paces", inputs=("orders",), keys=("customer",), on="at", cell="1 hour",
    columns={"customer": "customer", "at": "ordered_at", "amount": "amount"},
    last={"1 hour": {"orders": Count(), "spent": Sum("amount")}},
)  # fmt: skip
HOT = Trailing(
    name="hot", inputs=("made",), keys=("key",), on="at",
    columns={"key": "key", "at": "at", "amount": "amount", "ratio": "ratio"},
    last={
        "5 minutes": {
            "n": Count(), "sum": Sum("amount"), "mean": Avg("ratio"), "most": Max("amount"),
            "spread": Stddev("ratio"),
        },
    },
)  # fmt: skip
ROWS = 200_000


def test_a_filter_on_the_cell_reads_the_files_of_that_cell_and_of_what_its_windows_begin_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=PACES)
    hours(world, 4)

    shown = spark.sql(PACES.view({"paces": f"delta.`{world.feed.path}`"}, ViewClock()))

    assert files_read(shown) == {"paces": 4}
    one_cell = shown.where(f"_cell = TIMESTAMP '{(START + 2 * HOUR).isoformat()}'")
    assert files_read(one_cell) == {"paces": 2}
    found = sorted(one_cell.collect(), key=str)
    hour = shown.where(f"date_trunc('HOUR', at) = TIMESTAMP '{(START + 2 * HOUR).isoformat()}'")
    assert found and found == sorted(hour.collect(), key=str)
    of_customer = Counter(row.customer for row in found)
    assert any(row.orders >= of_customer[row.customer] for row in found), "some are of the hour before"


def test_a_filter_on_the_key_reaches_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path, table=PACES)
    for customer in ("c1", "c2", "c3"):
        world.log.append([{**one, "customer": customer} for one in world.orders.batch(10)])
        world.step()

    shown = spark.sql(PACES.view({"paces": f"delta.`{world.feed.path}`"}, ViewClock()))

    assert files_read(shown.where("customer = 'c2'")) == {"paces": 1}


def states(spark: SparkSession, keys: int) -> DataFrame:
    """All of them within one window."""
    columns = (
        f"concat('k', id % {keys}) AS key, timestamp_millis({START.timestamp():.0f}000L + id) AS at,"
        " CAST(id % 977 AS decimal(12, 2)) AS amount, CAST(id % 89 AS double) AS ratio,"
        " 0 AS _epoch, 0 AS _partition, id AS _offset, timestamp_micros(0) AS _timestamp"
    )
    return HOT.partial(spark.sql(f"SELECT {columns} FROM range({ROWS})"))


def test_a_hot_key_costs_what_as_many_rows_of_many_keys_cost(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())

    def cpu_seconds(name: str) -> float:
        before = process.cpu_times().user
        spark.sql(HOT.view({"hot": name}, ViewClock())).write.format("noop").mode("overwrite").save()
        return process.cpu_times().user - before

    took = {}
    for name, keys in (("many_keys", 1_000), ("one_key", 1)):
        states(spark, keys).localCheckpoint().createOrReplaceTempView(name)
    for name in ("many_keys", "one_key", "many_keys", "one_key"):  # the first time it is compiled
        took[name] = cpu_seconds(name)

    assert took["one_key"] < 3 * took["many_keys"], took
    (last,) = spark.sql(HOT.view({"hot": "one_key"}, ViewClock())).where(f"_offset = {ROWS - 1}").collect()
    assert last.n == ROWS - 1


def test_calls_of_aggregates_are_found_once_and_nothing_else() -> None:
    found = Running.of({"a": "CASE WHEN NOT try_sum(abs(`x`)) IS NULL THEN max(`y`) END", "b": "max(`y`)"})

    assert found.calls == {"_call_0": "try_sum(abs(`x`))", "_call_1": "max(`y`)"}
    assert found.parts == {"a": "CASE WHEN NOT `_call_0` IS NULL THEN `_call_1` END", "b": "`_call_1`"}

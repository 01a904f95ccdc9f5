"""What an Aggregate's view promises to its readers beside its values, which the laws ask about."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.analysis import empty_rows
from twinlake.kinds.equality import scale_of
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.windows import Tumbling
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders", OURS)
TOPICS = {ORDERS.name: ORDERS}
BASE = Aggregate(
    name="t", inputs=("orders",), where="status <> 'cancelled'",
    columns={"k": "region", "at": "ordered_at", "x": "amount * 2", "y": "CAST(amount AS DOUBLE)"},
    keys=("k",), window=Tumbling(on="at", size="1 minute"),
    measures={"total": Sum("x"), "n": Count(), "ratio": Sum("y"), "mean": Avg("y"), "most": Max("y")},
)  # fmt: skip


def test_filters_on_key_and_window_reach_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    """No filter of a reader may be held up by the merge."""
    topic_rows = empty_rows(BASE, TOPICS, spark)["orders"]
    path = str(tmp_path / "partials")
    BASE.partial(topic_rows).write.format("delta").save(path)
    view_clock = ViewClock(
        watermarks={"orders": "TIMESTAMP '2026-01-01 00:00:00Z'"}, late_after={"orders": timedelta(hours=3)}
    )
    text = BASE.view({"t": f"delta.`{path}`"}, view_clock)

    plan = (
        spark.sql(text).where("k = 'north' AND window_start >= TIMESTAMP '2026-01-01 00:00:00Z'")
        ._jdf.queryExecution().executedPlan().toString()
    )  # fmt: skip

    pushed = plan[plan.index("PushedFilters") :]
    assert "EqualTo(k,north)" in pushed and "GreaterThanOrEqual(window_start" in pushed


def test_a_watermark_that_moves_makes_spark_compile_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "partials")
    BASE.partial(empty_rows(BASE, TOPICS, spark)["orders"]).write.format("delta").save(path)

    def compiled(view_clock: str, where: str) -> int:
        watermark = {"orders": f"(SELECT TIMESTAMP '{view_clock}' AS watermark)"}
        told = ViewClock(watermarks=watermark, late_after={"orders": timedelta(hours=3)})
        java: Any = spark._jvm
        times = java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
        before = times.getCount()
        spark.sql(f"SELECT * FROM ({BASE.view({'t': f'delta.`{path}`'}, told)}) {where}").toArrow()
        return int(times.getCount() - before)

    for where in ("", "WHERE window_start > TIMESTAMP '2026-01-01 00:00:00Z' AND NOT final"):
        compiled("2026-01-01 00:00:00Z", where)
        assert compiled("2026-01-01 00:00:01Z", where) == 0


def test_merged_states_have_the_columns_of_partial_ones_in_their_order(spark: SparkSession) -> None:
    state = BASE.partial(empty_rows(BASE, TOPICS, spark)["orders"])

    assert BASE.merge(state).dtypes == state.dtypes


def test_only_what_adds_up_doubles_has_a_scale(spark: SparkSession) -> None:
    states = dict(BASE.partial(empty_rows(BASE, TOPICS, spark)["orders"]).dtypes)

    assert BASE.scales(states) == {
        "ratio__sum": "ratio__abs", "ratio__abs": "ratio__abs",
        "mean__sum": "mean__abs", "mean__abs": "mean__abs",
    }  # fmt: skip


@pytest.mark.parametrize("windowed", [True, False])
def test_a_view_has_scales_only_where_they_are_asked_for_and_mean_something(
    spark: SparkSession, windowed: bool
) -> None:
    table = BASE if windowed else replace(BASE, window=None)
    table.partial(empty_rows(table, TOPICS, spark)["orders"]).createOrReplaceTempView("scaled")

    plain = spark.sql(table.view({"t": "scaled"}, ViewClock())).columns
    scaled = spark.sql(table.view({"t": "scaled"}, ViewClock(), ("ratio", "mean", "most", "k"))).columns

    assert plain == list(table.output)
    assert set(scaled) == {*plain, scale_of("ratio"), scale_of("mean")}
    assert [name for name in scaled if name in plain] == plain

"""What Spark says of sessions and hopping windows before any row is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.analysis import columns, empty_rows, problems, warnings
from twinlake.kinds.equality import scale_of
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.windows import Hopping
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders", OURS)
TOPICS = {ORDERS.name: ORDERS}
_SHARED: dict[str, Any] = {
    "name": "t", "inputs": ("orders",), "keys": ("k",),
    "columns": {"k": "region", "at": "ordered_at", "x": "amount", "y": "CAST(amount AS DOUBLE)"},
    "measures": {"total": Sum("x"), "n": Count(), "ratio": Sum("y")},
}  # fmt: skip
VISITS = Sessions(on="at", gap="30 minutes", **_SHARED)
SLIDING = Aggregate(window=Hopping(on="at", size="1 hour", every="10 minutes"), **_SHARED)


@pytest.mark.parametrize("table", [VISITS, SLIDING], ids=["sessions", "hopping"])
def test_a_sound_definition_has_no_problem_and_shows_what_it_says(spark: SparkSession, table: Kind) -> None:
    types = dict(columns(table, TOPICS, spark))

    assert list(problems(table, TOPICS, spark)) == []
    assert tuple(types) == table.output
    assert (types["n"], types["total"], types["final"]) == ("bigint", "decimal(38,2)", "boolean")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"columns": {**_SHARED["columns"], "k": "map(region, 1)"}}, "map<string,int> cannot be a key"),
        (
            {"columns": {**_SHARED["columns"], "x": "status"}},
            "measure total (sum of x): string is not a number",
        ),
        ({"on": "k"}, "sessions are on k, which is string, not timestamp"),
        ({"where": "amount"}, "not a condition"),
    ],
)
def test_what_sessions_cannot_be_made_of_is_refused(
    spark: SparkSession, changes: dict[str, Any], expected: str
) -> None:
    (found,) = problems(replace(VISITS, **changes), TOPICS, spark)

    assert expected in found.why_text


def test_the_gap_the_cells_and_the_hops_count_in_the_fingerprint_and_their_wording_does_not(
    spark: SparkSession,
) -> None:
    def of(table: Kind) -> str:
        return fingerprint(table, TOPICS, spark)

    same = [of(VISITS), of(replace(VISITS, gap="PT30M", grid="24 hours"))]
    hop = Hopping(on="at", size="1 hour", every="5 minutes")
    others = [replace(VISITS, gap="31 minutes"), replace(VISITS, grid="2 days"), replace(SLIDING, window=hop)]

    assert len(set(same)) == 1
    assert len({*same, of(SLIDING), *map(of, others)}) == 5


def test_check_says_what_it_costs_that_every_does_not_divide_size(spark: SparkSession) -> None:
    uneven = replace(SLIDING, window=Hopping(on="at", size="90 minutes", every="1 hour"))

    (found,) = warnings(uneven, TOPICS, spark)

    assert "rows are stored by 30 minutes" in found.why_text and "read from 3 of them" in found.why_text
    assert list(problems(uneven, TOPICS, spark)) == list(warnings(SLIDING, TOPICS, spark)) == []


def test_a_scale_is_shown_where_it_is_asked_for(spark: SparkSession) -> None:
    VISITS.partial(empty_rows(VISITS, TOPICS, spark)["orders"]).createOrReplaceTempView("visits")

    plain = spark.sql(VISITS.view({"t": "visits"}, ViewClock())).columns
    scaled = spark.sql(VISITS.view({"t": "visits"}, ViewClock(), ("ratio", "k"))).columns

    assert plain == list(VISITS.output) and set(scaled) - set(plain) == {scale_of("ratio")}


@pytest.mark.parametrize("table", [VISITS, SLIDING], ids=["sessions", "hopping"])
def test_a_watermark_that_moves_makes_spark_compile_nothing(
    spark: SparkSession, tmp_path: Path, table: Any
) -> None:
    path = str(tmp_path / "states")
    table.partial(empty_rows(table, TOPICS, spark)["orders"]).write.format("delta").save(path)

    def compiled(view_clock: str) -> int:
        watermark = {"orders": f"(SELECT TIMESTAMP '{view_clock}' AS watermark)"}
        told = ViewClock(watermarks=watermark, late_after={"orders": timedelta(hours=3)})
        java: Any = spark._jvm
        times = java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
        before = times.getCount()
        spark.sql(table.view({"t": f"delta.`{path}`"}, told)).toArrow()
        return int(times.getCount() - before)

    compiled("2026-01-01 00:00:00Z")
    assert compiled("2026-01-01 00:00:01Z") == 0

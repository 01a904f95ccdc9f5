"""Every measure over hostile values of every type: the witness finds what Spark's kinds show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.witness import hostile
from tests.witness.asking import answered, asked, differing, log_of, shown
from tests.witness.hostile import ITEMS, NUMBERS, ORDERED, TYPES
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.all import MEASURES as LISTED
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.steps import Explode
from twinlake.witness.answer import EQUAL
from twinlake.witness.measures import MEASURES
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QS = (0.0, 0.3, 0.5, 0.95, 1.0)
EDGES = (
    -1.7e308, -1e37, -9e18, -32768, -128.5, -128, -1.005, -1, 0, 5e-324, 0.005, 0.01, 0.5, 1, 1.5, 127, 99999,
    1e15, 10**15 + 1, 1e16, 9e18, 1e19, 1e36, 1e37, 1e308,
)  # fmt: skip
_BY = ("x", "s", "t", "pair", "list", "d12", "yes")
FAMILIES: dict[str, dict[str, Measure]] = {
    "totals": {
        "n": Count(), **{f"count_{one}": Count(one) for one in ("x", "pair")},
        **{f"sum_{one}": Sum(one) for one in (*NUMBERS, "deep")},
        **{f"avg_{one}": Avg(one) for one in (*NUMBERS, "deep")},
    },
    "spread": {
        **{f"var_{one}": Variance(one) for one in NUMBERS}, **{f"dev_{one}": Stddev(one) for one in NUMBERS},
    },
    "extremes": {
        **{f"min_{one}": Min(one) for one in ORDERED}, **{f"max_{one}": Max(one) for one in ORDERED},
        **{f"set_{one}": CollectSet(one, most=2) for one in ORDERED},
    },
    "picks": {
        **{f"first_{one}": First(one) for one in ("pair", "x", "s")},
        **{f"last_{one}": Last(one) for one in ("list", "f", "y")},
        **{f"first_by_{one}": First("s", by=one) for one in _BY},
        **{f"last_by_{one}": Last("pair", by=one) for one in _BY},
        **{f"least_by_{one}": ArgMin("x", by=one) for one in _BY},
        **{f"most_by_{one}": ArgMax("list", by=one) for one in _BY},
    },
    "histograms": {
        **{f"counts_{one}": Histogram(one, edges=EDGES) for one in (*NUMBERS, "deep")},
        **{f"even_{one}": Histogram(one, low=-1, high=2, buckets=7) for one in (*NUMBERS, "deep")},
        "many": Histogram("x", low=-1e3, high=1e15, buckets=1_000), "one": Histogram("i", edges=(0,)),
    },
    "multisets": {
        **{f"kinds_{one}": CountDistinct(one) for one in ("i", "b", "f", "x", "s", "y")},
        **{f"exact_{one}": CountDistinct(one, exact=True) for one in ITEMS},
        **{f"spread_{one}": Quantile(one, QS) for one in ("i", "b", "d12", "wide", "f", "x")},
        "middle": Quantile("x", 0.5),
        **{f"top_{one}": TopK(one, 2) for one in ITEMS},
        **{f"top_by_{one}": TopK("s", 2, by=one) for one in ("i", "b", "d12", "d19")},
    },
}  # fmt: skip


def table(measures: dict[str, Measure], **more: Any) -> Aggregate:
    columns = {name: name for name in TYPES if name != "items"}
    return Aggregate(
        name="measured", inputs=("made",), keys=("g",), measures=measures, **{"columns": columns, **more}
    )


@pytest.fixture(scope="module")
def rows(spark: SparkSession, seed: int) -> DataFrame:
    return hostile.rows(spark, seed).cache()


@pytest.fixture(scope="module")
def log(rows: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> TopicLog:
    return log_of(rows, tmp_path_factory.mktemp("log"), watermark=0)


def test_every_measure_is_stated_by_the_witness() -> None:
    assert MEASURES.keys() == LISTED.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_witness_finds_measures_of_every_type(
    rows: DataFrame, log: TopicLog, tmp_path: Path, family: str
) -> None:
    one = table(FAMILIES[family])

    found = answered(asked(one, shown(one, rows, log), {"made": log}, tmp_path))

    assert found.verdict == EQUAL and found.rows == 80, differing(found)


def test_the_witness_finds_measures_of_exploded_rows_with_their_ties(
    rows: DataFrame, log: TopicLog, tmp_path: Path
) -> None:
    """Several rows have one record id: the order of their values decides."""
    columns = {"g": "g", "name": "item.name", "n": "item.n", "item": "item", "x": "x"}
    measures: dict[str, Measure] = {
        "rows": Count(), "sum": Sum("n"), "first": First("item"), "last": Last("name"),
        "least": ArgMin("name", by="n"), "most": ArgMax("item", by="n"), "top": TopK("name", 2),
        "kinds": CountDistinct("name"), "set": CollectSet("item", most=1),
    }  # fmt: skip
    one = table(
        measures, explode=Explode(name="item", array="items"), columns=columns, where="g IS NULL OR g <> 3"
    )

    found = answered(asked(one, shown(one, rows, log), {"made": log}, tmp_path))

    assert found.verdict == EQUAL and found.rows > 40, differing(found)


def test_many_distinct_values_are_within_their_bound(spark: SparkSession, tmp_path: Path) -> None:
    """The sketch counts fewer than 4,096 exactly, more nearly."""
    made = spark.range(120_000).selectExpr(
        "CAST(id % 3 AS int) AS g", "id AS b", "concat('v', id % 9001) AS s", "CAST(id % 4095 AS int) AS i",
        "0 AS _epoch", "0 AS _partition", "id AS _offset", "timestamp_seconds(0) AS _timestamp",
    )  # fmt: skip
    measures: dict[str, Measure] = {name: CountDistinct(name) for name in ("b", "s", "i")}
    one = table(measures, columns={name: name for name in ("g", "b", "s", "i")})
    log = log_of(made, tmp_path)

    found = answered(asked(one, shown(one, made, log), {"made": log}, tmp_path))

    assert found.verdict == EQUAL, differing(found)
    assert found.bounds.keys() == {"b", "s", "i"}
    assert found.within_bound["b"] == 3 and found.within_bound["i"] == 0

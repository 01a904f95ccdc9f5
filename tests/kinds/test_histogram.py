"""What a Histogram refuses, which edges it has, and that it counts exactly with as many as there may be."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS
from twinlake.base import quote
from twinlake.definitions.without_spark import Typist
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.all import from_json
from twinlake.kinds.measures.histogram import Histogram
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = Aggregate(
    name="t", inputs=("orders",), columns={"k": "region", "x": "amount"}, keys=("k",),
    measures={"m": Histogram("x", edges=(0, 10, 100))},
)  # fmt: skip
TOGETHER = "low, high and buckets go together"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "it has no edges; give edges=(0, 10, 100) or low=0, high=100, buckets=10"),
        ({"edges": ()}, "it has 0 edges, not between 1 and 1,000"),
        ({"edges": tuple(range(1_001))}, "it has 1,001 edges, not between 1 and 1,000"),
        ({"edges": 10}, "edges are 10, not a tuple of numbers, like (0, 10, 100)"),
        ({"edges": (0, 10, 10)}, "edge 10 is not above 10, the one before it"),
        ({"edges": (0, 10, 5.5)}, "edge 5.5 is not above 10, the one before it"),
        ({"edges": (0.0, -0.0)}, "edge -0.0 is not above 0.0, the one before it"),
        ({"edges": (0, "10")}, "edge is '10', not a finite number"),
        ({"edges": (False, 10)}, "edge is False, not a finite number"),
        ({"edges": (0, math.inf)}, "edge is inf, not a finite number"),
        ({"edges": (math.nan,)}, "edge is nan, not a finite number"),
        ({"edges": (2**53, 2**53 + 1)}, "edge 9007199254740993 has more digits than a double keeps"),
        ({"edges": (0, 10**400)}, "edge is a number beyond the greatest double, 1.8e308"),
        ({"low": -(10**400), "high": 0, "buckets": 2}, "low is a number beyond the greatest double, 1.8e308"),
        ({"edges": (0,), "low": 0}, "it has edges, and low, high or buckets as well; give either"),
        ({"edges": (0,), "buckets": 3}, "it has edges, and low, high or buckets as well; give either"),
        ({"low": 0}, f"it has no high and no buckets; {TOGETHER}"),
        ({"low": 0, "high": 10}, f"it has no buckets; {TOGETHER}"),
        ({"low": 10, "high": 0, "buckets": 2}, "high is 0, not above low, which is 10"),
        ({"low": 10, "high": 10, "buckets": 2}, "high is 10, not above low, which is 10"),
        ({"low": "0", "high": 10, "buckets": 2}, "low is '0', not a finite number"),
        ({"low": 0, "high": math.nan, "buckets": 2}, "high is nan, not a finite number"),
        ({"low": 0, "high": 10, "buckets": 0}, "buckets is 0, not a whole number between 1 and 1,000"),
        ({"low": 0, "high": 10, "buckets": 1_001}, "buckets is 1001, not a whole number between 1 and 1,000"),
        ({"low": 0, "high": 10, "buckets": 2.0}, "buckets is 2.0, not a whole number between 1 and 1,000"),
        ({"low": 1e15, "high": 1e15 + 1, "buckets": 9},
         "from 1000000000000000.0 to 1000000000000001.0 there are too few doubles for 9 buckets"),
        ({"edges": (-0.5,)}, None),
        ({"edges": tuple(range(1_000))}, None),
        ({"low": -1.7e308, "high": 1.7e308, "buckets": 1_000}, None),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_arguments_that_make_no_buckets_are_refused(given: dict[str, Any], why: str | None) -> None:
    assert Histogram("x", **given).refuses({"x": "decimal(12,2)"}) == why


@pytest.mark.parametrize("type_", ["string", "boolean", "date", "timestamp", "array<int>", "binary"])
def test_what_is_no_number_is_refused(type_: str) -> None:
    assert Histogram("x", edges=(0,)).refuses({"x": type_}) == f"{type_} is not a number"


@pytest.mark.parametrize(
    ("measure", "columns", "why"),
    [
        (Histogram("x", edges=(10, 0)), {"k": "region", "x": "amount"},
         "measure m (histogram of x): edge 0 is not above 10, the one before it"),
        (Histogram("k", edges=(0, 10)), {"k": "region"},
         "measure m (histogram of k): string is not a number"),
    ],
    ids=["edges", "type"],
)  # fmt: skip
def test_the_check_without_spark_says_it(measure: Histogram, columns: dict[str, str], why: str) -> None:
    table = replace(TABLE, columns=columns, measures={"m": measure})

    with closing(Typist(topics={"orders": load_topic("orders", OURS)})) as typist:
        found = typist.typed(table)

    assert [one.why_text for one in found.wrong] == [why]


def test_the_check_without_spark_knows_what_it_shows() -> None:
    with closing(Typist(topics={"orders": load_topic("orders", OURS)})) as typist:
        found = typist.typed(TABLE)

    assert found.columns == (
        ("k", "string"), ("m", "array<struct<low:double,high:double,count:bigint>>")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "bounds"),
    [
        (Histogram("x", edges=(-0.0, 10, 99.5)), ["0.0", "10.0", "99.5"]),
        (Histogram("x", low=0, high=1, buckets=10),
         ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]),
        (Histogram("x", low=-0.1, high=0.2, buckets=3), ["-0.1", "0.0", "0.1", "0.2"]),
        (Histogram("x", low=5, high=6, buckets=1), ["5.0", "6.0"]),
    ],
    ids=repr,
)  # fmt: skip
def test_edges_of_one_width_are_the_doubles_next_to_their_places(
    measure: Histogram, bounds: list[str]
) -> None:
    assert list(map(repr, measure.bounds)) == bounds


@pytest.mark.parametrize(
    "measure", [Histogram("x", edges=(0, 0.5)), Histogram("x", low=0, high=1.5, buckets=2)], ids=repr
)
def test_it_comes_back_from_json(measure: Histogram) -> None:
    assert from_json(json.loads(json.dumps(measure.to_json()))) == measure


def test_whole_edges_and_the_same_doubles_are_one_view() -> None:
    texts = [
        replace(TABLE, measures={"m": Histogram("x", edges=edges)}).view({"t": "s"}, ViewClock())
        for edges in ((0, 10), (0.0, 10.0))
    ]

    assert texts[0] == texts[1]


def test_a_column_may_be_called_like_anything(spark: SparkSession) -> None:
    """Variables of lambdas in its SQL hide no column."""
    from pyspark.sql import functions as F

    names = ("n", "i", "l", "r", "a", "b", "at", "Jump", "at_", "bucket", "counted", "b.`c")
    rows = spark.sql(f"SELECT {', '.join(f'{n}D AS {quote.name(name)}' for n, name in enumerate(names))}")
    measures = {name: Histogram(name, edges=(n, n + 1)) for n, name in enumerate(names)}
    parts = [part for name, one in measures.items() for part in one.parts(name, {name: "double"})]

    states = rows.agg(*(F.expr(part.from_rows).alias(part.name) for part in parts))
    found = states.agg(*(F.expr(one.value(name)) for name, one in measures.items())).first()

    assert [[one["count"] for one in shown] for shown in found] == [[0, 1, 0]] * len(names)


def test_as_many_buckets_as_there_may_be_are_counted_exactly(spark: SparkSession) -> None:
    """Rows are counted by a sketch of frequent items, which is exact while it tracks every one of them."""
    from pyspark.sql import functions as F

    measure = Histogram("x", low=0, high=1_000, buckets=1_000)
    rows = spark.range(-5_000, 400_000, 1, 4).selectExpr(
        "CAST(pow(id / 400000D, 3) * 1000.5 AS DECIMAL(12,4)) AS x", "id % 2 AS k"
    )
    (part,) = measure.parts("m", {"x": "decimal(12,4)"})

    states = rows.groupBy("k").agg(F.expr(part.from_rows).alias(part.name))
    (shown,) = states.agg(F.expr(measure.value("m"))).first()
    least = F.expr("CASE WHEN x < 0 THEN -1 WHEN x >= 1000 THEN 1000 ELSE floor(x) END")
    plain = {row[0]: row[1] for row in rows.groupBy(least).count().collect()}

    assert len(shown) == 1_002 and sum(one["count"] for one in shown) == 405_000
    assert {n: one["count"] for n, one in enumerate(shown, -1) if one["count"]} == plain

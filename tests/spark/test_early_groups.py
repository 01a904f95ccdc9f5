"""Groups by hash before anything is sorted: the same answers as Spark's own, from plans that sort less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.laws.histories import generated, packed
from tests.laws.tables import NEWEST, THREE, TOTALS, WINDOWED, WORDS
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.latest import Latest
from twinlake.kinds.top_rows import TopRows

BYTES = "spark.twinlake.groupBytes"
PLAIN = 0
SIZES = [1, 1_500_000, 64 << 20]
"""Of the groups of a task: a group each, a page of them, what is measured."""
KEYS = {
    "texts": "if(id % 7 = 0, NULL, repeat('k', cast(id % 7 as int)))",
    "numbers": "id % 11",
    "doubles": "element_at(array(-0.0D, 0.0D, double('NaN'), 1.5D, NULL), cast(id % 5 as int) + 1)",
    "structs": "named_struct('a', id % 3, 'b', if(id % 2 = 0, NULL, cast(id % 2 as string)))",
    "decimals": "cast(id % 5 as decimal(30, 2))",
    "each": "concat('k', id)",
}
NOISE = "pmod(xxhash64(id, 5), 1000)"
LONG = (
    f"named_struct('n', if({NOISE} % 9 = 0, NULL, {NOISE} % 50), "
    f"'t', repeat(cast(id as string), cast({NOISE} % 40 as int)), 'id', id)"
)
DEEP = (
    f"named_struct('of', named_struct('x', {NOISE} % 3, 'y', array({NOISE} % 7, id)), "
    "'b', cast(cast(id as string) as binary))"
)
AGGREGATES = {
    "greatest": [f"max({LONG})"],
    "least": [f"min({LONG})"],
    "within others": [f"max({DEEP})", f"min({LONG})", f"max({LONG})"],
    "with sums": ["count(1)", f"max({LONG})", f"sum(cast({NOISE} as decimal(12, 2)))", f"sum({NOISE})"],
    "with nothing": ["sum(cast(NULL as decimal(12, 2)))", f"min({LONG})", "max(cast(NULL as bigint))"],
    "with what is distinct": [f"count(DISTINCT {NOISE})", f"max({LONG})"],
    "with means": [f"avg(cast({NOISE} as double))", f"min({LONG})", f"max({NOISE})", "bool_or(id % 3 = 0)"],
}


@contextmanager
def groups_of(spark: SparkSession, size: int) -> Iterator[None]:
    """Plans that are made meanwhile."""
    spark.conf.set(BYTES, str(size))
    try:
        yield
    finally:
        spark.conf.unset(BYTES)


def plan(rows: DataFrame) -> str:
    java: Any = rows._jdf
    return str(java.queryExecution().executedPlan().toString())


def answer(spark: SparkSession, rows: DataFrame, size: int) -> list[str]:
    with groups_of(spark, size):
        found = rows.select("*")
        assert ("HashedGroups" in plan(found)) is (size != PLAIN)
    return sorted(map(repr, found.collect()))


@pytest.mark.parametrize("aggregates", AGGREGATES.values(), ids=AGGREGATES)
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_it_is_the_answer_of_spark(spark: SparkSession, key: str, aggregates: list[str]) -> None:
    columns = [f"{text} AS c{number}" for number, text in enumerate(aggregates)]
    for partitions in (1, 3):
        rows = spark.range(0, 600, 1, partitions).selectExpr(f"{key} AS key", "id")
        found = rows.groupBy("key").agg(*map(expression, columns))
        plain = answer(spark, found, PLAIN)
        for size in SIZES:
            assert answer(spark, found, size) == plain


def expression(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def test_many_groups_and_large_rows_are_grouped_in_turns(spark: SparkSession) -> None:
    rows = spark.range(0, 60_000, 1, 2).selectExpr("id % 20000 AS key", "id")
    struct = "named_struct('n', pmod(xxhash64(id), 100), 'id', id, 't', repeat('x', cast(id % 300 as int)))"
    found = rows.groupBy("key").agg(expression(f"max({struct})"), expression("count(1)"))
    large = (
        rows.where("id < 40")
        .groupBy(expression("key % 3"))
        .agg(expression("min(named_struct('t', repeat(cast(id as string), 1000000)))"))
    )

    plain = answer(spark, found, PLAIN)
    assert len(plain) == 20_000
    for size in SIZES[1:]:
        assert answer(spark, found, size) == plain
        assert answer(spark, large, size) == answer(spark, large, PLAIN)


def test_nothing_gives_nothing(spark: SparkSession) -> None:
    found = spark.range(5).where("id > 9").groupBy(expression("-id")).agg(expression("max(struct(id))"))

    assert answer(spark, found, SIZES[-1]) == []


def test_no_row_is_sorted_before_it_is_grouped(spark: SparkSession) -> None:
    rows = spark.range(0, 100, 1, 3).selectExpr("id % 7 AS key", "id")

    over_an_exchange = plan(rows.groupBy("key").agg(expression("max(struct(id))")))
    assert [over_an_exchange.count(one) for one in ("Sort [", "HashedGroups", "Exchange")] == [1, 1, 1]
    assert over_an_exchange.index("Sort [") < over_an_exchange.index("HashedGroups")
    in_one = plan(rows.coalesce(1).groupBy("key").agg(expression("max(struct(id))")))
    assert [in_one.count(one) for one in ("Sort [", "HashedGroups", "Exchange")] == [1, 1, 0]
    assert in_one.index("Sort [") < in_one.index("HashedGroups")


@pytest.mark.parametrize(
    "aggregates",
    [
        ["max(struct(id)) FILTER (WHERE id > 3)"],
        ["max(kept)"],  # may be NULL
        ["max(struct(id))", "max(cast(id as string))"],
        ["max(struct(id))", "collect_set(id)"],
        ["max(id)"],
    ],
)
def test_what_it_does_not_know_is_left_to_spark(spark: SparkSession, aggregates: list[str]) -> None:
    rows = spark.range(0, 100, 1, 2).selectExpr("id % 7 AS key", "id", "if(id > 5, struct(id), NULL) AS kept")
    found = rows.groupBy("key").agg(*map(expression, aggregates))

    assert "HashedGroups" not in plan(found)
    assert found.count() == 7


@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_a_join_over_it_has_its_order(spark: SparkSession, adaptive: str) -> None:
    """What is above it and wants sorted rows gets them sorted."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    rows = session.range(0, 500, 1, 3).selectExpr("pmod(xxhash64(id), 91) AS key", "id")
    newest = rows.groupBy("key").agg(expression("max(struct(id, key))").alias("newest"))

    found = newest.join(newest.withColumnRenamed("newest", "again"), "key").where("newest = again")

    assert found.count() == rows.select("key").distinct().count()


@pytest.mark.parametrize("table", [WINDOWED, TOTALS, WORDS, NEWEST, THREE], ids=lambda table: table.name)
def test_a_state_is_the_same_without_it(spark: SparkSession, table: Aggregate | Latest | TopRows) -> None:
    rows = packed(spark, generated(80)).repartition(3)
    states = table.partial(rows)
    found = [states, table.merge(states.unionAll(states))]

    for one in found:
        with groups_of(spark, PLAIN):
            plain = sorted(map(repr, one.select("*").collect()))
        assert sorted(map(repr, one.select("*").collect())) == plain

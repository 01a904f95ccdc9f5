"""Groups by hash before anything is sorted: the same answers as Spark's own, from plans that sort less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.laws.histories import generated, packed
from tests.laws.tables import NEWEST, TOTALS, WINDOWED
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import CountDistinct
from twinlake.kinds.measures.picks import ArgMax, First
from twinlake.kinds.measures.totals import Sum
from twinlake.spark.cluster import GROUP_BYTES

PLAIN = 0
SIZES = [1, 1_500_000, 64 << 20]
"""Of the groups of a task: a group each, some pages of them, what is measured."""
KEYS = {
    "texts": "if(id % 7 = 0, NULL, repeat('k', cast(id % 7 as int)))",
    "numbers": "id % 11",
    "doubles": "element_at(array(-0.0D, 0.0D, double('NaN'), 1.5D, NULL), cast(id % 5 as int) + 1)",
    "structs": "named_struct('a', id % 3, 'b', if(id % 2 = 0, NULL, cast(id % 2 as string)))",
    "decimals": "cast(id % 5 as decimal(30, 2))",
    "each": "concat('k', id)",
}
TOP = "max(struct(id))"
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
    "structs that are NULL": [f"max(if({NOISE} % 3 = 0, {LONG}, NULL))", f"min(if(id = 5, {DEEP}, NULL))"],
    "sketches": [f"theta_sketch_agg({NOISE}, 12)", "theta_sketch_agg(cast(id as string), 5)"],
    "sketches with others": [
        "sum(cast(id as decimal(38, 2)))",
        f"theta_sketch_agg(if(id % 2 = 0, NULL, {NOISE}), 12)",
        f"max({LONG})",
        f"min({NOISE})",
        f"try_sum(cast({NOISE} as decimal(36, 0)) * 1000000000000000000000000000000)",
        "count(1)",
    ],
    "with what is distinct": [f"count(DISTINCT {NOISE})", f"max({LONG})"],
    "with means": [f"avg(cast({NOISE} as double))", f"min({LONG})", f"max({NOISE})", "bool_or(id % 3 = 0)"],
}


@contextmanager
def groups_of(spark: SparkSession, size: int | str) -> Iterator[None]:
    """Plans that are made meanwhile."""
    spark.conf.set(GROUP_BYTES, str(size))
    try:
        yield
    finally:
        spark.conf.unset(GROUP_BYTES)


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


INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.mark.parametrize("aggregates", AGGREGATES.values(), ids=AGGREGATES)
def test_it_is_the_answer_of_spark_where_no_program_is_made(
    spark: SparkSession, aggregates: list[str]
) -> None:
    """As the SQL server computes a statement over few rows."""
    session = spark.newSession()
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    rows = session.range(0, 600, 1, 3).selectExpr(f"{KEYS['structs']} AS key", "id")
    found = rows.groupBy("key").agg(*map(expression, aggregates))

    plain = answer(session, found, PLAIN)
    assert all(answer(session, found, size) == plain for size in SIZES)


def test_sums_of_doubles_are_equal_but_for_their_last_digits(spark: SparkSession) -> None:
    """They depend on where parts are handed on, as they do where partitions end."""
    rows = spark.range(0, 600, 1, 3).selectExpr("id % 7 AS key", f"{NOISE} * 0.1D AS value", "id")
    found = rows.groupBy("key").agg(expression(TOP), expression("sum(value) AS total"))
    totals = {}
    for size in (PLAIN, *SIZES):
        with groups_of(spark, size):
            totals[size] = {row.key: row.total for row in found.select("*").collect()}

    assert all(totals[size] == pytest.approx(totals[PLAIN], rel=1e-12) for size in SIZES)


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
    found = spark.range(5).where("id > 9").groupBy(expression("-id")).agg(expression(TOP))

    assert answer(spark, found, SIZES[-1]) == []


def test_no_row_is_sorted_before_it_is_grouped(spark: SparkSession) -> None:
    rows = spark.range(0, 100, 1, 3).selectExpr("id % 7 AS key", "id")

    over_an_exchange = plan(rows.groupBy("key").agg(expression(TOP)))
    assert [over_an_exchange.count(one) for one in ("Sort [", "HashedGroups", "Exchange")] == [1, 1, 1]
    assert over_an_exchange.index("Sort [") < over_an_exchange.index("HashedGroups")
    sketched = plan(rows.groupBy("key").agg(expression("theta_sketch_agg(id, 12)")))
    assert [sketched.count(one) for one in ("Sort [", "HashedGroups", "Exchange")] == [0, 1, 1]
    in_one = plan(rows.coalesce(1).groupBy("key").agg(expression(TOP)))
    assert [in_one.count(one) for one in ("Sort [", "HashedGroups", "Exchange")] == [1, 1, 0]
    assert in_one.index("Sort [") < in_one.index("HashedGroups")


@pytest.mark.parametrize(
    "aggregates",
    [
        ["max(struct(id)) FILTER (WHERE id > 3)"],
        ["max(struct(id))", "max(cast(id as string))"],
        ["max(struct(id))", "collect_set(id)"],
        ["sum(cast(id as decimal(38, 0)))", "max(cast(id as string))"],
        ["theta_union_agg(sketch, 12)"],
    ],
)
def test_what_it_does_not_know_is_left_to_spark(spark: SparkSession, aggregates: list[str]) -> None:
    (sketch,) = spark.range(9).agg(expression("hex(theta_sketch_agg(id, 12))")).collect()[0]
    rows = spark.range(0, 100, 1, 2).selectExpr("id % 7 AS key", "id", f"X'{sketch}' AS sketch")
    found = rows.groupBy("key").agg(*map(expression, aggregates))

    assert "HashedGroups" not in plan(found)
    assert len(found.collect()) == 7


def test_one_group_of_all_rows_is_left_to_spark(spark: SparkSession) -> None:
    found = spark.range(9).agg(expression("theta_sketch_estimate(theta_sketch_agg(id, 12))"))

    assert "HashedGroups" not in plan(found)
    assert found.collect()[0][0] == 9


LCASE = "if(id % 2 = 0, 'a', 'A') COLLATE UTF8_LCASE"
ENDED = {
    "distinct": ("SELECT DISTINCT key FROM rows", 2),
    "union": ("SELECT key FROM rows UNION SELECT key FROM rows", 2),
    "beside a struct": (f"SELECT five, {TOP}, count(DISTINCT key) FROM rows GROUP BY five", 5),
    "beside a sketch": ("SELECT five, theta_sketch_agg(id), count(DISTINCT key) FROM rows GROUP BY five", 5),
}


@pytest.mark.parametrize("asked, groups", ENDED.values(), ids=ENDED)
@pytest.mark.parametrize("key", ["cast(id % 2 as string)", LCASE], ids=["binary", "collated"])
def test_what_ends_groups_is_left_to_spark(spark: SparkSession, key: str, asked: str, groups: int) -> None:
    """Whatever its parts were made by. Keys of a collation are equal where their bytes are not."""
    rows = spark.range(0, 600, 1, 3).selectExpr(f"{key} AS key", "id", "id % 5 AS five")
    rows.createOrReplaceTempView("rows")
    found = {}
    for size in (PLAIN, 1):
        with groups_of(spark, size):
            found[size] = sorted(map(repr, spark.sql(asked).collect()))

    assert found[1] == found[PLAIN]
    assert len(found[PLAIN]) == (1 if groups == 2 and key == LCASE else groups)


@pytest.mark.parametrize("key", [LCASE, f"struct({LCASE})", f"array({LCASE})"])
def test_keys_that_are_equal_in_several_ways_are_left_to_spark(spark: SparkSession, key: str) -> None:
    rows = spark.range(0, 600, 1, 3).selectExpr(f"{key} AS key", "id")
    found = rows.groupBy("key").agg(expression(TOP))

    assert "HashedGroups" not in plan(found)
    assert len(found.collect()) == 1


def test_a_struct_may_ask_another_table(spark: SparkSession) -> None:
    spark.range(0, 100, 1, 2).selectExpr("id % 7 AS key", "id").createOrReplaceTempView("rows")
    asked = "SELECT key, max(struct(id + (SELECT max(id) FROM rows), id)) FROM rows GROUP BY key"

    assert answer(spark, spark.sql(asked), SIZES[-1]) == answer(spark, spark.sql(asked), PLAIN)


def test_a_sum_may_be_too_large_for_a_while(spark: SparkSession) -> None:
    values = "cast(element_at(array(9, 9, -9), cast(id as int) + 1) as decimal(38, 0)) * power"
    rows = spark.range(0, 3, 1, 1).selectExpr("1 AS key", "id", "cast(1e37 as decimal(38, 0)) AS power")
    rows = rows.selectExpr("key", "id", f"cast({values} as decimal(38, 0)) AS value")
    found = rows.groupBy(expression("key + id - id")).agg(
        expression("max(struct(id))"), expression("try_sum(value)"), expression("sum(value)")
    )

    assert answer(spark, found, SIZES[-1]) == answer(spark, found, PLAIN)
    assert "90000000000000000000000000000000000000" in answer(spark, found, PLAIN)[0]


@pytest.mark.parametrize("more", ["explode", "join", "cross join"])
def test_rows_that_one_row_becomes_are_sorted_by_spark(spark: SparkSession, more: str) -> None:
    """It would collect all of them in memory before the first one is grouped."""
    rows = spark.range(0, 30, 1, 2).selectExpr("id % 7 AS key", "id")
    many = {
        "explode": rows.selectExpr("key", "explode(sequence(1, 9)) AS id"),
        "join": rows.join(rows.selectExpr("key", "id AS other"), "key"),
        "cross join": rows.crossJoin(rows.selectExpr("id AS other").limit(3)),
    }[more]

    found = plan(many.groupBy("key").agg(expression(TOP)))
    assert "HashedGroups" not in found
    exchanged = many.repartition(3).groupBy("key").agg(expression(TOP))
    assert "HashedGroups" in plan(exchanged)


@pytest.mark.parametrize("size", ["0", "0b"])
def test_without_memory_for_it_plans_are_those_of_spark(spark: SparkSession, size: str) -> None:
    with groups_of(spark, size):
        found = spark.range(9).groupBy(expression("id % 2")).agg(expression(TOP))
        assert "HashedGroups" not in plan(found)
        assert len(found.collect()) == 2


@pytest.mark.parametrize("size", ["much", "-1"])
def test_a_size_that_is_none_is_refused(spark: SparkSession, size: str) -> None:
    with groups_of(spark, size):
        assert spark.range(9).count() == 9
        with pytest.raises(Exception, match=rf"spark\.twinlake\.groupBytes is a size like 64m, .*not {size}"):
            spark.range(9).groupBy(expression("id % 2")).agg(expression(TOP)).collect()


@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_what_is_above_it_has_its_order(spark: SparkSession, adaptive: str) -> None:
    """In one partition nothing is exchanged, which would sort again."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    rows = session.range(0, 5_000, 1, 3).selectExpr("pmod(xxhash64(id), 91) AS key", "id").coalesce(1)
    newest = rows.groupBy("key").agg(expression("max(struct(id, key)) AS newest"))

    found = newest.join(newest.withColumnRenamed("newest", "again"), "key").where("newest = again")

    shown = found.select("*")
    assert len(shown.collect()) == newest.count()  # an adaptive plan is whole once it has run
    assert "HashedGroups" in plan(shown)
    assert found.count() == newest.count() == rows.select("key").distinct().count()


CHOSEN = replace(
    TOTALS, name="chosen",
    measures={"first": First("words", by="at"), "most": ArgMax("words", by="ratio"), "wide": Sum("wide")},
)  # fmt: skip
SKETCHED = replace(
    WINDOWED, name="sketched", measures={"sales": Sum("wide"), "distinct": CountDistinct("words")}
)


@pytest.mark.parametrize("table", [CHOSEN, SKETCHED, NEWEST], ids=lambda table: table.name)
def test_a_state_is_the_same_without_it(spark: SparkSession, table: Aggregate | Latest) -> None:
    rows = packed(spark, generated(80)).repartition(3)
    states = table.partial(rows)

    assert answer(spark, states, 1) == answer(spark, states, SIZES[-1]) == answer(spark, states, PLAIN)


def test_a_state_is_merged_the_same_without_it(spark: SparkSession) -> None:
    states = NEWEST.partial(packed(spark, generated(80)).repartition(3))
    merged = NEWEST.merge(states.unionAll(states))

    assert answer(spark, merged, 1) == answer(spark, merged, SIZES[-1]) == answer(spark, merged, PLAIN)
    assert len(merged.collect()) == len(states.collect())


def test_rows_in_the_order_that_somebody_asked_for_stay_in_it(spark: SparkSession) -> None:
    rows = spark.range(0, 100, 1, 1).selectExpr("id % 7 AS key", "id").sortWithinPartitions("key", "id")
    found = rows.groupBy("key").agg(expression("first(id)"), expression(TOP))

    assert "HashedGroups" not in plan(found)
    assert [one[1] for one in found.orderBy("key").collect()] == [*range(7)]


def parts_of(spark: SparkSession, found: DataFrame, size: int) -> int:
    """How many groups are handed on: those of a table that is emptied often are more than its groups are."""
    with groups_of(spark, size):
        return int(grouped(found).execute().count())


def grouped(found: DataFrame) -> Any:
    """The node of its plan."""
    java: Any = found._jdf
    node = java.queryExecution().executedPlan()
    while node.nodeName() != "HashedGroups":
        node = node.children().head()
    return node


def test_sketches_are_counted_as_large_as_they_are(spark: SparkSession) -> None:
    def parts(groups: int, each: int, lg: int, size: int) -> int:
        rows = spark.range(0, groups * each, 1, 1).selectExpr(
            f"id % {groups} AS key", f"id div {groups} AS of"
        )
        found = rows.repartition(1).groupBy("key").agg(expression(f"theta_sketch_agg(of, {lg})"))
        return parts_of(spark, found, size)

    page = 1 << 20
    # of 12: 128 places of 8 bytes, 1,024 from 65 values on
    assert parts(900, 60, 12, 3 * page) == 900 < parts(900, 70, 12, 3 * page)
    assert parts(90, 600, 8, 3 * page) == 90  # 512 places, and never more
    assert parts(90, 600, 12, 3 * page) > 90  # 8,192


@pytest.fixture
def memory(spark: SparkSession) -> Iterator[Any]:
    """Spark's, which has a task fail that gives back too little."""
    jvm: Any = spark._jvm
    environment = jvm.org.apache.spark.SparkEnv.get()
    leaks = "spark.unsafe.exceptionOnMemoryLeak"
    environment.conf().set(leaks, "true")
    yield environment.memoryManager()
    environment.conf().remove(leaks)


@contextmanager
def scarce(spark: SparkSession, memory: Any) -> Iterator[None]:
    """A hundred other tasks hold nearly all of it."""
    jvm: Any = spark._jvm
    free = memory.maxOnHeapStorageMemory() - memory.storageMemoryUsed()
    others = range(-100, 0)
    try:
        for task in others:
            memory.acquireExecutionMemory(free // 101, task, jvm.org.apache.spark.memory.MemoryMode.ON_HEAP)
        yield
    finally:
        for task in others:
            memory.releaseAllExecutionMemoryForTask(task)


def heavy(spark: SparkSession) -> DataFrame:
    """40,000 groups of a kilobyte, each of two rows that are far apart."""
    rows = spark.range(0, 80_000, 1, 1).selectExpr("id % 40000 AS key", "id")
    return rows.groupBy("key").agg(expression("max(struct(id, repeat('x', 900)))"))


def test_groups_take_no_memory_that_spark_does_not_have(spark: SparkSession, memory: Any) -> None:
    """They are handed on sooner, and what they had is given back."""
    found = heavy(spark)

    assert parts_of(spark, found, 1 << 30) == 40_000
    with scarce(spark, memory):
        assert 40_000 < parts_of(spark, found, 1 << 30) < 80_000


def test_who_wants_no_more_groups_leaves_no_memory_taken(spark: SparkSession, memory: Any) -> None:
    found = heavy(spark)
    with groups_of(spark, 1 << 30):
        taken = grouped(found).execute().take(1)

    assert len(taken) == 1


@pytest.mark.parametrize("partitions", [1, 201])
def test_who_takes_groups_gets_its_first_memory_from_them(
    spark: SparkSession, memory: Any, partitions: int
) -> None:
    """A sort, or an exchange of so many partitions that it sorts: they begin once the table has all."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    found = heavy(session)
    with scarce(spark, memory), groups_of(session, 1 << 30):
        shown = found.selectExpr("*")
        assert "HashedGroups" in plan(shown)
        assert len(shown.collect()) == 40_000

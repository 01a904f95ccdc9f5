"""A kept plan computes of every batch what a plan made for that batch does."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.laws.histories import generated, packed
from tests.laws.tables import NEWEST, TOTALS, WINDOWED, WORDS
from tests.longer import some
from twinlake.base.waiting import wait_for
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.latest import Latest
from twinlake.spark import prepared_plan
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan, TooLargeError, computed
from twinlake.spark.session import cancel


def rows_of(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


@pytest.fixture(scope="module")
def batches(spark: SparkSession) -> list[DataFrame]:
    """Of different sizes, the last one without rows."""
    many = generated(60)
    cuts = [many[:1], many[1:4], many[4:30], many[30:31], many[31:]]
    return [*(packed(spark, part) for part in cuts), packed(spark, many[:1]).limit(0)]


def adaptive(spark: SparkSession) -> SparkSession:
    """A session whose plans Spark changes while they run, as an operator of a cluster may want it."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    return session


@pytest.mark.parametrize("is_adaptive", some([False, True]), ids=["fixed", "adaptive"])
@pytest.mark.parametrize("table", [WINDOWED, TOTALS, NEWEST, WORDS], ids=lambda table: table.name)
def test_a_kept_plan_says_of_each_batch_what_a_fresh_one_says(
    spark: SparkSession, table: Aggregate | Latest, batches: list[DataFrame], is_adaptive: bool
) -> None:
    schema, session = batches[0].schema, adaptive(spark) if is_adaptive else spark
    partial = PreparedPlan(session, schema, table.partial)
    states = table.partial(batches[0]).schema
    merge = PreparedPlan(session, states, table.merge)

    for rows in batches:
        fresh = computed(table.partial(rows.coalesce(1)))
        kept = partial.run(ArrowFile(spark, computed(rows)))
        assert kept.schema == fresh.schema
        assert rows_of(kept) == rows_of(fresh) == rows_of(partial.run(rows.coalesce(1)))
        stored = ArrowFile(spark, pa.concat_tables([kept, kept.slice(0, 3)]))
        assert merge.run(stored).num_rows == kept.num_rows
        assert rows_of(merge.run(ArrowFile(spark, kept))) == rows_of(kept)


def test_a_plan_with_an_exchange_is_refused(spark: SparkSession) -> None:
    schema = spark.range(0).schema

    for session in (spark, adaptive(spark)):
        with pytest.raises(Exception, match="an exchange cannot be kept"):
            PreparedPlan(session, schema, lambda source: source.repartition(2).groupBy("id").count())


def test_a_name_of_an_exchange_is_none(spark: SparkSession) -> None:
    texts = [f"'{number} Stock Exchange at great length' AS ExchangeRate{number}" for number in range(200)]
    plan = PreparedPlan(spark, spark.range(0).schema, lambda source: source.selectExpr("id", *texts))
    assert plan.run(ArrowFile(spark, pa.table({"id": [5]}))).num_columns == 201

    with pytest.raises(Exception, match="an exchange cannot be kept"):  # however deep in a wide plan
        PreparedPlan(
            spark, spark.range(0).schema, lambda source: source.repartition(2).selectExpr("id", *texts)
        )


def test_a_result_that_is_too_large_says_so(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, rows = (
        PreparedPlan(spark, spark.range(0).schema, lambda source: source),
        pa.table({"id": [5] * 1_000}),
    )

    monkeypatch.setattr(prepared_plan, "MOST_BYTES", 8_000)
    with pytest.raises(TooLargeError, match="8,000 bytes"):
        plan.run(ArrowFile(spark, rows))
    monkeypatch.setattr(prepared_plan, "MOST_BYTES", 12_000)
    assert plan.run(ArrowFile(spark, rows)).num_rows == 1_000


def test_a_plan_that_is_kept_waits_for_no_slot_of_the_scheduler(spark: SparkSession) -> None:
    """Spark takes none away: a rebuild's tasks hold them for seconds."""
    context, endless = spark.sparkContext, spark.range(0, 1 << 60, 1, 64).selectExpr("sum(id % 7)")
    plan = PreparedPlan(spark, spark.range(0).schema, lambda source: source.selectExpr("id + 1 AS next"))

    def hold() -> None:
        context.addJobTag("held")
        endless.collect()

    with ThreadPoolExecutor() as threads:
        held = threads.submit(hold)
        tracker = context.statusTracker()
        wait_for("the tasks", lambda: tracker.getActiveStageIds() or None, 30)
        try:
            run = threads.submit(plan.run, ArrowFile(spark, pa.table({"id": [5]})))
            assert run.result(timeout=20).to_pylist() == [{"next": 6}]
            assert not held.done()
        finally:
            cancel(context, "held")
        with pytest.raises(Exception, match="cancelled"):
            held.result()


def test_nothing_is_left_of_a_run_that_fails_and_the_next_one_is_right(spark: SparkSession) -> None:
    plan = PreparedPlan(spark, spark.range(0).schema, lambda source: source.selectExpr("10 / id AS tenth"))
    rows = [ArrowFile(spark, pa.table({"id": [id]})) for id in (0, 5)]
    given = {one.path for one in rows}
    gc.collect()  # a traceback is a cycle: what failed in another test may still hold its files
    before = set(rows[0].path.parent.iterdir())
    assert given <= before

    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        plan.run(rows[0])
    assert plan.run(rows[1]).to_pylist() == [{"tenth": 2.0}]
    del rows
    gc.collect()
    assert set(next(iter(given)).parent.iterdir()) == before - given
    with pytest.raises(Exception, match="is empty"):
        plan._plan.run("/nowhere", 1)

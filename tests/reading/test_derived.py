"""A reader of a table that reads tables sees the versions of its release, and what was appended to them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from jobs.tables import sales_per_region
from tests.project import OURS
from tests.reading.conftest import ALL, PAID, Released, SqlServer
from twinlake.kinds.derived import Derived
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.topics.topic import load_topic

SHARES = Derived(
    name="shares", reads=("sales_per_region", "latest_order"), keys=("region",), by=(),
    columns=("region", "orders", "customers", "final"), broadcast=("latest_order",),
    sql="""
        WITH newest AS (SELECT count(*) AS customers FROM latest_order WHERE status IS NOT NULL)
        SELECT region, sum(orders) AS orders, max(newest.customers) AS customers, every(final) AS final
        FROM sales_per_region CROSS JOIN newest
        WHERE (SELECT count(*) FROM latest_order) > 0 AND region IN (SELECT region FROM latest_order)
        GROUP BY region
    """,
)  # fmt: skip
TOTAL = "SELECT sum(orders) AS n, count(*) AS regions, every(final) AS final FROM {schema}.shares"


def shares(released: Released, build: int, sales: Version) -> Version:
    """Over these sales, and the orders that every release has."""
    latest = next(one for one in released.others if one.table == "latest_order")
    made = Version(
        table="shares", fingerprint=f"{build:012x}", build=build, definition=SHARES.to_json(),
        topics=("orders",), contracts={}, created_at="2026-01-31T12:00:00Z",
        reads={"sales_per_region": sales.name, "latest_order": latest.name},
    )  # fmt: skip
    made.save(released.lake)
    return made


@pytest.mark.faults
def test_it_is_switched_with_what_it_reads_and_follows_their_commits(
    spark: SparkSession, sql: SqlServer, released: Released
) -> None:
    own = replace(released.paid_orders, build=90)  # a version that this test may append to
    own.save(released.lake)
    log = Log(spark, released.lake, load_topic("orders", OURS))
    sales = replace(sales_per_region.TABLE, where="status <> 'cancelled'").partial(log.rows(0, 1))
    states = sales.selectExpr("*", "0 AS _segment")
    told = {
        "kind": "step", "step": 1, "segment": 0, "position": {"orders": 1}, "watermark": 1700000000_000_000,
    }  # fmt: skip
    delta.append(states, own.path(released.lake), "test", 1, told, ("_segment",))
    old = released.promote(released.all_orders, shares(released, 91, released.all_orders))
    sql.wait_until(lambda status: status["release"] == old.number)
    before = sql.rows(TOTAL.format(schema="serve"))

    new = released.promote(own, shares(released, 92, own))
    sql.wait_until(lambda status: status["release"] == new.number)
    after = sql.rows(TOTAL.format(schema="serve"))
    fixed = sql.rows(TOTAL.format(schema=f"release_{old.number}"))
    last = {**told, "step": 2, "position": {"orders": 2}, "watermark": 1700090000_000_000}
    delta.append(states, own.path(released.lake), "test", 2, last, ("_segment",))
    fed = sql.rows("SELECT sum(orders) AS n FROM serve.shares")
    filtered = sql.rows("SELECT customers FROM serve.shares WHERE region = 'r1'")
    final = "SELECT every(final) AS final FROM serve.shares"
    sql.wait_until(lambda _: sql.rows(final) == [{"final": True}])  # by the watermark of what it reads
    released.promote(released.all_orders)

    assert before == [{"n": ALL, "regions": 5, "final": False}] == fixed
    assert after == [{"n": PAID, "regions": 5, "final": False}]
    assert fed == [{"n": 2 * PAID}] and filtered == [{"customers": 50}]

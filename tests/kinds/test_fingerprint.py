"""The fingerprint is the name of the meaning: what changes it and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.kinds import compile
from jobs.kinds import fingerprint as module
from jobs.kinds.measure import Avg, Count, Max, Sum
from jobs.kinds.table import Aggregate, Latest, Table, Tumbling
from jobs.tables import TABLES
from jobs.topics.topic import Topic, load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders")
BASE = Aggregate(
    name="t", source="orders", where="status <> 'cancelled'",
    columns={"k": "region", "at": "ordered_at", "x": "amount * 2"}, keys=("k",),
    window=Tumbling(on="at", size="1 minute"), measures={"total": Sum("x"), "n": Count()},
)  # fmt: skip
MANY = ", ".join(f"'{n}'" for n in range(60))

SAME = {
    "whitespace and case of keywords": replace(BASE, where="  STATUS   <>\n 'cancelled' "),
    "a comment": replace(BASE, where="status <> 'cancelled' -- they do not count"),
    "an intermediate column's name": replace(
        BASE,
        columns={"k": "region", "moment": "ordered_at", "twice": "amount * 2"},
        window=Tumbling(on="moment", size="1 minute"),
        measures={"total": Sum("twice"), "n": Count()},
    ),
    "another way to write the size": replace(BASE, window=Tumbling(on="at", size="60 seconds")),
}
OTHER = {
    "a constant in the condition": replace(BASE, where="status <> 'pending'"),
    "no condition": replace(BASE, where=None),
    "a constant in a column": replace(BASE, columns={**BASE.columns, "x": "amount * 3"}),
    "the 50th of 60 constants": replace(BASE, where=f"status IN ({MANY.replace('49', 'x')})"),
    "the window's size": replace(BASE, window=Tumbling(on="at", size="2 minutes")),
    "no window": replace(BASE, window=None),
    "the measure": replace(BASE, measures={"total": Avg("x"), "n": Count()}),
    "another measure": replace(BASE, measures={"total": Max("x"), "n": Count()}),
    "an output column's name": replace(BASE, measures={"sales": Sum("x"), "n": Count()}),
    "the key": replace(BASE, columns={**BASE.columns, "k": "status"}),
}


@pytest.fixture(scope="module")
def base(spark: SparkSession) -> str:
    return compile.fingerprint(BASE, ORDERS, spark)


@pytest.mark.parametrize("what", SAME)
def test_how_it_is_written_does_not_count(spark: SparkSession, base: str, what: str) -> None:
    assert compile.fingerprint(SAME[what], ORDERS, spark) == base


def test_what_it_means_counts(spark: SparkSession, base: str) -> None:
    found = {what: compile.fingerprint(table, ORDERS, spark) for what, table in OTHER.items()}
    found["the 50th of 60 constants, as it was"] = compile.fingerprint(
        replace(BASE, where=f"status IN ({MANY})"), ORDERS, spark
    )

    assert len({base, *found.values()}) == len(found) + 1


def test_deleting_and_ordering_count(spark: SparkSession) -> None:
    table = Latest(
        name="t", source="orders",
        columns={"k": "customer", "a": "ordered_at", "b": "order_id", "c": "status"},
        keys=("k",), order=("a",), values=("c",),
    )  # fmt: skip
    others = [
        replace(table, order=("b",)),
        replace(table, order=("a", "b")),
        replace(table, delete_when="c = 'cancelled'"),
        replace(table, values=("c", "b")),
    ]

    assert len({compile.fingerprint(one, ORDERS, spark) for one in (table, *others)}) == 5


def test_upstream_and_versions_count(spark: SparkSession, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(ORDERS.contract, late_after=timedelta(hours=4))
    other_contract: Topic = replace(ORDERS, contract=late)
    other_words = replace(ORDERS, contract=replace(ORDERS.contract, version="9.9.9", file="elsewhere"))

    assert compile.fingerprint(BASE, other_contract, spark) != base
    assert compile.fingerprint(BASE, other_words, spark) == base
    monkeypatch.setattr(module, "STATE_CODE", module.STATE_CODE + 1)
    assert compile.fingerprint(BASE, ORDERS, spark) != base


def test_time_zone_and_ansi_count(spark: SparkSession, base: str) -> None:
    for key, value in (("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")):
        before = spark.conf.get(key)
        spark.conf.set(key, value)
        try:
            assert compile.fingerprint(BASE, ORDERS, spark) != base, key
        finally:
            spark.conf.set(key, before)
    assert compile.fingerprint(BASE, ORDERS, spark) == base


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_stored_definition_has_the_fingerprint_of_its_file(spark: SparkSession, table: Table) -> None:
    stored = Table.from_json(table.to_json())

    assert compile.fingerprint(stored, ORDERS, spark) == compile.fingerprint(table, ORDERS, spark)


def test_filters_on_key_and_window_reach_the_scan(spark: SparkSession, tmp_path) -> None:
    """No filter of a reader may be held up by the merge."""
    topic_rows = module.empty_rows(ORDERS, spark)
    path = str(tmp_path / "partials")
    compile.partial(BASE, topic_rows).write.format("delta").save(path)
    text = compile.view_sql(
        BASE, f"delta.`{path}`", "TIMESTAMP '2026-01-01 00:00:00Z'", late_after=timedelta(hours=3)
    )

    plan = (
        spark.sql(text).where("k = 'north' AND window_start >= TIMESTAMP '2026-01-01 00:00:00Z'")
        ._jdf.queryExecution().executedPlan().toString()
    )  # fmt: skip

    pushed = plan[plan.index("PushedFilters") :]
    assert "EqualTo(k,north)" in pushed and "GreaterThanOrEqual(window_start" in pushed

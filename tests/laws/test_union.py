"""The law of Union: tables of two topics are shown as one of all their records, however each was cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import activity, oracle
from tests.laws.cuts import Shown, wrong_rows
from tests.laws.histories import START, History, Record, generated, packed
from tests.laws.tables import NEWEST, THREE, TOTALS, WINDOWED, WORDS, stored
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.union import Union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.laws.tables import Aggregate

Expected = Callable[[Iterable[Record]], Shown]
LATE = timedelta(hours=3)


def two(table: Any) -> Union:
    """Over two topics of the same records' fields."""
    one, other = replace(table, name="one"), replace(table, name="other", inputs=("more",))
    return Union(name="both", of=("one", "other")).bound({"one": one, "other": other})


def both(spark: SparkSession, union: Union, rows: DataFrame, clock: ViewClock) -> DataFrame:
    """Every record in one of the topics, by a hash: most keys have some in each."""
    relations = {}
    for number, name in enumerate(union.of):
        part = rows.where(f"pmod(hash(_epoch, _partition, _offset), 2) = {number}")
        relations[name] = f"union_{name}"
        stored(union.table(name), part).createOrReplaceTempView(relations[name])  # type: ignore[arg-type]
    return spark.sql(union.view(relations, clock))


@pytest.fixture(scope="module")
def many(seed: int) -> list[History]:
    return [*generated(200), *activity.activity(seed, 100)]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[History]) -> DataFrame:
    return packed(spark, many).cache()


def totals(records: Iterable[Record]) -> Shown:
    return oracle.aggregate(records, windowed=False)


def minutes(records: Iterable[Record]) -> Shown:
    found = oracle.aggregate(records, windowed=True)
    return {key: {"window_end": key[-1] + timedelta(minutes=1), **values} for key, values in found.items()}


TABLES: dict[str, tuple[Any, Expected]] = {
    "totals": (TOTALS, totals),
    "windowed": (WINDOWED, minutes),
    "words": (WORDS, oracle.words),
    "newest": (NEWEST, oracle.latest),
    "three": (THREE, lambda records: oracle.top_rows(records, rows=3)),
    "visits": (activity.VISITS, activity.sessions),
    "sliding": (activity.SLIDING, activity.windows),
}


@pytest.mark.parametrize("shape", TABLES)
def test_two_topics_are_shown_as_one_for_every_cut_and_merge(
    spark: SparkSession, many: list[History], rows: DataFrame, shape: str
) -> None:
    table, expected = TABLES[shape]

    assert wrong_rows(both(spark, two(table), rows, ViewClock()), table, many, expected) == []


@pytest.mark.parametrize("shape", ["totals", "newest", "visits"])
def test_a_topic_that_is_left_out_is_found(
    spark: SparkSession, many: list[History], rows: DataFrame, shape: str
) -> None:
    table, expected = TABLES[shape]
    one = rows.where("pmod(hash(_epoch, _partition, _offset), 2) = 0")

    assert wrong_rows(both(spark, two(table), one, ViewClock()), table, many, expected)


@pytest.mark.parametrize("table", [WINDOWED, activity.VISITS], ids=lambda table: table.name)
def test_a_row_is_final_once_it_is_by_the_watermark_of_each_topic(
    spark: SparkSession, rows: DataFrame, table: Aggregate
) -> None:
    early, late = (f"TIMESTAMP '{(START + LATE + timedelta(minutes=m)).isoformat()}'" for m in (-60, 60))

    def finals(made: str, more: str) -> set[tuple[object, ...]]:
        clock = ViewClock(watermarks={"made": made, "more": more}, late_after={"made": LATE, "more": LATE})
        view = both(spark, two(table), rows, clock)
        return set(map(tuple, view.where("final").select(*table.view_keys).collect()))

    assert finals(early, late) == finals(late, early) == finals(early, early) < finals(late, late)


def test_records_of_two_topics_with_one_id_and_one_order_go_by_their_values(spark: SparkSession) -> None:
    at = "TIMESTAMP '2026-01-01'"
    same = f"'h' AS history, 'k' AS key, {at} AS at, 0 AS _epoch, 0 AS _partition, 7L AS _offset"
    rest = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in (
        ("block", "int"), ("merged", "int"), ("base", "int"), ("wide", "decimal(38,2)"), ("ratio", "double"),
        ("words", "string"),
    ))  # fmt: skip
    for table in (NEWEST, THREE):
        union = two(table)
        found = []
        for amounts in ((1, 2), (2, 1)):
            relations = {}
            for name, amount in zip(union.of, amounts, strict=True):
                row = f"SELECT {same}, CAST({amount} AS decimal(12,2)) AS amount, {rest}, false AS gone"
                hashed = spark.sql(f"{row}, {at} AS _timestamp")
                relations[name] = f"tied_{name}"
                union.table(name).partial(hashed).createOrReplaceTempView(relations[name])  # type: ignore[attr-defined]
            rows = spark.sql(union.view(relations, ViewClock())).orderBy("amount").collect()
            found.append([str(row["amount"]) for row in rows])
        assert found[0] == found[1] and found[0][-1] == "2.00"


def test_behind_a_row_are_the_rows_of_its_key_in_each_table(spark: SparkSession, rows: DataFrame) -> None:
    union = two(WINDOWED)
    view = both(spark, union, rows, ViewClock()).where("key = 'a'").limit(1).localCheckpoint()
    view.createOrReplaceTempView("union_row")
    (row,) = view.collect()
    counted = 0
    for name in union.of:
        table: Any = union.table(name)
        spark.sql(table.view({name: f"union_{name}"}, ViewClock())).createOrReplaceTempView("union_shown")
        found = spark.sql(union.behind(name, "union_shown", table.output, "union_row")).collect()
        assert [tuple(one[key] for key in union.view_keys) for one in found] in (
            [], [tuple(row[key] for key in union.view_keys)]
        )  # fmt: skip
        counted += sum(one["n"] for one in found)

    assert counted == row["n"]

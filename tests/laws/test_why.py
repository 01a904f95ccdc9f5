"""The rules that have a reason: each fails here without what the platform does about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import oracle
from tests.laws.histories import START, History, Record, packed
from tests.laws.tables import NEWEST, WINDOWED, stored, view_text
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import CountDistinct
from twinlake.kinds.measures.totals import Sum
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING: dict[str, Any] = {
    "key": "a", "at": None, "amount": None, "wide": None, "ratio": None, "words": None, "gone": None
}  # fmt: skip


def _history(*fields: dict[str, Any]) -> History:
    records = tuple(Record(record_id=(0, 0, n), **{**NOTHING, **found}) for n, found in enumerate(fields))
    return History(records=records, places=tuple((n, n, 0) for n in range(len(fields))))


def _seen(spark: SparkSession, table: Any, history: History) -> list[dict[str, Any]]:
    stored(table, packed(spark, [history])).createOrReplaceTempView("why")
    return [row.asDict() for row in spark.sql(view_text(table, "why")).where("history = '0/cut'").collect()]


TIES = _history({"at": START, "words": "z"}, {"at": START, "words": "y"}, {"at": None, "words": "zz"})


def test_ties_are_decided_by_the_coordinate(spark: SparkSession) -> None:
    expected = oracle.latest(TIES.records)["a",]

    seen = _seen(spark, NEWEST, TIES)

    assert [row["words"] for row in seen] == ["y"] == [expected["words"]]


def test_without_the_coordinate_at_its_end_an_order_decides_ties_wrongly(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = NEWEST._orders
    without = tuple(name for name in whole if name not in record_id.KEY)
    monkeypatch.setattr(Latest, "_orders", property(lambda table: without))

    seen = _seen(spark, NEWEST, TIES)

    assert whole == (*without, *record_id.KEY) and without
    assert [row["words"] for row in seen] == ["z"]


HUGE = [Decimal("9" * 36 + ".00"), Decimal("9" * 36 + ".00"), Decimal("-" + "9" * 36 + ".00")]


def test_an_overflow_shows_null_in_every_cut_and_leaves_the_view_readable(spark: SparkSession) -> None:
    history = _history(*({"wide": value, "amount": Decimal("1.25")} for value in HUGE))

    table = replace(WINDOWED, window=None)
    stored(table, packed(spark, [history])).createOrReplaceTempView("why")
    seen = spark.sql(view_text(table, "why")).collect()

    assert [(row["n"], row["sales"], row["wide"], row["wide_average"]) for row in seen] == [
        (3, Decimal("3.75"), None, None)
    ] * 2


def test_a_plain_merge_of_try_sum_would_depend_on_the_cut(spark: SparkSession) -> None:
    """The same three values: overflow in one cut, a number in the other."""
    values = ", ".join(f"({n}, CAST('{value}' AS DECIMAL(38,2)))" for n, value in enumerate(HUGE))
    cuts = [
        spark.sql(
            f"SELECT try_sum(s) FROM (SELECT try_sum(x) s FROM VALUES {values} AS t(n, x) GROUP BY {block})"
        ).first()[0]  # type: ignore[index]
        for block in ("n = 0", "n = 2")
    ]

    assert cuts[0] != cuts[1]


def test_spark_cannot_take_the_absolute_value_of_a_long_decimal(spark: SparkSession) -> None:
    """Why overflow is not decided by sum(abs(x)): when this fails, Spark has been repaired."""
    from pyspark.errors import ArithmeticException

    with pytest.raises(ArithmeticException):
        spark.sql(f"SELECT abs(x) FROM VALUES (CAST('-{'9' * 36}' AS DECIMAL(38,2))) AS t(x)").collect()


def test_sketches_have_one_byte_form_however_the_ids_were_cut(spark: SparkSession) -> None:
    """30,000 ids, far beyond the sketch's entries, in three cuts: by block, interleaved and as a whole."""
    rows = spark.range(30_000).selectExpr(
        "'a' AS key", "CAST(id AS STRING) AS words", "0 AS _epoch", "0 AS _partition", "id AS _offset",
        "TIMESTAMP '2026-01-01 00:00:00Z' AS _timestamp", "id AS n",
    )  # fmt: skip
    table = Aggregate(
        name="ids", inputs=("made",), columns={"key": "key", "words": "words"}, keys=("key",),
        measures={"ids": CountDistinct("words")},
    )  # fmt: skip
    forms = set()
    for block in ("1", "n DIV 5000", "n % 7"):
        cut = replace(table, columns={**table.columns, "block": block}, keys=("block", "key"))
        forms.add(table.merge(cut.partial(rows)).select("ids__sketch").first()[0])  # type: ignore[index]

    assert len(forms) == 1


def test_an_empty_string_is_a_distinct_value(spark: SparkSession) -> None:
    """Theta sketches leave it out without a word."""
    history = _history({"words": ""}, {"words": "x"})

    seen = _seen(spark, replace(WINDOWED, window=None), history)

    assert [row["distinct"] for row in seen] == [2]


@pytest.mark.parametrize(
    ("watermark", "final"),
    [
        ("CAST(NULL AS TIMESTAMP)", False),
        ("TIMESTAMP '2026-01-01 03:00:59.999999Z'", False),
        ("TIMESTAMP '2026-01-01 03:01:00Z'", True),
        ("(SELECT max(at) FROM VALUES (TIMESTAMP '2026-01-02 00:00:00Z') AS w(at))", True),
    ],
)
def test_a_window_is_final_when_the_watermark_passes_its_end_by_late_after(
    spark: SparkSession, watermark: str, final: bool
) -> None:
    stored(WINDOWED, packed(spark, [_history({"at": START})])).createOrReplaceTempView("why")

    seen = spark.sql(view_text(WINDOWED, "why", watermark)).where("history = '0/cut'").collect()

    assert [
        (row["window_start"].timestamp(), row["window_end"] - row["window_start"], row["final"])
        for row in seen
    ] == [(START.timestamp(), timedelta(minutes=1), final)]


def test_the_companions_tell_lost_from_doubled_records(spark: SparkSession) -> None:
    """Two records whose measures are the same are still different evidence."""
    one = _history({"amount": Decimal("1.50")})
    table = replace(WINDOWED, window=None, measures={"sales": Sum("amount")})
    other = History(records=(replace(one.records[0], record_id=(0, 1, 7)),), places=one.places)

    merged = table.merge(stored(table, packed(spark, [one, other])))
    found = merged.where("history LIKE '%cut'").collect()

    assert len({(row["_hash_low"], row["_hash_high"]) for row in found}) == 2
    assert {row["_rows"] for row in found} == {1}

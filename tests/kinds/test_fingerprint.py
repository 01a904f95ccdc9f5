"""The fingerprint is the name of the meaning: what changes it and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.longer import some
from tests.project import EXAMPLES, OURS, TABLES, example_of
from twinlake.definitions import fingerprint as module
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds import time_zone
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.sql_form.reading import definition
from twinlake.kinds.sql_form.writing import SAID_BY_SQL, statement
from twinlake.kinds.windows import Hopping, Tumbling, Window, window_from_json
from twinlake.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders", OURS)
BASE = Aggregate(
    name="t", inputs=("orders",), where="status <> 'cancelled'",
    columns={"k": "region", "at": "ordered_at", "x": "amount * 2"}, keys=("k",),
    window=Tumbling(on="at", size="1 minute"), measures={"total": Sum("x"), "n": Count()},
)  # fmt: skip
TOPICS = {ORDERS.name: ORDERS}
MANY = ", ".join(f"'{n}'" for n in range(60))

FOR_EVER = "48177a148146df403252685589d914b641d54b54151335649171f5ec37700061"
"""Of BASE, by the formula of the number that is kept in versions. Another one calls every table of every lake
changed, and asks for its rebuild: it changes with the engine, with the contract of orders, or with a new
number and a step of the lake's format."""


def of_before(size: str, every: str) -> Window:
    """Hopping windows of a version whose states are of windows."""
    return window_from_json({"kind": "hopping", "on": "at", "size": size, "every": every})


FOR_EVER_TOO: dict[str, tuple[Aggregate, str]] = {
    "hopping": (
        replace(BASE, window=of_before("1 hour", "10 minutes"), retention="3 days"),
        "740a2bc53a39de631f16d28c365df8f98d2c3a84a13698c977719cc5d4de8656",
    ),
    "days of UTC": (
        replace(BASE, window=of_before("7 days", "1 day")),
        "d30dced94d767b1a51565c386a2a86cb974d49d029e033700c232a539182a69d",
    ),
    "tiles": (
        replace(BASE, window=Hopping(on="at", size="1 hour", every="10 minutes")),
        "07bb7b765a7e4bd1bba3fda5a5212662ecc7af0ada7578cd1af5553e0e4e271e",
    ),
    "tiles in common": (
        replace(BASE, window=Hopping(on="at", size="90 minutes", every="1 hour")),
        "8204d8deabeafe961b731276a7030eebbe8efc4209ca51817a8d90305856d9de",
    ),
    "retention": (
        replace(BASE, retention="4 days"), "67ec6cf31b3e27f9e3af77eb12a5e3c7f1366820a5a9994dc3adb02a5c4e7884",
    ),
}  # fmt: skip
"""The same of other windows, those of before from when there were no time zones."""
BERLIN = Tumbling(on="at", size="1 day", time_zone="Europe/Berlin")

SAME = {
    "whitespace and case of keywords": replace(BASE, where="  STATUS   <>\n 'cancelled' "),
    "a comment": replace(BASE, where="status <> 'cancelled' -- they do not count"),
    "an intermediate column's name": replace(
        BASE,
        columns={"k": "region", "moment": "ordered_at", "twice": "amount * 2"},
        window=Tumbling(on="moment", size="1 minute"),
        measures={"total": Sum("twice"), "n": Count()},
    ),
    "SQL": definition(
        """
        SELECT k, sum(x) AS total, count(*) AS n -- of what was not cancelled
        FROM (
          SELECT region AS k, ordered_at AS at, amount * 2 AS x FROM orders WHERE status <> 'cancelled'
        )
        GROUP BY k, tumble(at, '1 minute')
        """,
        "t",
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
    return fingerprint(BASE, TOPICS, spark)


@pytest.mark.parametrize("what", SAME)
def test_how_it_is_written_does_not_count(spark: SparkSession, base: str, what: str) -> None:
    assert fingerprint(SAME[what], TOPICS, spark) == base


def test_the_code_may_be_written_otherwise_as_long_as_it_gives_the_same(base: str) -> None:
    assert base == FOR_EVER


@pytest.mark.parametrize("what", FOR_EVER_TOO)
def test_a_time_zone_has_changed_no_window_without_one(spark: SparkSession, what: str) -> None:
    table, fingerprint_before = FOR_EVER_TOO[what]

    assert fingerprint(table, TOPICS, spark) == fingerprint_before


def test_of_a_time_zone_the_rules_count_and_not_the_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longyearbyen has the clocks of Berlin; what a definition has kept does not change with the package."""
    berlin, utc, north, tokyo = (
        fingerprint(replace(BASE, window=replace(BERLIN, time_zone=zone)), TOPICS, spark)
        for zone in ("Europe/Berlin", None, "Arctic/Longyearbyen", "Asia/Tokyo")
    )
    stored = from_json(replace(BASE, window=BERLIN).to_json())
    monkeypatch.setattr(time_zone, "offsets_of", lambda name: ((None, 3600),))

    assert berlin == north and len({berlin, utc, tokyo}) == 3
    assert fingerprint(stored, TOPICS, spark) == berlin
    assert fingerprint(replace(BASE, window=replace(BERLIN)), TOPICS, spark) not in (berlin, utc, tokyo)


@pytest.mark.parametrize("example", some(["users", "clicks", "shop", *sorted(EXAMPLES)]))
def test_both_forms_of_a_definition_have_one_fingerprint(spark: SparkSession, example: str) -> None:
    topics = {name: load_topic(name, example_of(example)) for name in topic_names(example_of(example))}
    tables = {one.name: one for one in EXAMPLES[example]}
    for name, table in tables.items():
        if type(table) in SAID_BY_SQL:
            in_sql = definition(statement(table), name).bound(tables)
            found = fingerprint(in_sql, topics, spark, tables)
            assert found == fingerprint(table, topics, spark, tables), name


def test_what_it_means_counts(spark: SparkSession, base: str) -> None:
    found = {what: fingerprint(table, TOPICS, spark) for what, table in OTHER.items()}
    found["the 50th of 60 constants, as it was"] = fingerprint(
        replace(BASE, where=f"status IN ({MANY})"), TOPICS, spark
    )

    assert len({base, *found.values()}) == len(found) + 1


def test_deleting_and_ordering_count(spark: SparkSession) -> None:
    table = Latest(
        name="t", inputs=("orders",),
        columns={"k": "customer", "a": "ordered_at", "b": "order_id", "c": "status"},
        keys=("k",), order=("a",), values=("c",),
    )  # fmt: skip
    others = [
        replace(table, order=("b",)),
        replace(table, order=("a", "b")),
        replace(table, delete_when="c = 'cancelled'"),
        replace(table, values=("c", "b")),
    ]

    assert len({fingerprint(one, TOPICS, spark) for one in (table, *others)}) == 5


def test_the_edges_of_a_histogram_count_and_not_how_they_are_written(spark: SparkSession) -> None:
    same = [
        Histogram("x", edges=(0, 10, 20)),
        Histogram("x", edges=(0.0, 10.0, 20.0)),
        Histogram("x", low=0, high=20, buckets=2),
    ]
    others = [Histogram("x", edges=(0, 10)), Histogram("x", edges=(0, 10, 20.5))]

    def found(measure: Histogram) -> str:
        return fingerprint(replace(BASE, measures={"m": measure}), TOPICS, spark)

    assert len(set(map(found, same))) == 1
    assert len(set(map(found, same + others))) == 3


def test_upstream_and_versions_count(spark: SparkSession, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(ORDERS.contract, late_after=timedelta(hours=4))
    other_contract: Topic = replace(ORDERS, contract=late)
    other_words = replace(ORDERS, contract=replace(ORDERS.contract, version="9.9.9", file="elsewhere"))

    assert fingerprint(BASE, {ORDERS.name: other_contract}, spark) != base
    assert fingerprint(BASE, {ORDERS.name: other_words}, spark) == base
    monkeypatch.setattr(module, "STATE_CODE", module.STATE_CODE + 1)
    assert fingerprint(BASE, TOPICS, spark) != base


def test_time_zone_and_ansi_count(spark: SparkSession, base: str) -> None:
    for key, value in (("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")):
        before = spark.conf.get(key)
        spark.conf.set(key, value)
        try:
            assert fingerprint(BASE, TOPICS, spark) != base, key
        finally:
            spark.conf.set(key, before)
    assert fingerprint(BASE, TOPICS, spark) == base


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_stored_definition_has_the_fingerprint_of_its_file(spark: SparkSession, table: Kind) -> None:
    stored = from_json(table.to_json())

    assert fingerprint(stored, TOPICS, spark) == fingerprint(table, TOPICS, spark)

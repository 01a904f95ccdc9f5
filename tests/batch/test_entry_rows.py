"""A table with entry rows goes through every layer like any other: nobody there knows what an entry is."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import START
from tests.longer import some
from tests.world import World
from twinlake.batch import verify
from twinlake.batch.due import Scope
from twinlake.batch.rebuild import chunks
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.windows import ALL, Tumbling, Windows
from twinlake.lake.catalog.certificates import Base

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = Aggregate(
    name="buyers", inputs=("orders",),
    columns={"region": "region", "at": "ordered_at", "amount": "amount", "customer": "customer"},
    keys=("region",), window=Tumbling(on="at", size="1 minute"),
    measures={
        "sales": Sum("amount"), "orders": Count(), "customers": CountDistinct("customer"),
        "buyers": CountDistinct("customer", exact=True), "middle": Quantile("amount", 0.5),
        "best": TopK("customer", 2, by="amount"), "often": TopK("customer", 2),
    },
)  # fmt: skip
CUSTOMER = 1
"""The entry of customers; that of amounts is the next."""


def buyers(records: list[dict[str, Any]]) -> dict[Any, Any]:
    """(region, minute) -> sales, orders, customers twice, the best and the most frequent ones."""
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for one in records:
        groups[one["region"], one["ordered_at"].replace(second=0, microsecond=0)].append(one)
    found = {}
    for key, held in groups.items():
        counts = Counter(one["customer"] for one in held)
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for one in held:
            sums[one["customer"]] += one["amount"]
        best = sorted(sums.items(), key=lambda one: (-one[1], one[0]))[:2]
        often = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:2]
        found[key] = (sum(sums.values()), len(held), len(counts), len(counts), best, often)
    return found


def shown(view: DataFrame) -> dict[Any, Any]:
    return {
        (row["region"], row["window_start"].astimezone(UTC)): (
            row["sales"], row["orders"], row["customers"], row["buyers"],
            [tuple(one) for one in row["best"]], [tuple(one) for one in row["often"]],
        )
        for row in view.collect()
    }  # fmt: skip


def test_it_comes_back_from_json() -> None:
    assert from_json(TABLE.to_json()) == TABLE


def test_steps_merges_and_rebuilds_show_what_the_oracle_shows_and_certificates_are_equal(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.fill(3)
    merged = world.merge()
    world.produce(60)
    world.restart()
    world.step()
    some = world.rebuild(windows=Windows.between(START + timedelta(minutes=2), START + timedelta(minutes=5)))
    world.produce()
    world.step()
    closed = world.closed()
    whole = world.rebuild(closed)
    world.produce()
    world.step()
    certificate = world.verify()

    records = [record for batch in world.log.batches for record in batch]
    assert merged is not None
    assert all(found.equal for found in (some.certificate, whole.certificate, certificate))
    assert some.replaced and whole.replaced
    assert shown(world.feed.view(world.pin())) == buyers(records)
    assert certificate.evidence is not None and certificate.evidence["_rows"] == len(records)
    assert certificate.rows_compared > len(buyers(records))  # entries are compared, one by one
    # entries count for nothing where the rows of the log are counted
    assert len(chunks(world.feed, closed, ALL, chunk_records=len(records) - 21)) == 2


def test_files_are_sorted_by_sort_of_row_then_window(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.produce(100)
    world.step()

    (file,) = world.feed.appender.files()
    held = spark.read.parquet(str(world.feed.path / file)).collect()

    places = [(row["_entry"], row["window_start"], row["region"]) for row in held]
    assert places == sorted(places) and {place[0] for place in places} == {0, 1, 2}


@pytest.mark.parametrize(
    ("tampering", "cause", "columns"),
    some([
        (f"UPDATE {{table}} SET _rows = _rows + 1 WHERE _entry = {CUSTOMER}", "counted_more_than_once",
         ["_rows"]),
        (f"UPDATE {{table}} SET best__weight = best__weight + 1 WHERE _entry = {CUSTOMER}", "state_differs",
         ["best__weight"]),
        (f"DELETE FROM {{table}} WHERE _entry = {CUSTOMER}", "only_in_batch", []),
        (f"UPDATE {{table}} SET _item_1 = 'nobody' WHERE _entry = {CUSTOMER}", "only_in_batch", []),
        ("UPDATE {table} SET _item_2 = _item_2 + 100000 WHERE _entry = 2", "only_in_batch", []),
        ("DELETE FROM {table} WHERE _entry = 0", "only_in_batch", []),
    ], 2),
)  # fmt: skip
def test_a_tampered_entry_is_found(
    spark: SparkSession, tmp_path: Path, tampering: str, cause: str, columns: list[str]
) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.produce(3)
    world.step()
    assert world.verify().equal
    spark.sql(tampering.format(table=f"delta.`{world.feed.path}`"))

    found = world.verify()

    told = [(one["cause"], one["columns"]) for one in found.differences]
    assert not found.equal and (cause, columns) in told


def test_a_lost_record_is_found_in_the_main_row_and_in_its_entries(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.produce(5)
    world.step()
    late = {**world.log.batches[0][0], "_offset": 1_000, "customer": "c99", "amount": Decimal("7000000.00")}
    world.log.batches[0].append(late)
    world.log._frames.clear()

    found = world.verify()

    causes = {(one["key"]["_entry"], one["cause"]) for one in found.differences}
    assert causes == {(0, "records_missing"), (1, "only_in_batch"), (2, "only_in_batch")}


def test_windows_elsewhere_are_certified_by_main_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.produce()
    world.step()
    first = world.verify()
    world.produce()
    world.step()
    base = Base(
        certificate=first.id, position=first.position, whole_position=first.position, whole_at="2026",
        evidence=first.evidence or {},
    )  # fmt: skip

    scope = Scope(windows=Windows.between(START, START + timedelta(minutes=1)), base=base)

    assert world.verify(scope).equal
    table = f"delta.`{world.feed.path}`"
    beside = f"_entry = 0 AND window_start > '{START + timedelta(minutes=3)}'"
    spark.sql(f"UPDATE {table} SET _rows = _rows + 1 WHERE {beside}")
    assert [one["cause"] for one in world.verify(scope).differences] == ["elsewhere"]


def test_filters_on_key_and_window_reach_the_scans_of_main_rows_and_of_entries(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.fill(1)
    text = TABLE.view({TABLE.name: f"delta.`{world.feed.path}`"}, ViewClock())

    where = "region = 'north' AND window_start >= TIMESTAMP '2026-01-31 12:03:00Z'"
    plan: Any = spark.sql(text).where(where)._jdf.queryExecution().executedPlan()

    leaves = plan.collectLeaves()
    pushed = [leaves.apply(number).dataFilters().toString() for number in range(leaves.size())]
    assert len(pushed) == 2
    assert all(" = north)" in one and "(window_start#" in one and " >= " in one for one in pushed)
    assert sum("(_entry#" in one and " = 0)" in one for one in pushed) == 1


def test_evidence_that_counted_entries_too_would_tell_of_records_that_are_not_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug of the tests above."""
    world = World(spark=spark, lake=tmp_path, table=TABLE)
    world.produce(10)
    world.step()

    right = world.verify().evidence
    monkeypatch.setattr(verify, "TELLS", "true")
    wrong = world.verify().evidence

    assert right is not None and right["_rows"] == 10
    assert wrong == {**right, "_rows": 30}

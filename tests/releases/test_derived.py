"""A Derived is planned, built, compared, released and gone back from together with what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kill.views import Views
from tests.releases.buyers import NEWEST
from tests.releases.lake import Lake, order
from tests.releases.promised import project_of, promised_lake
from twinlake.base.errors import DefinitionError, DifferenceError, UsageError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Health, Version
from twinlake.reading.views import release_schema
from twinlake.releases.plan import History, Proposal, decide
from twinlake.releases.retire import readers_first

SPENT = Aggregate(
    name="spent", inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
    keys=("customer",), measures={"spent": Sum("amount"), "n": Count()},
)  # fmt: skip
PAID = replace(SPENT, where="status <> 'cancelled'")
BUYERS = Derived(
    name="buyers", reads=("spent", "newest"), columns=("customer", "spent", "status"), keys=("customer",),
    by=("customer",), broadcast=("newest",),
    sql="SELECT customer, spent, status FROM newest LEFT JOIN spent USING (customer)",
)  # fmt: skip
BEST = Derived(
    name="best", reads=("buyers",), columns=("place", "customer"), keys=("place",), by=(),
    sql="""
        WITH placed AS (
            SELECT row_number() OVER (ORDER BY spent DESC NULLS LAST, customer) AS place, customer FROM buyers
        )
        SELECT * FROM placed WHERE place <= 3
    """,
)  # fmt: skip
BEST_SPENT = Derived(
    name="best", reads=("spent",), columns=("place", "customer"), keys=("place",), by=(),
    sql="SELECT 1 AS place, min(customer) AS customer FROM spent HAVING count(*) > 0",
)  # fmt: skip
TABLES: dict[str, Any] = {table.name: table for table in (BEST, BUYERS, NEWEST, SPENT)}
CHANGED: dict[str, Kind] = {**TABLES, "spent": PAID}
PROMISED = {
    "spent": {"customer": "string", "spent": "decimal(38,2)", "n": "bigint"},
    "newest": {"customer": "string", "status": "string"},
    "buyers": {"customer": "string", "spent": "decimal(38,2)", "status": "string"},
    "best": {"place": "int", "customer": "string"},
    "spending": {"customer": "string", "spent": "decimal(38,2)", "n": "bigint"},
}


def buyers(records: Iterable[Mapping[str, Any]], *, paid: bool) -> dict[str, tuple[Decimal | None, str]]:
    """customer -> what was spent, and the status of the newest order."""
    spent: dict[str, Decimal] = {}
    newest: dict[str, str] = {}
    for one in records:  # each is later than the one before
        newest[one["customer"]] = one["status"]
        if one["status"] != "cancelled" or not paid:
            spent[one["customer"]] = spent.get(one["customer"], Decimal(0)) + one["amount"]
    return {customer: (spent.get(customer), status) for customer, status in newest.items()}


def best(found: Mapping[str, tuple[Decimal | None, str]]) -> dict[int, str]:
    order = sorted(found, key=lambda one: (found[one][0] is None, -(found[one][0] or 0), one))
    return dict(enumerate(order[:3], 1))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    with promised_lake(spark, tmp_path, PROMISED) as made:
        yield made


@pytest.fixture
def views(spark: SparkSession, lake: Lake) -> Iterator[Views]:
    """What a reader sees, in the test's own session."""
    made = Views(spark, lake.path)
    yield made
    made.close()


def shown(views: Views, schema: str = "serve") -> dict[str, tuple[Decimal | None, str]]:
    views.follow()
    rows = views.rows(f"SELECT * FROM {schema}.buyers")
    return {row["customer"]: (row["spent"], row["status"]) for row in rows}


def settle(lake: Lake) -> None:
    """Wait until every live version has taken what was appended."""
    open_lake = lake.server.lake
    live = release_log.live(lake.path)
    assert live is not None
    versions = [open_lake.versions.get(table, name) for table, name in live.tables.items()]
    open_lake.versions.pin_together(versions, Run(id="settle"))


def reads_of(lake: Lake) -> dict[str, dict[str, str]]:
    """By table, what its live version reads."""
    live = release_log.live(lake.path)
    assert live is not None
    return {table: lake.server.lake.version(table, name).reads for table, name in live.tables.items()}


@pytest.mark.faults
def test_a_table_and_those_that_read_it_are_released_and_gone_back_from_together(
    lake: Lake, views: Views
) -> None:
    records = [order(number, customer=f"c{number % 7}") for number in range(60)]
    first = lake.promote(lake.build(TABLES))["tables"]
    lake.append(records[:40])
    settle(lake)
    before = shown(views)

    plan = lake.plan(CHANGED)
    lake.do("build", plan=plan["id"])
    lake.append(records[40:])
    found = {name: lake.do("diff", table=name, plan=plan["id"]) for name in ("spent", "buyers", "best")}
    still = shown(views)
    gate = lake.do("gate", plan=plan["id"])
    second = lake.promote(plan["id"])["tables"]
    after = shown(views)

    assert before == buyers(records[:40], paid=False)
    actions = {change["table"]: change["action"] for change in plan["changes"]}
    assert actions == {"spent": "changed", "newest": "unchanged", "buyers": "changed", "best": "changed"}
    assert [change["table"] for change in plan["changes"] if change["action"] == "changed"] == [
        "spent", "buyers", "best",
    ]  # fmt: skip
    old, new = buyers(records, paid=False), buyers(records, paid=True)
    assert found["buyers"]["changed"] == sum(old[name] != new[name] for name in new) > 0
    assert found["buyers"]["common"] == 7 and found["buyers"]["position"] == {"orders": 2}
    assert gate["passed"], gate
    assert still == old and after == new == shown(views, release_schema(2))
    assert shown(views, release_schema(1)) == old
    assert {row["place"]: row["customer"] for row in views.rows("SELECT * FROM serve.best")} == best(new)
    assert first["newest"] == second["newest"]
    assert reads_of(lake) == {
        "spent": {}, "newest": {}, "buyers": {name: second[name] for name in ("spent", "newest")},
        "best": {"buyers": second["buyers"]},
    }  # fmt: skip

    assert lake.do("rollback", approved_by="me")["tables"] == first
    assert shown(views) == old
    assert lake.plan(TABLES)["empty"]
    assert lake.plan(CHANGED)["empty"]
    again = lake.plan(CHANGED, ["spent"])  # the versions of before are alive, and read each other
    assert [change["green"] for change in again["changes"] if change["action"] == "changed"] == [
        second[name] for name in ("spent", "buyers", "best")
    ]


@pytest.mark.faults
def test_its_certificate_tells_of_a_changed_table_below(lake: Lake, spark: SparkSession) -> None:
    lake.promote(lake.build(TABLES))
    lake.append([order(number) for number in range(30)])
    equal = {name: lake.do("verify", table=name) for name in ("buyers", "best", "spent")}
    spent = lake.server.lake.version("spent")
    spark.sql(f"UPDATE delta.`{spent.path(lake.path)}` SET spent__sum = spent__sum + 1 WHERE customer = 'c3'")

    with pytest.raises(DifferenceError, match="speed and batch differ in 1 keys of buyers"):
        lake.do("verify", table="buyers")

    assert [(one["equal"], one["rows_compared"]) for one in equal.values()] == [
        (True, 10),
        (True, 3),
        (True, 10),
    ]
    newest = lake.server.lake.certificates.newest("buyers", lake.server.lake.version("buyers").name)
    assert newest is not None and not newest.equal
    assert [(one["key"], one["cause"]) for one in newest.differences] == [
        ({"customer": "c3"}, "inputs_differ")
    ]


@pytest.mark.faults
def test_a_table_that_is_read_cannot_be_removed_and_its_version_is_not_retired(lake: Lake) -> None:
    lake.promote(lake.build(TABLES))
    lake.append([order(number) for number in range(10)])

    with pytest.raises(UsageError, match="spent cannot be removed\nWhy: it is read by: best, buyers"):
        lake.plan({name: table for name, table in TABLES.items() if name != "spent"} | {"best": BEST_SPENT})
    with pytest.raises(DefinitionError, match="table buyers: it reads table 'other', which is not defined"):
        lake.plan({**TABLES, "buyers": replace(BUYERS, reads=("other", "newest"))})
    lake.promote(lake.build(CHANGED))
    told = lake.do("retire", keep=1)

    assert [name.split()[0] for name in told["retired"]] == ["best", "buyers", "spent"]
    assert [name.split()[0] for name in told["living"]] == ["best", "buyers", "newest", "spent"]


@pytest.mark.faults
def test_a_renamed_table_keeps_its_old_name_as_a_view(lake: Lake, views: Views) -> None:
    renamed = {**TABLES, "spending": replace(SPENT, name="spending"), "spent": Derived(
        name="spent", reads=("spending",), columns=("customer", "spent", "n"), keys=("customer",),
        by=("customer",), sql="SELECT * FROM spending",
    )}  # fmt: skip
    records = [order(number) for number in range(30)]
    lake.promote(lake.build(TABLES))
    lake.append(records[:20])

    plan = lake.build(renamed)
    found = lake.do("diff", table="spent", plan=plan)
    lake.promote(plan)
    lake.append(records[20:])
    settle(lake)

    assert (found["changed"], found["common"]) == (0, 10)
    assert shown(views) == buyers(records, paid=False)
    old, new = (views.rows(f"SELECT * FROM serve.{name} ORDER BY customer") for name in ("spent", "spending"))
    assert old == new and len(new) == 10
    assert lake.do("verify", table="spent")["equal"]


@pytest.mark.faults
def test_a_restarted_server_goes_on_with_it_and_it_lags_as_what_it_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, project = tmp_path / "home", project_of(tmp_path / "project", PROMISED)
    lake = Lake(spark, home, project=project)
    lake.promote(lake.build(TABLES))
    records = [order(number) for number in range(20)]
    lake.append(records)
    lake.do("verify", table="best")
    lake.stop()

    again = Lake(spark, home, project=project)
    try:
        told = again.do("verify", table="best")
        health = {one.table: one for one in again.server.lake.versions.health()}
    finally:
        again.stop()

    assert told["equal"] and told["position"] == {"orders": 1}
    assert (health["best"].lag_seconds, health["best"].step, health["best"].stalled) == (0.0, None, False)


def version(table: str, build: int, **reads: int) -> Version:
    return Version(
        table=table, fingerprint="f" * 12, build=build, definition={}, topics=("orders",), contracts={},
        created_at="2026-01-01T00:00:00Z", reads={name: f"{'f' * 12}-{of}" for name, of in reads.items()},
    )  # fmt: skip


def test_of_the_chosen_versions_those_that_a_living_one_reads_stay_and_readers_go_first() -> None:
    old, new = version("spent", 1), version("spent", 2)
    reader, kept = version("buyers", 1, spent=1), version("best", 1, buyers=1)

    assert readers_first([old, reader], [old, new, reader]) == [reader, old]
    assert readers_first([old, reader], [old, new, reader, kept]) == []
    assert readers_first([old, reader, kept], [old, new, reader, kept]) == [kept, reader, old]


@pytest.mark.faults
def test_a_stalled_table_below_is_told_of_it_and_the_next_release_resolves_both(
    lake: Lake, views: Views
) -> None:
    share = "CAST(100 / amount AS decimal(12,2))"

    def tables(amount: str) -> dict[str, Kind]:
        changed = replace(SPENT, columns={"customer": "customer", "amount": amount})
        return {**TABLES, "spent": changed}

    lake.promote(lake.build(tables(share)))
    lake.append([order(number) for number in range(1, 20)])
    lake.do("verify", table="buyers")
    lake.append([order(20, amount=Decimal("0.00"), customer="c1")])
    of = lake.server.lake.version("buyers")

    def stalled() -> Health | None:
        told = {(one.table, one.version): one for one in lake.server.lake.versions.health()}
        found = told[("buyers", of.name)]
        return found if found.stalled else None

    blue = wait_for("it to be stalled", stalled, 120)
    plan = lake.build(tables(share.replace("amount", "nullif(amount, 0)")))
    compared = lake.do("diff", table="buyers", plan=plan)
    lake.promote(plan)
    settle(lake)

    assert blue.position == {"orders": 1} == compared["position"]
    assert blue.error and "raises for orders (epoch 0, partition 0, offset 19)" in blue.error["what"]
    assert compared["equal"] and compared["common"] == 10
    assert shown(views)["c1"][0] == sum(
        (Decimal(100) / order(number)["amount"]).quantize(Decimal("0.01"), ROUND_HALF_UP)
        for number in (1, 11)
    )


def test_a_living_version_is_used_again_only_if_it_reads_the_versions_of_the_plan(tmp_path: Path) -> None:
    """Its fingerprint is the same; the versions of the table below are two builds of one meaning."""
    history = {"orders": History(topic="orders", records=10, bytes=100)}
    proposals = [
        Proposal(
            table=table,
            definition={},
            fingerprint="f" * 12,
            topics=("orders",),
            stores_rows=not reads,
            reads=reads,
        )
        for table, reads in (("spent", ()), ("buyers", ("spent",)))
    ]
    live = Release(
        number=1, kind="initial", tables={"spent": version("spent", 2).name}, created_at="", approved_by="me"
    )  # fmt: skip

    plans = Plans(tmp_path)

    def decided(*living: Version) -> dict[str, tuple[str, str | None]]:
        plan = decide(
            live=live, proposals=proposals, versions=living, histories=history, created_at="2026"
        )  # fmt: skip
        plans.save(plan)
        assert plans.load(plan.id) == plan
        return {change.table: (change.action, change.green) for change in plan.changes}

    spent = [version("spent", 1), version("spent", 2)]
    old, new = version("buyers", 1, spent=1), version("buyers", 2, spent=2)
    unchanged = ("unchanged", spent[1].name)
    assert decided(*spent, old) == {"spent": unchanged, "buyers": ("new", None)}
    assert decided(*spent, new, old) == {"spent": unchanged, "buyers": ("new", new.name)}

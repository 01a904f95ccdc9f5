"""A release from plan to rollback, on a real lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.errors import DifferenceError, NotFoundError, UsageError
from twinlake.base.job import Run
from twinlake.base.times import utc_now
from twinlake.base.version import commit_of
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log
from twinlake.releases import gate as ask_gate
from twinlake.releases import promote
from twinlake.releases.gate_checks import Gate

SALES = ("sales_per_region",)
"""Named in every plan: some test has rolled it back before."""
DEFINED: dict[str, Kind] = {table.name: table for table in TABLES}
NO_CANCELLED = {
    **DEFINED,
    "sales_per_region": replace(DEFINED["sales_per_region"], where="status <> 'cancelled'"),
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with release 1 and two batches of 100 orders."""
    home = tmp_path_factory.mktemp("release")
    with following_sql_server(home / "lake") as sql_url:
        lake = Lake(spark, home, sql_url)
        lake.promote(lake.build(DEFINED))
        lake.append([order(number) for number in range(100)])
        lake.append([order(number) for number in range(100, 200)])
        yield lake
        lake.stop()


def live(lake: Lake) -> release_log.Release:
    found = release_log.live(lake.path)
    assert found is not None
    return found


@pytest.fixture
def back_to_first(lake: Lake) -> Iterator[None]:
    """Whatever the test makes live, the tables of release 1 are live when it begins."""
    if live(lake).tables != release_log.releases(lake.path)[0].tables:
        lake.do("rollback", approved_by="tester", to=1)
    yield


def test_over_empty_logs_columns_and_production_decide(lake: Lake) -> None:
    first = release_log.releases(lake.path)[0]
    gate = lake.server.lake.plans.gate(str(first.plan), Gate)

    assert gate is not None and gate.passed
    asked = {(table, name) for table in DEFINED for name in ("certificate", "columns", "lag")}
    assert {(check.table, check.name) for check in gate.checks} == {("", "production"), *asked}
    assert {check.detail for check in gate.checks if check.name == "certificate"} == {
        "its logs are empty: there is nothing to compare"
    }

    assert (first.number, first.kind, sorted(first.tables)) == (1, "initial", sorted(DEFINED))
    assert first.positions == {name: {"orders": 0} for name in DEFINED}
    assert (first.approved_by, first.git_commit) == ("tester", "abc")


def test_a_plan_that_changes_nothing_says_so_and_promoting_it_commits_nothing(
    lake: Lake, back_to_first: None
) -> None:
    before = live(lake)
    made = lake.plan(DEFINED)

    assert made["empty"]
    assert {change["action"] for change in made["changes"]} == {"unchanged"}
    assert lake.promote(made["id"])["changed"] is False
    assert live(lake) == before


def test_without_definitions_those_beside_the_lake_server_are_planned_and_their_commit_is_told(
    lake: Lake, back_to_first: None
) -> None:
    made = lake.do("plan")

    assert made["definitions"] == {name: table.to_json() for name, table in DEFINED.items()}
    assert made["empty"] and made["git_commit"] == commit_of(PROJECT)
    assert lake.do("plan", definitions=made["definitions"])["git_commit"] is None


def test_a_plan_tells_what_changes_and_what_it_costs(lake: Lake, back_to_first: None) -> None:
    made = lake.plan(NO_CANCELLED, SALES)
    change = next(one for one in made["changes"] if one["table"] == "sales_per_region")

    assert change["action"] == "changed"
    assert change["why"] == ["where: nothing -> status <> 'cancelled'"]
    assert change["reaches_back"]
    assert made["id"] == lake.plan(NO_CANCELLED, SALES)["id"]


def test_green_is_compared_at_the_same_position_and_promoted(lake: Lake, back_to_first: None) -> None:
    before = live(lake)
    plan = lake.build(NO_CANCELLED, SALES)
    blue = before.tables["sales_per_region"]
    found = lake.do("diff", table="sales_per_region", plan=plan)
    orders = next(column for column in found["columns"] if column["name"] == "orders")

    assert found["blue"]["version"] == blue
    assert found["position"] == {"orders": 2}
    assert (orders["blue_total"], orders["green_total"]) == ("200", "180")
    # every tenth order is cancelled, all of them in region r0: one changed row in each of the four minutes
    assert (found["common"], found["changed"], found["only_blue"], found["only_green"]) == (20, 4, 0, 0)
    over = found["over_time"]
    assert (over["column"], over["seconds"], over["differing"]) == ("window_start", 60, [1, 1, 1, 1])
    assert (over["first"], over["last"]) == ("2026-01-31T12:00:00Z", "2026-01-31T12:03:00Z")
    totals = {one["name"]: (one["blue"], one["green"]) for one in over["totals"]}
    assert totals["orders"] == ([60.0, 60.0, 60.0, 20.0], [54.0, 54.0, 54.0, 18.0])
    assert totals.keys() == {"orders", "sales"}, "averages and the like do not add up"
    assert [one["blue_total"] for one in found["columns"] if one["name"] in ("average", "largest")] == [
        None
    ] * 2
    page = (lake.path / "plans" / f"{plan}.html").read_text()
    assert "sales_per_region" in page and "<script" not in page
    (shown,) = json.loads((lake.path / "plans" / f"{plan}.compared.json").read_text())
    assert shown["over_time"]["first"] == over["first"] and len(shown["samples"]) == 4

    gate = lake.do("gate", plan=plan)
    assert gate["passed"], [check for check in gate["checks"] if not check["passed"]]
    assert {check["name"] for check in gate["checks"]} == {
        "production", "certificate", "witness", "ingest", "lag", "columns", "expectation"
    }  # fmt: skip

    result = lake.promote(plan)
    assert result["followed"], result["follow_problem"]
    assert result["release"] == before.number + 1
    assert live(lake).positions["sales_per_region"] == {"orders": 2}
    assert live(lake).tables == {**before.tables, "sales_per_region": found["green"]["version"]}


def test_rolled_back_and_promoted_again_without_building(lake: Lake, back_to_first: None) -> None:
    first = live(lake)
    lake.promote(lake.build(NO_CANCELLED, SALES))
    batch = lake.append([order(number) for number in range(300, 310)])
    back = lake.do("rollback", approved_by="tester", reason="they are missed")

    assert back["tables"] == first.tables
    assert live(lake).reason == "they are missed"
    assert back["positions"]["sales_per_region"] == {"orders": batch}, "blue was kept fed"
    with pytest.raises(UsageError, match="cannot be rolled back"):
        lake.do("rollback", approved_by="tester")

    other = replace(DEFINED["latest_order"], where="amount > 0")
    by_itself = lake.plan({**NO_CANCELLED, "latest_order": other})
    assert {one["table"]: one["action"] for one in by_itself["changes"]} == {
        "sales_per_region": "unchanged", "latest_order": "changed", "orders": "unchanged"
    }  # fmt: skip
    told = f"sales_per_region: unchanged (was rolled back in release {back['release']}: they are missed)"
    assert told in by_itself["lines"]
    again = lake.plan(NO_CANCELLED, SALES)
    assert [change["green"] for change in again["changes"] if change["action"] == "changed"] != [None]
    assert lake.do("build", plan=again["id"])["built"] == []
    assert lake.promote(again["id"])["release"] == back["release"] + 1


def test_a_plan_is_refused_after_production_moved(lake: Lake, back_to_first: None) -> None:
    outdated = lake.build(NO_CANCELLED, SALES)
    lake.promote(outdated)
    lake.do("rollback", approved_by="tester")
    before = live(lake)

    with pytest.raises(DifferenceError, match="production has moved") as refused:
        lake.promote(outdated)
    with pytest.raises(DifferenceError, match=f"release {before.number - 1} was to be live"):
        lake.do("rollback", approved_by="tester", to=before.number - 1, live=before.number - 1)
    assert live(lake) == before
    assert refused.value.remedy.startswith("make a new plan with `twinlake plan`")
    again = lake.plan(NO_CANCELLED, SALES)["id"]
    assert lake.do("build", plan=again)["built"] == [], "what is built is used again"
    assert lake.promote(again)["changed"]


def test_a_job_killed_after_its_commit_finds_its_release(
    lake: Lake, back_to_first: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = lake.build(NO_CANCELLED, SALES)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(promote, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            lake.promote(plan, job="p")
    committed = live(lake)
    assert lake.promote(plan, job="p")["release"] == committed.number

    with monkeypatch.context() as patched:
        patched.setattr(promote, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            lake.do("rollback", job="r", approved_by="tester")
    rolled_back = live(lake)
    assert lake.do("rollback", job="r", approved_by="tester")["release"] == rolled_back.number
    assert live(lake) == rolled_back


def test_a_version_that_breaks_its_contract_is_not_promoted(lake: Lake, back_to_first: None) -> None:
    negative = replace(
        DEFINED["sales_per_region"],
        columns={**DEFINED["sales_per_region"].columns, "amount": "cast(-amount as decimal(12,2))"},
    )
    before = live(lake)
    plan = lake.build({**DEFINED, "sales_per_region": negative})

    with pytest.raises(DifferenceError, match="gate refuses") as refused:
        lake.promote(plan)
    assert "expect_column_values_to_be_between column=sales min_value=0" in str(refused.value)
    assert live(lake) == before


def test_a_topic_that_stands_still_below_its_broker_is_refused(
    lake: Lake, back_to_first: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_gate, "LOG_WAIT_S", 2.0)
    plan = lake.build(NO_CANCELLED, SALES)
    ingest = lake.ingest
    ingest.unread = 3
    try:
        still = lake.do("gate", plan=plan)
    finally:
        ingest.unread = 0

    refused = [check for check in still["checks"] if not check["passed"]]
    assert [(check["name"], check["table"]) for check in refused] == [("lag", "sales_per_region")]
    assert refused[0]["detail"].startswith("3 records of topic orders are not in the log after 2 s")
    assert lake.do("gate", plan=plan)["passed"]


@pytest.mark.parametrize("hours", [1, -1], ids=["an hour later", "by a clock that stepped back"])
def test_a_certificate_that_is_not_of_the_last_minutes_is_made_again(
    lake: Lake, back_to_first: None, hours: int
) -> None:
    lake.build(NO_CANCELLED, SALES)
    opened = lake.server.lake
    green = opened.versions.newest("sales_per_region")
    assert green is not None
    moved = replace(opened, clock=lambda: utc_now() + timedelta(hours=hours))

    checks = [
        ask_gate.recent_certificate(at, green, Run(id=f"{hours}-{number}"))
        for number, at in enumerate((opened, moved))
    ]

    newest = opened.certificates.newest("sales_per_region", green.name)
    assert all(check.passed for check in checks)
    assert newest is not None and newest.job == f"{hours}-1"


def test_what_a_contract_was_asked_is_asked_again_at_another_position(
    lake: Lake, back_to_first: None
) -> None:
    plan = lake.build(NO_CANCELLED, SALES)
    asked = lake.do("gate", plan=plan)["asked_of"]["sales_per_region"]
    lake.append([order(number) for number in range(1000, 1010)])

    again = lake.do("gate", plan=plan)["asked_of"]["sales_per_region"]

    assert again == [asked[0], {"orders": asked[1]["orders"] + 1}]


def test_an_unequal_or_missing_certificate_is_not_promoted(lake: Lake, back_to_first: None) -> None:
    plan = lake.build(NO_CANCELLED, SALES)
    newest = lake.server.lake.certificates._newest
    green = lake.do("build", plan=plan)["greens"]["sales_per_region"]
    made = newest.pop(("sales_per_region", green))
    before = live(lake)

    with pytest.raises(DifferenceError, match="there is none") as refused:
        lake.promote(plan)
    newest[("sales_per_region", green)] = replace(made, equal=False, differing=3)
    with pytest.raises(DifferenceError, match="differ in 3 keys"):
        lake.promote(plan)
    newest[("sales_per_region", green)] = made
    assert live(lake) == before
    assert "twinlake build" in refused.value.remedy or "twinlake" in refused.value.why
    assert lake.promote(plan)["changed"]


def test_a_plan_that_was_not_built_is_not_promoted(lake: Lake, back_to_first: None) -> None:
    other = replace(DEFINED["latest_order"], where="amount > 1")
    plan = lake.plan({**DEFINED, "latest_order": other})["id"]

    with pytest.raises(DifferenceError, match="not built"):
        lake.promote(plan)
    with pytest.raises(NotFoundError):
        lake.promote("0" * 12)
    with pytest.raises(UsageError):
        lake.promote("../releases")


def test_promote_says_when_the_sql_server_has_not_followed(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "home", "http://127.0.0.1:9")
    try:
        result = lake.promote(lake.build({"latest_order": DEFINED["latest_order"]}))
    finally:
        lake.stop()

    assert (result["release"], result["followed"]) == (1, False)
    assert "does not answer" in result["follow_problem"]


def test_a_first_release_over_a_log_that_filled_meanwhile_is_certified_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "home", "http://127.0.0.1:9")
    try:
        plan = lake.build({"sales_per_region": DEFINED["sales_per_region"]})
        lake.append([order(number) for number in range(20)])
        result = lake.promote(plan)
        (certificate,) = lake.server.status()["certificates"]
    finally:
        lake.stop()

    assert (result["release"], result["kind"]) == (1, "initial")
    assert certificate["equal"] and certificate["position"] == {"orders": 1}


def test_a_live_table_whose_definition_is_not_found_stays_until_its_removal_is_asked_for(
    lake: Lake, back_to_first: None
) -> None:
    without = {name: table for name, table in DEFINED.items() if name != "latest_order"}

    stays = lake.plan(without, remove=[])
    goes = lake.plan(without, remove=["latest_order"])

    assert stays["empty"]
    assert "`twinlake plan --remove latest_order` removes it" in "\n".join(stays["lines"])
    assert [one["table"] for one in goes["changes"] if one["action"] == "removed"] == ["latest_order"]


def test_only_a_live_table_without_a_definition_can_be_removed(lake: Lake, back_to_first: None) -> None:
    without = {name: table for name, table in DEFINED.items() if name != "latest_order"}

    with pytest.raises(UsageError, match="its definition is still among the project's files"):
        lake.plan(DEFINED, remove=["latest_order"])
    with pytest.raises(NotFoundError, match="there is no live table 'nothing'"):
        lake.plan(without, remove=["nothing"])
    with pytest.raises(UsageError, match="table latest_order has no definition to plan"):
        lake.plan(without, named=["latest_order"], remove=[])

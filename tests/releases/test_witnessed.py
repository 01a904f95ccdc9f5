"""Another engine evaluates each version from its log: what certificates, status and the gate make of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import sales_per_region
from tests.releases.lake import Lake, append_orders, following_sql_server, registry_of_orders
from twinlake.base.errors import DifferenceError, UsageError
from twinlake.batch import witnessing
from twinlake.cli import status
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.measures.totals import Sum
from twinlake.lake.catalog.certificates import Certificate
from twinlake.releases.gate_checks import Gate

SALES = sales_per_region.TABLE
HASH = "CAST(hash(region) AS STRING)"
PER_HASH = replace(SALES, name="sales_per_hash", columns={**SALES.columns, "region": HASH})
HASHED = Events(name="hashed", inputs=("orders",), columns={"order_id": "order_id", "name": HASH})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home = tmp_path_factory.mktemp("witnessed") / "home"
    home.mkdir()
    (home / "twinlake.toml").write_text('[proof]\nwitness = "required"\nwindow_rows = 150\n')
    with following_sql_server(home / "lake") as url, registry_of_orders() as registry:
        found = Lake(spark, home, url, registry_url=registry.url)
        try:
            found.promote(found.build({SALES.name: SALES}))
            append_orders(found, 100)
            yield found
        finally:
            found.stop()


def newest(lake: Lake, table: str = SALES.name) -> Certificate:
    version = lake.server.lake.version(table)
    found = lake.server.lake.certificates.newest(table, version.name)
    assert found is not None
    return found


def gate_of(lake: Lake, table: str) -> tuple[bool, str]:
    """Whether the check of the other engine passed in the newest gate, and its words."""
    plan = lake.server.lake.plans.newest()
    assert plan is not None
    gate = lake.server.lake.plans.gate(plan.id, Gate)
    assert gate is not None
    (check,) = (one for one in gate.checks if one.table == table and one.name == "witness")
    return check.passed, check.detail


def full(*_: object) -> None:
    raise OSError("no space left on device")


def test_a_verify_of_all_of_history_asks_the_other_engine_at_the_same_position(lake: Lake) -> None:
    done = lake.do("verify", table=SALES.name)

    made = newest(lake)
    assert made.witness is not None and made.witness.position == made.position
    assert done["proof"] == f"speed = batch = DuckDB 2.0.0 ({made.rows_compared:,} rows)"
    assert made.witness.answer.sql_hash and made.witness.answer.cpu_s > 0
    assert [line.split(" (")[0] for line in done["clocks"]] == ["final: equal", "late records: equal"]
    (shown,) = (one for one in lake.server.status()["certificates"] if one["table"] == SALES.name)
    assert (shown["proof"], shown["disputed"]) == (done["proof"], False)
    assert not [*lake.path.glob("staging/*/witness/*")]


def test_checks_of_windows_ask_it_while_the_log_is_small_and_show_its_last_answer_beyond(lake: Lake) -> None:
    lake.do("verify", table=SALES.name)
    append_orders(lake, 20)
    lake.do("verify", table=SALES.name, due=True)
    small = newest(lake)
    assert small.base is not None and small.witness is not None
    assert small.witness.position == small.position

    append_orders(lake, 100)
    done = lake.do("verify", table=SALES.name, due=True)

    large = newest(lake)
    assert large.base is not None and large.position != small.position
    assert large.witness == small.witness
    assert done["proof"] == f"{small.proof}, at {small.witness.place}"


def test_a_rebuild_keeps_the_last_answer(lake: Lake) -> None:
    lake.do("verify", table=SALES.name)
    before = newest(lake).witness

    lake.do("rebuild", table=SALES.name)

    assert newest(lake).kind == "rebuild" and newest(lake).witness == before


def test_a_gate_asks_again_where_the_last_answer_is_of_another_position(lake: Lake) -> None:
    renamed = replace(SALES, name="renamed")
    plan = lake.build({SALES.name: SALES, "renamed": renamed})
    append_orders(lake, 20)
    green = lake.server.lake.versions.newest("renamed")
    assert green is not None
    lake.do("rebuild", table="renamed", version=green.name)
    stale = lake.server.lake.certificates.newest("renamed", green.name)
    assert stale is not None and stale.witness is not None and stale.witness.position != stale.position

    assert lake.do("gate", plan=plan)["passed"]

    assert gate_of(lake, "renamed")[1].endswith(" rows)")  # of this very position


def test_what_keeps_it_from_being_asked_costs_no_certificate(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnessing, "_rows", full)

    done = lake.do("verify", table=SALES.name)

    assert done["equal"] and newest(lake).witness is not None
    assert done["proof"] == "the witness failed: it was not asked: no space left on device"
    monkeypatch.undo()
    left = lake.server.lake.staging("again") / "witness" / SALES.name / "shown"
    left.mkdir(parents=True)  # as an attempt leaves it that was killed
    assert lake.do("verify", job="again", table=SALES.name)["proof"].startswith("speed = batch = DuckDB")


@pytest.mark.parametrize("job", ["gate", "promote"])
def test_a_plan_that_was_refused_as_it_failed_is_asked_about_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    name = f"asked_again_by_{job}"
    plan = lake.build({SALES.name: SALES, name: replace(SALES, name=name)})
    monkeypatch.setattr(witnessing, "_rows", full)
    green = lake.server.lake.versions.newest(name)
    assert green is not None
    lake.do("verify", table=name, version=green.name)
    assert not lake.do("gate", plan=plan)["passed"]
    monkeypatch.undo()

    done = lake.do(job, plan=plan, **({"approved_by": "ines"} if job == "promote" else {}))

    assert done["passed"] if job == "gate" else done["release"]
    assert gate_of(lake, name)[0]


def test_a_fault_that_both_layers_share_is_found_named_and_blocks_the_release(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = SALES.measures["orders"]
    doubling = replace(SALES, name="doubled", measures={"sales": Sum("amount"), "orders": orders})
    real = Aggregate.view

    def view(self: Aggregate, *given: Any) -> str:
        text = real(self, *given)
        shown = ", ".join("orders + 1 AS orders" if name == "orders" else name for name in self.output)
        return f"SELECT {shown} FROM ({text})" if self.name == "doubled" else text

    monkeypatch.setattr(Aggregate, "view", view)
    plan = lake.build({SALES.name: SALES, "doubled": doubling})
    with pytest.raises(DifferenceError, match=r"doubled witness: DuckDB 2.0.0 differs in \d+ of \d+ rows"):
        lake.promote(plan)

    version = lake.server.lake.versions.newest("doubled")
    assert version is not None
    made = lake.server.lake.certificates.newest("doubled", version.name)
    assert made is not None and made.equal and made.witness is not None
    (first, *_) = made.witness.answer.differences
    assert first.columns == ("orders",) and first.witness and first.shown
    assert first.witness["orders"] != first.shown["orders"]
    assert first.behind is not None and first.behind.count == int(first.witness["orders"] or 0)
    assert {one.topic for one in first.behind.records} == {"orders"}
    again = lake.do("verify", table="doubled", version=version.name)["disputed"][0]
    assert again["explain"].startswith("twinlake explain doubled --key region=")
    page = lake.server.lake.plans.report(plan)
    assert page is not None and "records: orders 0/0/" in page
    assert "twinlake explain" not in page  # which asks the live release
    ((_, _, whose, problem),) = status.problems(
        [], {"topics": [], "versions": [], "certificates": [made.summary()], "changelogs": [], "damaged": []}
    )
    assert whose == f"doubled {version.name}" and problem["what"].startswith("DuckDB 2.0.0 differs")
    with pytest.raises(DifferenceError):  # no reason excuses a difference
        lake.do("promote", plan=plan, approved_by="tester", unwitnessed=["doubled=I like it"])


def test_where_an_expression_is_refused_spark_computes_the_rows_and_the_rest_is_witnessed(lake: Lake) -> None:
    plan = lake.build({SALES.name: SALES, PER_HASH.name: PER_HASH})

    assert lake.do("gate", plan=plan)["passed"]

    passed, words = gate_of(lake, PER_HASH.name)
    assert passed and words.startswith("speed = batch = DuckDB 2.0.0 (")
    assert words.endswith(" rows; expressions by Spark)")


def test_what_the_other_engine_cannot_evaluate_goes_live_with_a_reason_which_is_kept(lake: Lake) -> None:
    plan = lake.build({SALES.name: SALES, HASHED.name: HASHED})
    refused = lake.do("gate", plan=plan)
    assert not refused["passed"]
    passed, words = gate_of(lake, HASHED.name)
    assert not passed and "not witnessed because" in words and "hash(" in words
    assert words.endswith(f"add --unwitnessed '{HASHED.name}=REASON'")
    with pytest.raises(UsageError, match="'nothing' is not a table that plan"):
        lake.do("gate", plan=plan, unwitnessed=["nothing=at all"], reasons_by="ann")

    with pytest.raises(UsageError, match="nobody is named who gives the reasons"):
        lake.do("gate", plan=plan, unwitnessed=[f"{HASHED.name}=compared by hand"])

    gated = lake.do("gate", plan=plan, unwitnessed=[f"{HASHED.name}=compared by hand"], reasons_by="ann")
    assert gated["passed"]
    kept = lake.server.lake.plans.gate(plan, Gate)
    assert kept is not None
    (excuse,) = kept.excused.values()
    assert (excuse.reason, excuse.by) == ("compared by hand", "ann") and "hash(" in excuse.refused
    assert not lake.do("gate", plan=plan)["passed"], "a gate that is asked anew knows no reason"
    lake.do("promote", plan=plan, approved_by="tester", unwitnessed=[f"{HASHED.name}=compared by hand"])

    kept = lake.server.lake.plans.gate(plan, Gate)
    assert kept is not None and kept.excused == {HASHED.name: replace(excuse, by="tester")}
    words = words.split("; to go live")[0]
    assert gate_of(lake, HASHED.name) == (True, f"{words}; accepted by tester: compared by hand")


def test_a_lake_in_which_nobody_asks_it_has_certificates_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "twinlake.toml").write_text('[proof]\nwitness = "off"\n')
    lake = Lake(spark, home)
    try:
        lake.promote(lake.build({SALES.name: SALES}))
        append_orders(lake, 10)

        done = lake.do("verify", table=SALES.name)

        assert done["proof"] == "" and newest(lake).witness is None
    finally:
        lake.stop()

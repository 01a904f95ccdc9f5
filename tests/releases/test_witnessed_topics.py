"""Ingest is witnessed with the tables: in a verify of all of history, and once per topic in the gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import sales_per_region
from tests.registry import FakeRegistry
from tests.releases import lake as lakes
from tests.releases.lake import Lake, append_orders, following_sql_server, registry_of_orders
from twinlake.base.errors import DifferenceError
from twinlake.batch import witnessing_topics
from twinlake.cli import status
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.topic_certificates import TopicCertificate
from twinlake.releases.gate_checks import Check, Gate

SALES = sales_per_region.TABLE
COPY = replace(SALES, name="copied")


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with registry_of_orders() as found:
        yield found


@pytest.fixture
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, registry: FakeRegistry
) -> Iterator[Lake]:
    home = tmp_path_factory.mktemp("topics") / "home"
    home.mkdir()
    (home / "twinlake.toml").write_text('[proof]\nwitness = "required"\n')
    with following_sql_server(home / "lake") as url:
        found = Lake(spark, home, url, registry_url=registry.url)
        try:
            append_orders(found, 50)
            yield found
        finally:
            found.stop()


def newest(lake: Lake) -> TopicCertificate:
    found = lake.server.lake.certificates.topics.newest("orders")
    assert found is not None
    return found


def checks(lake: Lake, plan: str) -> list[Check]:
    gate = lake.server.lake.plans.gate(plan, Gate)
    assert gate is not None
    return [check for check in gate.checks if check.name == "ingest"]


def test_a_verify_and_a_gate_ask_once_for_each_topic_and_keep_seed_size_and_answer(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    real = witnessing_topics.ask
    monkeypatch.setattr(
        witnessing_topics, "ask", lambda *given, **more: asked.append(given) or real(*given, **more)
    )
    plan = lake.build({SALES.name: SALES, "copied": COPY})
    asked.clear()
    append_orders(lake, 10)

    gated = lake.do("gate", plan=plan)
    after_gate = len(asked)
    lake.promote(plan)
    append_orders(lake, 10)
    done = lake.do("verify", table=SALES.name)

    assert gated["passed"] and after_gate == 1
    (check,) = checks(lake, plan)
    assert check.table == "orders" and check.passed and check.detail.startswith("ingest = fastavro")
    made = newest(lake)
    assert made.answer.is_equal and made.answer.sampled == made.answer.compared == 70
    assert f"(70 of 70 records, seed {made.answer.seed})" in made.words
    assert done["topics"] == [f"orders: {made.words}"]
    (shown,) = lake.server.status()["topic_certificates"]
    assert (shown["words"], shown["disputed"], shown["seed"]) == (made.words, False, made.answer.seed)
    assert Certificates(lake.path).topics.newest("orders") == made, "a server that starts again knows it"


def test_a_mistake_of_ingest_is_named_and_blocks_the_release(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lakes.frame
    monkeypatch.setattr(
        lakes, "frame", lambda number, avro, one: real(number, avro, {**one, "region": one["region"] + "!"})
    )
    append_orders(lake, 1)
    plan = lake.build({SALES.name: SALES})

    with pytest.raises(DifferenceError, match=r"orders ingest: fastavro .* differs from ingest in 1 of "):
        lake.promote(plan)
    with pytest.raises(DifferenceError):  # no reason excuses a difference
        lake.do("promote", plan=plan, approved_by="tester", unwitnessed=["orders=I like it"])

    made = newest(lake)
    (first,) = made.answer.differences
    assert first.record == "0/0/50" and first.log == {"event.region": "'r0'"}
    assert first.witness == {"event.region": "'r0!'"}
    lists = ("topics", "versions", "certificates", "changelogs", "damaged")
    nothing: dict[str, Any] = {name: [] for name in lists}
    ((_, _, whose, problem),) = status.problems([], {**nothing, "topic_certificates": [made.summary()]})
    assert whose == "topic orders" and "record 0/0/50 has event.region 'r0', not 'r0!'" in problem["what"]


def test_a_topic_that_is_not_witnessed_goes_live_with_a_reason(lake: Lake, registry: FakeRegistry) -> None:
    plan = lake.build({SALES.name: SALES})
    append_orders(lake, 1)
    registry.down = True

    refused = lake.do("gate", plan=plan)
    accepted = lake.do("gate", plan=plan, unwitnessed=["orders=it is being moved"], reasons_by="ann")

    assert not refused["passed"]
    (check,) = checks(lake, plan)
    assert accepted["passed"] and check.detail.endswith("accepted by ann: it is being moved")
    assert "ingest is not witnessed because" in check.detail and "did not answer" in check.detail
    (why,) = (one for one in refused["checks"] if one["name"] == "ingest")
    assert why["detail"].endswith("add --unwitnessed 'orders=REASON'")

"""Which classification a column of a view has: by its contract, or by what it is made of."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tables import latest_order, sales_per_region
from tests.project import OURS, project_in
from tests.unopened import BIG, make_live, version
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import described
from twinlake.lake.catalog.release_log import live
from twinlake.server.contract_facts import ContractFacts, classification
from twinlake.topics.topic import load_topic


def classify(contract: Path, **columns: str) -> None:
    text = contract.read_text()
    for column, said in columns.items():
        assert f"- name: {column}\n" in text
        text = text.replace(f"- name: {column}\n", f"- name: {column}\n        classification: {said}\n")
    contract.write_text(text)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    project = tmp_path / "project"
    for folder in ("contracts", "schemas"):
        shutil.copytree(OURS.root / folder, project / folder)
    classify(project / "contracts" / "orders.yaml", customer="personal", amount="confidential")
    settings = Settings(home=tmp_path, in_project=project_in(project))
    formats.acquire(settings.lake)
    latest, sales = version(latest_order.TABLE, 1), version(sales_per_region.TABLE, 2)
    big = version(BIG, 3, sales_per_region=sales.name)
    for one in (latest, sales, big):
        one.save(settings.lake)
    make_live(settings.lake, {"latest_order": latest.name, "sales_per_region": sales.name, "big": big.name})
    topics = {"orders": load_topic("orders", project_in(project))}
    return SimpleNamespace(
        path=settings.lake, settings=settings, topics=SimpleNamespace(active=lambda: topics),
        versions=SimpleNamespace(living=lambda: [latest, sales, big]), contracts=project / "contracts",
    )  # fmt: skip


def test_what_is_classified_in_a_topic_is_so_in_what_is_made_of_it(lake: Any) -> None:
    found = classification(lake)

    assert found["orders_valid"]["customer"] == ["personal"] and found["orders_valid"]["region"] == []
    assert found["orders_valid"]["_offset"] == []
    both = ["confidential", "personal"]
    assert [found["orders_quarantine"][one] for one in ("key", "value", "reasons", "offset")] == [
        both, both, both, [],
    ]  # fmt: skip
    assert found["latest_order"]["customer"] == ["personal"]
    assert found["sales_per_region"]["sales"] == ["confidential"]
    assert [found["sales_per_region"][one] for one in ("region", "window_start", "orders", "final")] == [
        [], [], [], [],
    ]  # fmt: skip
    assert (found["big"]["total"], found["big"]["region"]) == (["confidential"], [])
    assert set(found["sales_per_region_late"]) >= {"late", "discarded", "window_start"}
    for table, kind in (("latest_order", latest_order), ("sales_per_region", sales_per_region)):
        assert set(kind.TABLE.output) <= set(found[table])


def test_a_table_s_own_contract_goes_before(lake: Any) -> None:
    classify(lake.contracts / "sales_per_region.yaml", sales="public")

    found = classification(lake)

    assert found["sales_per_region"]["sales"] == ["public"] and found["big"]["total"] == ["public"]


def test_of_a_topic_that_is_not_open_nothing_is_taken_for_public(lake: Any) -> None:
    lake.topics.active = dict

    found = classification(lake)

    assert "customer" not in found["latest_order"] and "orders_valid" not in found


def test_contracts_are_told_again_when_another_release_is_live(lake: Any) -> None:
    facts = ContractFacts()
    facts.look(lake, live(lake.path))
    assert described.classified(lake.path)["latest_order"]["customer"] == ["personal"]
    assert described.described(lake.path)["orders"].classes == {
        "customer": "personal",
        "amount": "confidential",
    }

    classify(lake.contracts / "orders.yaml", region="internal")
    facts.look(lake, live(lake.path))
    assert described.classified(lake.path)["latest_order"]["region"] == []
    now = live(lake.path)
    assert now is not None
    facts.look(lake, replace(now, number=2))
    assert described.classified(lake.path)["latest_order"]["region"] == ["internal"]


def test_a_file_that_is_torn_says_nothing(lake: Any) -> None:
    (lake.path / "classified.json").write_text('{"latest_order": {"cust')

    assert described.classified(lake.path) == {}

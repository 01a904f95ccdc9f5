"""What the lake server says of a table: from files of a lake, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tables import sales_per_region
from tests.cli.json_shapes import wrong
from tests.project import OURS
from tests.unopened import BIG, certificate, make_live, version
from twinlake.base.errors import NotFoundError
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.plans import Plans
from twinlake.reference.json_output import COMMANDS
from twinlake.server.table_facts import table_facts
from twinlake.topics.topic import load_topic


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """Sales in two versions, the first of which is live, and a table that reads it."""
    settings = Settings(home=tmp_path, in_project=OURS)
    formats.acquire(settings.lake)
    first, second = (version(sales_per_region.TABLE, build) for build in (1, 2))
    big = version(BIG, 3, sales_per_region=first.name)
    for one in (first, second, big):
        one.save(settings.lake)
    make_live(settings.lake, {"sales_per_region": first.name, "big": big.name})
    topics = {"orders": load_topic("orders", OURS)}
    return SimpleNamespace(
        path=settings.lake, settings=settings, plans=Plans(settings.lake),
        certificates=Certificates(settings.lake), topics=SimpleNamespace(active=lambda: topics),
        versions=SimpleNamespace(living=lambda: [first, second, big]),
    )  # fmt: skip


def test_a_table_has_meaning_lineage_up_and_down_versions_and_releases(lake: Any) -> None:
    found = table_facts(lake, "sales_per_region").to_json()

    assert wrong(COMMANDS["describe"], json.loads(json.dumps(found))) == []
    assert found["purpose"] == "Sales of each region per minute of event time."
    assert found["row"] == "One row per region and minute."
    assert (found["kind"], found["keys"]) == ("aggregate", ("region", "window_start"))
    assert found["stored"] and found["windows"] and found["late"] and found["read_by"] == ("big",)
    sales = next(one for one in found["columns"] if one["name"] == "sales")
    assert sales == {
        "name": "sales", "meaning": "Sum of the orders' amounts.", "key": False, "type": "decimal(38,2)",
        "made_of": [{"owner": "orders", "column": "amount"}],
        "used_by": [{"owner": "big", "column": "total"}],
    }  # fmt: skip
    assert {"owner": "orders", "column": "ordered_at"} in found["decided_by"]
    assert [(one["name"], one["releases"]) for one in found["versions"]] == [
        (f"{'2' * 12}-2", []), (f"{'1' * 12}-1", [1]),
    ]  # fmt: skip
    assert (found["live"], found["releases"][0]["number"]) == (f"{'1' * 12}-1", 1)
    assert found["definition"] == sales_per_region.TABLE.to_json()


def test_a_view_over_tables_names_those_that_it_reads(lake: Any) -> None:
    found = table_facts(lake, "big")

    assert (found.stored, found.late, found.reads, found.read_by) == (False, False, ("sales_per_region",), ())
    assert found.columns[1]["made_of"] == [{"owner": "sales_per_region", "column": "sales"}]


def test_its_certificates_are_those_of_all_its_versions_the_newest_first(lake: Any) -> None:
    made = [
        replace(certificate("sales_per_region", name, equal), id=f"c{number}")
        for number, (name, equal) in enumerate((("v-1", True), ("v-2", False), ("v-1", True)))
    ]
    for one in (*made, certificate("big", "v-3")):
        lake.certificates.add(one)

    found = table_facts(lake, "sales_per_region").certificates

    assert [one["id"] for one in found] == ["c2", "c1", "c0"]
    assert found == [one.summary() for one in reversed(made)]
    assert [one.id for one in Certificates(lake.path).of("sales_per_region", 2)] == ["c2", "c1"]


def test_a_topic_that_is_not_open_hides_the_lineage_alone(lake: Any) -> None:
    lake.topics.active = dict

    found = table_facts(lake, "sales_per_region")

    assert found.columns[0]["made_of"] == [] and found.versions


@pytest.mark.parametrize("name", ["none", "..", "../tables", "", "a/b", "sales_per_region/x"])
def test_what_is_no_table_is_said_with_those_that_there_are(lake: Any, name: str) -> None:
    with pytest.raises(NotFoundError, match="tables: big, sales_per_region"):
        table_facts(lake, name)

"""What the lake server says of a topic: what is active, and what the project's files say by now."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tables import orders
from tests.project import OURS, PROJECT
from tests.unopened import AT, make_live
from twinlake.base.errors import NotFoundError
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.version import Version
from twinlake.server.topic_facts import topic_facts, topic_files
from twinlake.topics.topic import load_topic


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project's files of topics, which a test may edit."""
    folder = tmp_path / "project"
    for name in ("schemas", "contracts"):
        shutil.copytree(PROJECT / name, folder / name)
    shutil.copy(PROJECT / "twinlake.toml", folder)
    return folder


@pytest.fixture
def lake(tmp_path: Path, project: Path) -> Any:
    """One live table that reads the topic, which is active as the project has it."""
    settings = Settings(home=tmp_path / "home", in_project=Project(root=project))
    formats.acquire(settings.lake)
    version = Version(
        table="orders", fingerprint="1" * 12, build=1, definition=orders.TABLE.to_json(), topics=("orders",),
        contracts={}, created_at=AT,
    )  # fmt: skip
    version.save(settings.lake)
    make_live(settings.lake, {"orders": version.name})
    active = {"orders": load_topic("orders", settings.in_project)}
    topics = SimpleNamespace(active=lambda: active, broken=lambda: ["torn"])
    return SimpleNamespace(
        path=settings.lake, settings=settings, topics=topics, certificates=Certificates(settings.lake)
    )


def test_a_topic_has_contract_schemas_columns_and_the_views_of_its_records(lake: Any) -> None:
    found = topic_facts(lake, "orders").to_json()

    assert found["purpose"].startswith("Order events of the shop")
    columns = {one["name"]: one for one in found["columns"]}
    assert columns["amount"] == {
        "name": "amount", "type": "decimal(12,2)", "meaning": "", "rules": ["required", "at least 0"],
        "used_by": [{"owner": "orders", "column": "amount"}],
    }  # fmt: skip
    assert columns["status"]["rules"] == ["required", "one of pending, paid, cancelled"]
    assert "unique" in columns["event_id"]["rules"]
    assert (found["schemas"][0]["number"], found["schemas"][0]["file"]) == (1, "orders.v1.avsc")
    assert found["views"]["quarantine"] == "orders_quarantine" and found["read_by"] == ("orders",)
    assert (found["contract"]["file"], found["contract"]["late_after"]) == ("orders.yaml", "3 hours")
    assert (found["files"]["state"], found["certificate"]) == ("active", None)


def test_files_are_active_edited_removed_wrong_or_new(lake: Any, project: Path) -> None:
    def states() -> dict[str, str]:
        return {one.name: one.state for one in topic_files(lake)}

    contract = project / "contracts" / "orders.yaml"
    text = contract.read_text()
    assert states() == {"orders": "active", "torn": "removed"}
    contract.write_text(text.replace("version: 1.0.0", "version: 1.1.0"))
    edited = next(one for one in topic_files(lake) if one.name == "orders")
    assert (edited.state, edited.contract, edited.written) == ("edited", "1.0.0", "1.1.0")
    contract.write_text(text.replace("3 hours", "soon"))
    wrong = topic_facts(lake, "orders").files
    assert wrong.state == "wrong" and "soon" in wrong.why and not wrong.hash
    contract.write_text(text)
    (project / "schemas" / "orders.v1.avsc").rename(project / "schemas" / "others.v1.avsc")
    contract.rename(project / "contracts" / "others.yaml")
    assert states()["orders"] == "removed"


def test_an_unopened_topic_is_not_found(lake: Any) -> None:
    with pytest.raises(NotFoundError, match="it could not be opened"):
        topic_facts(lake, "torn")
    with pytest.raises(NotFoundError, match="topics that are read: orders"):
        topic_facts(lake, "none")
    assert load_topic("orders", OURS).name == "orders"

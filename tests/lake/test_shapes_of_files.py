"""A file of the lake that is valid JSON and of another shape is damaged, and named with its cure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import DamagedError
from twinlake.changelog.changelogs import Changelogs
from twinlake.lake.catalog import stalled, version
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.log.active_topics import active_topic
from twinlake.releases.comparison import Comparison
from twinlake.releases.gate_checks import Gate
from twinlake.services.folders import Folders
from twinlake.services.supervise import record

ID = "0123456789ab"
READ: dict[str, Callable[[Path], Any]] = {
    f"plans/{ID}.json": lambda lake: Plans(lake).load(ID),
    f"plans/{ID}.gate.json": lambda lake: Plans(lake).gate(ID, Gate),
    f"plans/{ID}.diff.sales.json": lambda lake: Plans(lake).diff(ID, "sales", Comparison),
    "report.json": stalled.published,
    "topics/orders.json": lambda lake: active_topic(lake, "orders"),
    f"tables/sales/{ID}-1.json": lambda lake: version.load(version.version_file(lake, "sales", f"{ID}-1")),
    "changelogs/sales.json": lambda lake: Changelogs(lake, "id")._on(),
}
OTHER = [None, [], [1], {"a": 1}, 7, "text", True]


@pytest.mark.parametrize("found", OTHER, ids=json.dumps)
@pytest.mark.parametrize("name", READ)
def test_a_file_of_another_shape_is_named_with_what_is_wrong_and_what_to_do(
    tmp_path: Path, name: str, found: Any
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found))

    with pytest.raises(DamagedError) as error:
        READ[name](tmp_path)

    assert str(file) in error.value.what
    assert "expected: what the lake server wrote" in error.value.why
    assert error.value.remedy


def test_a_number_where_a_text_is_due_is_named_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"number": 1, "at": 7, "stalled": [{"table": "sales"}]}')

    with pytest.raises(DamagedError) as error:
        stalled.published(tmp_path)

    assert "at: Input should be a valid string" in error.value.why
    assert "stalled.0.version: Field required" in error.value.why


@pytest.mark.parametrize("found", OTHER, ids=json.dumps)
def test_a_record_of_another_shape_is_none(tmp_path: Path, found: Any) -> None:
    """What runs is found out again: a part without a record is stopped, one that nobody wants is not."""
    folders = Folders(home=tmp_path)
    folders.records.mkdir(parents=True)
    (folders.records / "lake.json").write_text(json.dumps(found))
    (folders.run / "wanted.json").write_text(json.dumps(found))

    assert record.load(folders, "lake").state == "stopped"
    assert record.wanted(folders) == set()

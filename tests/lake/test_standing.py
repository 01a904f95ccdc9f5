"""Where a lake stands, by its files alone: of the oldest format, too, and while nobody runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.small_lake.small import unpack
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.standing import standing


@pytest.mark.parametrize("is_taken_on", [False, True])
def test_release_logs_and_positions_are_read_without_changing_anything(
    tmp_path: Path, is_taken_on: bool
) -> None:
    lake = unpack(0, tmp_path)
    if is_taken_on:
        formats.acquire(lake)
    before = {file: file.read_bytes() for file in lake.rglob("*") if file.is_file()}

    found = standing(lake)

    live = release_log.live(lake)
    assert live and found["release"] == {"number": 2, "tables": live.tables}
    assert found["logs"] == {**dict.fromkeys(("clicks", "plays", "profiles", "searches", "shop_customers",
                                              "shop_orders"), 4), "orders": 5}  # fmt: skip
    stored = {f"{table} {name}" for table, name in live.tables.items()} & found["positions"].keys()
    assert {"customers_now 2f2d00be9a9c-1", "habits 75abfd47e9a3-2"} <= stored
    assert found["positions"]["habits 75abfd47e9a3-2"] == {"orders": 5}
    assert {file: file.read_bytes() for file in lake.rglob("*") if file.is_file()} == before


def test_what_the_lake_server_said_of_stalled_versions_is_known_after_it_has_ended(tmp_path: Path) -> None:
    lake = unpack(0, tmp_path)
    report = {"stalled": [{"table": "habits", "version": "a-1", "why": "it raises", "position": {}}]}
    (lake / "report.json").write_text(json.dumps(report))

    assert standing(lake)["stalled"] == ["habits a-1"]


def test_an_empty_lake_stands_nowhere(tmp_path: Path) -> None:
    formats.acquire(tmp_path)

    assert standing(tmp_path) == {"release": None, "logs": {}, "positions": {}, "stalled": []}

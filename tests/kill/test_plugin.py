"""A package's kinds and measure, found by entry points, go through a lake server with a broker of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views
from tests.plugin import AGES, LOGS, STATUSES, expected, installed, promised, shown
from tests.plugin.their_tables import Ages, LogSum, Statuses
from tests.releases.promised import project_of
from twinlake.base.errors import DifferenceError
from twinlake.kinds import all as kinds
from twinlake.kinds.measures import all as measures

TABLES: dict[str, Any] = {table.name: table for table in (AGES, STATUSES, LOGS)}


@pytest.fixture
def server(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[LakeProcess]:
    """Into the environment of the lake server alone the package is installed."""
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(installed(tmp_path / "site")), prepend=os.pathsep)
    project = project_of(tmp_path / "project", promised("status"))
    with lake_process(tmp_path, seed) as made:
        made.command = ["-m", "twinlake.server", "--project", str(project)]
        yield made.start()


@pytest.fixture
def views(server: LakeProcess, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Views]:
    """A reader, which knows the package's kinds too."""
    for one in (Ages, Statuses):
        monkeypatch.setitem(kinds.KINDS, one.kind, one)
    monkeypatch.setitem(measures.MEASURES, LogSum.kind, LogSum)
    made = Views(spark, server.lake)
    yield made
    made.close()


def valid(server: LakeProcess) -> list[dict[str, Any]]:
    """The events of the log that count."""
    rows = DeltaTable(str(server.lake / "logs" / "orders")).to_pyarrow_table(columns=["verdict", "event"])
    return [one["event"] for one in rows.to_pylist() if one["verdict"] == "valid"]


def stalled(server: LakeProcess) -> dict[str, str]:
    """By table, why its version cannot be opened."""
    versions = server.client.status()["versions"]
    return {one["table"]: one["error"]["what"] for one in versions if one["error"]}


def served(views: Views) -> dict[str, dict[str, Any]]:
    views.follow()
    rows = {name: views.rows(f"SELECT * FROM serve.{name}") for name in TABLES}
    return {name: shown([[*row.values()] for row in found]) for name, found in rows.items()}


@pytest.mark.faults
def test_tables_of_a_package_are_released_maintained_verified_and_survive_a_kill_and_a_missing_package(
    server: LakeProcess, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = {name: table.to_json() for name, table in TABLES.items()}
    server.produce(2_000)
    plan = server.do("plan", definitions=definitions)["id"]
    server.do("build", plan=plan)
    with pytest.raises(DifferenceError, match=r"kind ages \(the witness does not know this kind\)"):
        server.do("promote", plan=plan, approved_by="test")
    reasons = [f"{name}=a kind of our own" for name in TABLES]
    server.do("promote", plan=plan, approved_by="test", unwitnessed=reasons)
    server.produce(1_000)
    server.until(server.caught_up)
    first = served(views)
    assert first == {name: expected(table, valid(server)) for name, table in TABLES.items()}

    server.kill()
    with monkeypatch.context() as elsewhere:
        elsewhere.delenv("PYTHONPATH")
        server.start()
    assert stalled(server) == {
        "ages": "unknown table kind 'ages'", "logs": "unknown measure kind 'log_sum'",
        "statuses": "unknown table kind 'statuses'",
    }  # fmt: skip

    server.kill()
    server.start()
    server.produce(1_000)
    server.until(server.caught_up)

    assert {name: server.do("verify", table=name)["equal"] for name in TABLES} == dict.fromkeys(TABLES, True)
    assert server.do("rebuild", table="ages")["equal"] and server.do("rebuild", table="logs")["equal"]
    assert served(views) == {name: expected(table, valid(server)) for name, table in TABLES.items()} != first

"""The executor of a real lake server and of a real SQL server ends: status says so, both start again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.breakable import file_of
from tests.faults.twinlake import Twinlake
from tests.project import PROJECT
from twinlake.base.waiting import wait_for
from twinlake.server.client import LakeClient
from twinlake.services.supervise import record
from twinlake.services.supervise.record import supervisor_alive

PARTS = ("lake", "sql")


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    command = Twinlake(tmp_path_factory.mktemp("twinlake"))
    home = command.settings.home
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.breakable", "--home", str(home)], cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )  # fmt: skip
    try:
        wait_for("the supervisor", lambda: supervisor_alive(command.settings) or None, 60)
        command("up", "--only", ",".join(PARTS))
        yield command
    finally:
        command("down")
        supervisor.wait(60)


def status(twinlake: Twinlake) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "status", "--json"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "TWINLAKE_HOME": str(twinlake.settings.home)}, cwd=PROJECT,
    )  # fmt: skip
    parts: list[dict[str, Any]] = json.loads(done.stdout)["parts"]
    return {part["part"]: part for part in parts if part["part"] in PARTS}


def test_an_executor_that_ended_is_told_by_status_and_replaced_within_the_start_of_a_server(
    twinlake: Twinlake,
) -> None:
    before = {part: record.load(twinlake.folders, part).restarts for part in PARTS}

    for part in PARTS:
        file_of(twinlake.settings.home, part).write_text("the executor ends")
    told: dict[str, Any] = {}

    def all_told() -> bool | None:
        told.update({name: part for name, part in status(twinlake).items() if part["error"]})
        return len(told) == len(PARTS) or None

    wait_for("the error of both", all_told, 120, every_s=0)
    for part in told.values():
        assert part["error"]["what"] == "Spark runs nothing any more in this process"
        assert "its executor has ended" in part["error"]["why"] and not part["answers"]
    for part in PARTS:
        wait_for(f"{part} again", lambda part=part: twinlake.ready_again(part, before[part] + 1), 240)
    assert [part["error"] for part in status(twinlake).values()] == [None, None]
    client = LakeClient.of(twinlake.settings.services())
    assert client.follow(client.submit("verify", {"table": "sales_per_region"}, None).id).succeeded()
    twinlake("query", "SELECT count(*) FROM range(1000)")

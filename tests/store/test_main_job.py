"""The whole main job over a lake in HDFS, by the command line and under the supervisor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.demo.lake_view import LakeView
from tests.demo.story import CHANGED as SALES
from tests.demo.story import changed_definitions
from tests.faults.twinlake import Twinlake
from tests.oracle.check import check
from tests.oracle.judge import Registry
from tests.oracle.shown import SqlDoor
from tests.oracle.topic import client_of, end_offsets
from tests.project import PROJECT
from tests.store.hdfs import Hdfs
from twinlake.base.location import Remote
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.storage import store
from twinlake.server.client import LakeClient

TOPIC = "orders"
RECORDS = 20_000


class Platform:
    def __init__(self, twinlake: Twinlake, lake: Remote) -> None:
        self.twinlake, self.lake = twinlake, lake
        self.settings = twinlake.settings

    def produce(self, seed: int) -> None:
        self.twinlake(
            "produce", TOPIC, "--count", str(RECORDS), "--seed", str(seed), "--faults", "--span", "2h"
        )

    def caught_up(self) -> None:
        ends = end_offsets(self.settings.services().kafka("ingest").client(), TOPIC)
        LakeView(self.settings).caught_up(TOPIC, ends)

    def told(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        command = [sys.executable, "-m", "twinlake", *arguments, "--json"]
        environ = {**os.environ, "TWINLAKE_HOME": str(self.settings.home)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environ, cwd=PROJECT)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def do(self, kind: str, **params: Any) -> dict[str, Any]:
        client = LakeClient.of(self.settings.services())
        return client.follow(client.submit(kind, params).id).succeeded()

    def refused(self, *, without_cancelled: bool) -> dict[str, Any]:
        """By table, the keys in which it is not what the oracle computes of the topic."""
        self.caught_up()
        services = json.loads(self.settings.services_file.read_text())
        found = check(
            kafka=client_of(services), registry_url=Registry.of(services),
            door=SqlDoor(services["sql_url"], services["sql_user"], services["sql_password"]),
            without_cancelled=without_cancelled,
        )  # fmt: skip
        assert found["records"] > 0
        return {name: one["examples"] for name, one in found["tables"].items() if not one["equal"]}

    def shown(self, sql: str, *more: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.told("query", sql, *more)
        return rows


@pytest.fixture(scope="module")
def platform(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    home, lake = tmp_path_factory.mktemp("twinlake"), hdfs.lake("main/lake")
    (home / "twinlake.toml").write_text(f'[lake]\nuri = "{lake}"\n')
    twinlake = Twinlake(home)
    try:
        twinlake("up", "--only", "lake,sql")
        yield Platform(twinlake, lake)
    finally:
        twinlake("down")


def test_the_main_job_over_a_lake_in_hdfs(platform: Platform) -> None:
    """Produce, tables, a rebuild, a release and its rollback, the past, a kill; then the oracle."""
    assert not (platform.settings.home / "lake").exists()
    platform.produce(1)
    assert platform.refused(without_cancelled=False) == {}

    rebuilt = platform.told("rebuild", SALES)
    assert rebuilt["equal"] and rebuilt["replaced"]

    before = platform.shown(f"SELECT sum(orders) AS orders FROM serve.{SALES}")[0]["orders"]
    plan = platform.do("plan", definitions=changed_definitions())["id"]
    platform.do("build", plan=plan)
    assert not platform.do("diff", plan=plan, table=SALES)["equal"]
    promoted = platform.told("promote", plan, "--approved-by", "test")
    assert promoted["release"] == 2
    after = platform.shown(f"SELECT sum(orders) AS orders FROM serve.{SALES}")[0]["orders"]
    assert after < before
    assert platform.refused(without_cancelled=True) == {}
    as_it_was = platform.shown(f"SELECT sum(orders) AS orders FROM serve.{SALES}", "--as-of", "release:1")
    assert as_it_was[0]["orders"] == before

    assert platform.told("rollback", "--approved-by", "test")["release"] == 3
    assert [one["number"] for one in platform.told("releases")] == [3, 2, 1]
    platform.produce(2)
    platform.twinlake.python("lake").kill()
    wait_for("the lake server again", lambda: platform.twinlake.ready_again("lake", 1), 180)
    platform.produce(3)
    assert platform.refused(without_cancelled=False) == {}
    assert platform.told("verify", SALES)["equal"]

    live = release_log.live(platform.lake)
    assert live and live.number == 3
    assert {"logs", "tables", "releases", "runs", "certificates"} <= set(store.names(platform.lake))
    assert not (platform.settings.home / "lake").exists(), "nothing of the lake is on this machine"


def test_the_sql_server_may_read_the_lake_and_not_write_it(platform: Platform) -> None:
    name = platform.twinlake.python("sql").environ()["HADOOP_USER_NAME"]
    code = (
        "from twinlake.lake.storage import store; from twinlake.base.location import Remote; "
        f"lake = Remote({str(platform.lake)!r}); print(store.names(lake)); store.replace(lake / 'theirs', '')"
    )
    environ = {**os.environ, "HADOOP_USER_NAME": name}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=PROJECT, capture_output=True, text=True
    )

    assert platform.shown("SELECT 1 AS one") == [{"one": 1}]
    assert "lake.json" in done.stdout, done.stderr[-2000:]
    assert done.returncode == 1 and f"Permission denied: user={name}, access=WRITE" in done.stderr


def test_a_second_machines_server_is_refused(platform: Platform, tmp_path: Any) -> None:
    (tmp_path / "twinlake.toml").write_text(f'[lake]\nuri = "{platform.lake}"\n')
    platform.settings.services().save(tmp_path / "services.json")
    command = [sys.executable, "-m", "twinlake.server", "--home", str(tmp_path), "--port", "1"]

    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    assert done.returncode == 1 and "in use by another lake server" in done.stderr

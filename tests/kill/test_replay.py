"""A contract is mended and its quarantine judged again, by a server that is killed in the middle of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views
from tests.oracle.check import check
from tests.oracle.judge import RULES
from tests.oracle.mended import Mended
from tests.oracle.topic import end_offsets
from tests.project import PROJECT
from twinlake.base.breakpoints import Point

TABLES = ("orders", "latest_order", "sales_per_region")
REPLAYED = {"topic": "orders"}


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    """Those of a copy of the project, that may be edited."""
    project = tmp_path / "project"
    for folder in ("schemas", "contracts"):
        shutil.copytree(PROJECT / folder, project / folder)
    (project / "twinlake.toml").write_text("[project]\n")
    return project / "contracts"


@pytest.fixture
def server(tmp_path: Path, contracts: Path, seed: int) -> Iterator[LakeProcess]:
    with lake_process(tmp_path, seed) as made:
        made.command = ["-m", "twinlake.server", "--project", str(contracts.parent)]
        yield made


@pytest.fixture
def views(spark: SparkSession, server: LakeProcess) -> Iterator[Views]:
    found = Views(spark, server.lake)
    yield found
    found.close()


def differences(server: LakeProcess, views: Views, mended: Mended | None) -> dict[str, Any]:
    views.follow()
    found = check(
        kafka=server.broker.login.client(), registry_url=server.services.registry_url, door=views,
        mended=mended,
    )  # fmt: skip
    assert found["records"] == server.produced
    return {name: one["examples"] for name, one in found["tables"].items() if not one["equal"]}


def killed_at(server: LakeProcess, point: Point) -> None:
    """In the middle of the replay, and up again."""
    server.stop_at(point)
    job = server.client.submit("replay", REPLAYED, key="mended").id
    server.until_stopped_at(point)
    server.kill()
    server.start()
    assert server.client.job(job).state == "interrupted"


@pytest.mark.faults
def test_what_a_mended_contract_admits_is_in_every_table_once_however_often_the_server_is_killed(
    server: LakeProcess, contracts: Path, views: Views
) -> None:
    server.start()
    server.release()
    server.produce(20_000)
    server.until(server.caught_up)
    refused = {"reasons": ["not_allowed:status"], "contract": "1.0.0", "replay": False}
    views.follow()
    (counted,) = views.rows(
        "SELECT reasons, contract, replay, count(*) AS n FROM serve.orders_quarantine "
        "WHERE array_contains(reasons, 'not_allowed:status') GROUP BY ALL"
    )
    assert counted == {**refused, "n": counted["n"]} and counted["n"] > 1
    since = end_offsets(server.broker.login.client(), "orders")
    server.kill()
    text = (contracts / "orders.yaml").read_text()
    fixed = text.replace("- value: cancelled\n", "- value: cancelled\n          - value: refunded\n")
    (contracts / "orders.yaml").write_text(fixed.replace("version: 1.0.0", "version: 1.1.0"))
    server.start()
    new = replace(RULES, statuses=RULES.statuses | {"refunded"})
    assert differences(server, views, Mended(rules=new, since=since)) == {}

    killed_at(server, Point.AFTER_LOG_FILES)
    assert differences(server, views, Mended(rules=new, since=since)) == {}
    killed_at(server, Point.AFTER_LOG_COMMIT)
    server.until(server.caught_up)
    batch = server.client.status()["topics"][0]["batch"]
    same = server.do("replay", key="mended", **REPLAYED)
    again = server.do("replay", **REPLAYED)

    mended = Mended(rules=new, since=since, replayed=since)
    assert (same["replayed"], again["replayed"], same["judged"]) == (0, 0, again["judged"])
    assert server.client.status()["topics"][0]["batch"] == batch
    assert differences(server, views, mended) == {}
    became = views.rows(
        "SELECT first_reasons, first_contract, verdict, contract, count(*) AS n FROM serve.orders_replayed "
        "WHERE verdict IN ('valid', 'duplicate') GROUP BY ALL"
    )
    assert sum(one["n"] for one in became) == counted["n"]
    assert {(one["first_contract"], one["contract"]) for one in became} == {("1.0.0", "1.1.0")}
    server.produce(2_000)
    server.until(server.caught_up)
    assert differences(server, views, mended) == {}
    for table in TABLES:
        assert server.do("verify", table=table)["equal"]
    assert server.do("rebuild", table="sales_per_region")["equal"]
    assert differences(server, views, mended) == {}
    log = DeltaTable(str(server.lake / "logs" / "orders")).to_pyarrow_table(
        columns=["epoch", "partition", "offset", "replay"]
    )
    originals = log.filter([not copy for copy in log.column("replay").to_pylist()])
    assert originals.num_rows == originals.group_by(["epoch", "partition", "offset"]).aggregate([]).num_rows
    assert originals.num_rows == server.produced

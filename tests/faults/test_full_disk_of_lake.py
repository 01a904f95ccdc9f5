"""Each disk of a lake becomes full under its server, beside a real broker: all goes on when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.tables import sales_per_region
from tests.faults.disk import Disk, small_disk
from tests.kill.server import LakeProcess, lake_process
from tests.project import TABLES
from twinlake.base.errors import FullDiskError
from twinlake.lake.catalog import release_log

FOLDERS = ("logs", "tables", "checkpoints", "releases", "runs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeProcess]:
    with lake_process(tmp_path_factory.mktemp("full")) as made:
        yield made


@pytest.fixture(scope="module")
def disks(server: LakeProcess) -> Iterator[dict[str, Disk]]:
    """One for each folder of the lake; the server runs, with a first release over some records."""
    with ExitStack() as mounted:
        made = {name: mounted.enter_context(small_disk(server.lake / name, 48)) for name in FOLDERS}
        server.start()
        server.release()
        server.produce(1000)
        server.until(server.caught_up)
        yield made
        server.kill()


@pytest.mark.parametrize("folder", ["logs", "tables", "checkpoints"])
def test_records_wait_at_the_broker_while_a_disk_is_full_and_none_is_lost(
    server: LakeProcess, disks: dict[str, Disk], folder: str
) -> None:
    disks[folder].fill()
    server.produce(1000)
    server.until(lambda: f"the disk of {server.lake / folder} is full" in said(server))

    disks[folder].give_room()
    server.until(lambda: server.caught_up() and not said(server), 180)

    record_id = ["epoch", "partition", "offset"]
    log = DeltaTable(str(server.lake / "logs" / "orders")).to_pyarrow_table(columns=record_id)
    assert log.num_rows == log.group_by(record_id).aggregate([]).num_rows == server.produced
    for table in TABLES:
        assert server.do("verify", table=table.name)["equal"], table.name
    if folder == "tables":  # what a rebuild computes lies on another disk
        assert server.do("rebuild", table=sales_per_region.TABLE.name)["equal"]


def said(server: LakeProcess) -> list[str]:
    """What is wrong now, of topics and versions."""
    status = server.client.status()
    parts: list[dict[str, Any]] = [*status["topics"], *status["versions"]]
    return [part["error"]["what"] for part in parts if part["error"]]


def test_a_release_that_has_no_room_is_not_made_and_can_be_made_later(
    server: LakeProcess, disks: dict[str, Disk]
) -> None:
    changed = replace(sales_per_region.TABLE, where="status <> 'cancelled'")
    tables = {table.name: table.to_json() for table in (*TABLES, changed)}
    plan = server.do("plan", definitions=tables)["id"]
    server.do("build", plan=plan)
    before = release_log.live(server.lake)

    disks["releases"].fill()
    with pytest.raises(FullDiskError, match=f"the disk of {server.lake / 'releases'} is full"):
        server.do("promote", key="release", plan=plan, approved_by="test")
    assert release_log.live(server.lake) == before

    disks["releases"].give_room()
    assert server.do("promote", key="release", plan=plan, approved_by="test")["release"] == 2


def test_a_job_that_has_no_room_is_refused_and_taken_later(
    server: LakeProcess, disks: dict[str, Disk]
) -> None:
    disks["runs"].fill()
    with pytest.raises(FullDiskError, match=f"the disk of {server.lake / 'runs'} is full"):
        server.do("verify", key="nightly", table="orders")

    disks["runs"].give_room()
    assert server.do("verify", key="nightly", table="orders")["equal"]

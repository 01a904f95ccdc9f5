"""The lake server before its lake is open: it answers, and what it cannot do yet it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.errors import BusyError
from jobs.lake import release_log
from jobs.lake.release_log import Release
from jobs.lake.version import Version
from jobs.server.lake_server import LakeServer
from jobs.settings import Settings
from jobs.tables import orders
from jobs.times import utc_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def no_session(settings: Settings) -> SparkSession:
    raise AssertionError("nobody may need Spark here")


@pytest.fixture
def server(tmp_path: Path) -> LakeServer:
    return LakeServer(Settings(home=tmp_path), utc_now, no_session)


def test_a_job_that_comes_too_early_waits_until_the_lake_is_open(server: LakeServer) -> None:
    job = server.jobs.wait(server.jobs.submit("verify", {"table": "orders"}).id, 0.2)

    assert (job.state, job.result, job.error) == ("queued", None, None)
    with pytest.raises(BusyError, match="the lake is not open yet"):
        _ = server.lake


def test_the_status_is_answered_before_the_lake_is_open(server: LakeServer) -> None:
    assert server.status() == {
        "lake_id": server.lake_id, "topics": [], "versions": [], "tables": [], "release": None,
        "certificate": None,
    }  # fmt: skip
    assert not server.ready


def test_a_lake_keeps_its_id_and_its_jobs_over_a_restart(tmp_path: Path, server: LakeServer) -> None:
    job = server.jobs.submit("maintain", {})
    server.stop()

    again = LakeServer(Settings(home=tmp_path), utc_now, no_session)

    assert again.lake_id == server.lake_id
    assert again.jobs.get(job.id) == job


def test_a_definition_that_is_no_longer_understood_hides_no_table(server: LakeServer) -> None:
    lake, made = server.settings.lake, {}
    for table, definition in (("orders", orders.TABLE.to_json()), ("old", {"kind": "of another time"})):
        version = Version(
            table=table, fingerprint="0" * 12, build=1, definition=definition, topics=("orders",),
            contracts={}, created_at="2026-01-31T12:00:00Z",
        )  # fmt: skip
        version.save(lake)
        made[table] = version.name
    release_log.commit(
        lake,
        Release(number=1, kind="promote", tables=made, created_at="2026-01-31T12:00:00Z", approved_by="me"),
    )

    status = server.status()

    assert {one["name"]: one["stored"] for one in status["tables"]} == {"orders": False, "old": True}
    assert status["release"]["tables"] == made

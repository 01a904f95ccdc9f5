"""The lake server before its lake is open: it answers, and what it cannot do yet it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tables import orders
from tests.project import OURS
from tests.unopened import certificate, make_live, unopened
from twinlake.base.errors import BusyError
from twinlake.base.times import utc_now
from twinlake.config.settings import Settings
from twinlake.ingest.ingest import CYCLE_FLOOR_S
from twinlake.ingest.log_end import LogEnd
from twinlake.ingest.pace import RECORDS_PER_BATCH
from twinlake.lake.catalog.version import Health, Version
from twinlake.server import lake_server
from twinlake.server.lake_server import LakeServer


@pytest.fixture
def server(tmp_path: Path) -> LakeServer:
    return unopened(tmp_path)


def test_a_job_that_comes_too_early_waits_until_the_lake_is_open(server: LakeServer) -> None:
    job = server.jobs.wait(server.jobs.submit("verify", {"table": "orders"}).id, 0.2)

    assert (job.state, job.result, job.error) == ("queued", None, None)
    with pytest.raises(BusyError, match="the lake is not open yet"):
        _ = server.lake


def test_the_status_is_answered_before_the_lake_is_open(server: LakeServer) -> None:
    assert server.status() == {
        "lake_id": server.lake_id, "ready": False,
        "topics": [], "versions": [], "tables": [], "release": None,
        "certificates": [],
        "topic_certificates": [],
        "changelogs": [], "published": [], "webhooks": [],
        "spark": None,
        "damaged": [], "waiting": None, "backup": None,
        "paused": [],
    }  # fmt: skip
    assert not server.ready


def test_a_lake_keeps_its_id_and_its_jobs_over_a_restart(tmp_path: Path, server: LakeServer) -> None:
    job = server.jobs.submit("maintain", {})
    server.stop()

    again = unopened(tmp_path)

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
    make_live(lake, made)

    status = server.status()

    assert {one["name"]: one["stored"] for one in status["tables"]} == {"orders": False, "old": True}
    assert status["release"]["tables"] == made


def test_the_status_tells_the_newest_certificate_of_each_live_table_and_of_nothing_else(
    server: LakeServer,
) -> None:
    unequal = certificate("sales", "a-1", equal=False)
    certified = certificate("latest", "l-1")
    retired, green = certificate("sales", "a-0", equal=False), certificate("latest", "l-2", equal=False)
    for made in (certificate("sales", "a-1"), unequal, certified, retired, green):
        server._certificates.add(made)
    make_live(server.settings.lake, {"sales": "a-1", "latest": "l-1", "new": "n-1"})

    assert server.status()["certificates"] == [certified.summary(), unequal.summary()]


def test_records_that_came_while_the_versions_were_asked_are_not_shown_yet(
    server: LakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a log would seem to be whole and no version behind it."""
    ingest: Any = SimpleNamespace(
        state="running", error=None, log_end=LogEnd.of("orders", {}), unreadable=list
    )

    def health() -> list[Health]:
        ingest.log_end = replace(ingest.log_end, counts={"valid": 5})
        return []

    monkeypatch.setitem(server.ingests, "orders", ingest)
    monkeypatch.setattr(server, "_versions", SimpleNamespace(health=health))
    monkeypatch.setattr(server, "ready", True)

    (topic,) = server.status()["topics"]

    assert topic["records"] == 0


def test_ingest_takes_its_limits_from_the_settings_and_its_own_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_server, "Ingest", lambda *_, **given: given)
    log: Any = SimpleNamespace(spark=None, topic=None)
    limited = tmp_path / "limited"
    limited.mkdir()
    (limited / "twinlake.toml").write_text("[limits]\ncycle_milliseconds = 2000\nrecords_per_batch = 5000\n")

    by_default, found = (
        lake_server.kafka_ingest(Settings(home=home, in_project=OURS), log, lambda *_: None, utc_now)
        for home in (tmp_path, limited)
    )

    assert by_default == {"records_per_batch": RECORDS_PER_BATCH, "floor_s": CYCLE_FLOOR_S}
    assert found == {"records_per_batch": 5_000, "floor_s": 2.0}

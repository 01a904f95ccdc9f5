"""Every DAG, one after another: Airflow's own task runner, a real lake server, broker and tables.

Unmarked, although it takes longer than ten seconds: CONTRIBUTING.md promises that CI runs every DAG.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.dags.installation import SALES, Installation, changed, states
from tests.kill.server import lake_process
from twinlake.backup.archive import Archive
from twinlake.base.times import format_moment, utc_now

pytestmark = pytest.mark.services


def events_by_asset(events: list[list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event, asset in events:
        found.setdefault(asset, []).append(event)
    return found


def test_every_dag_does_its_work_on_a_real_lake_server(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with lake_process(tmp_path) as server:
        with (server.home / "twinlake.toml").open("a") as settings:
            settings.write(f'[backup]\nfolder = "{backups}"\n')
        server.start()
        server.produce(500)
        server.until(server.caught_up)
        hour = utc_now().replace(minute=0, second=0, microsecond=0)
        start, end = (format_moment(hour + timedelta(hours=hours)) for hours in (-1, 1))
        range_ = {"table": SALES, "from": start, "to": end, "chunk_hours": 1}
        installation = Installation(server, tmp_path / "airflow")

        told = installation.run(
            ("batch", {}),
            ("release", {}),
            ("batch", {}),
            ("backfill", {**range_, "repair": True, "reason": "a test"}),
            ("replay", {"topic": "orders", "reason": None}),
            ("reload", {}),
            ("release", {"definitions": changed()}, "too few rows"),
            ("release", {"definitions": changed()}),
            ("rollback", {"reason": "too few orders"}),
            ("maintain", {"keep": 1}),
            ("backup", {}),
        )

        nothing_live, first, batch, backfill, replay, reload, rejected, second, *last = told["runs"]
        assert states(nothing_live) == {"success", "skipped"}
        done = (first, batch, backfill, replay, reload, second, *last)
        assert [states(run) for run in done] == [{"success"}] * len(done)
        assert rejected["state"] == "failed"
        assert ["promote", -1, "upstream_failed"] in rejected["tasks"]
        live = installation.live()
        switches = [job for job in server.client.jobs() if job.kind in ("promote", "rollback")]
        assert [job.params["approved_by"] for job in switches] == ["dag_test", "Ada", "Ada"]
        assert (live["number"], live["reason"]) == (3, "too few orders")
        assert installation.jobs("batch").keys() == {
            ("rebuild", SALES), ("rebuild", "latest_order"), ("verify", SALES), ("verify", "latest_order"),
            ("verify", "orders"),
        }  # fmt: skip
        (backup,) = installation.jobs("backup").values()
        assert Archive(backups).ids() == [backup["id"]] and Archive(backups).load().release == 3
        assert all(result["equal"] for result in installation.jobs("batch").values())
        chunks = [job for job in server.client.jobs() if (job.key or "").startswith("backfill/")]
        assert {job.succeeded()["covers"] for job in chunks} == {
            f"windows {start} to {format_moment(hour)}", f"windows {format_moment(hour)} to {end}"
        }  # fmt: skip
        assert sum(job.succeeded()["rows_compared"] for job in chunks) > 0
        assert {job.params["reason"] for job in chunks} == {"a test"}
        (judged,) = [job for job in server.client.jobs() if job.kind == "replay"]
        assert judged.succeeded()["judged"] >= 0
        (reloaded,) = [job for job in server.client.jobs() if job.kind == "reload"]
        assert reloaded.succeeded()["unchanged"] == ["orders"]
        _, page, _ = told["asked"]
        assert SALES.replace("_", r"\_") in page and "checks passed" in page
        assert events_by_asset(told["events"]) == {
            f"twinlake://tables/{SALES}": ["released", "certified", "released", "rolled back"],
            "twinlake://tables/latest_order": ["released", "certified", "rolled back"],
            "twinlake://tables/orders": ["released", "rolled back"],  # the build has certified it today
        }
        living = {one["version"] for one in server.client.status()["versions"]}
        assert live["tables"][SALES] in living and len(living) == len(live["tables"])

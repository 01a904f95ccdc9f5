"""Every DAG run for real: Airflow's own task runner in one Airflow, a real lake server, broker and tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.settings import PROJECT
from jobs.tables import TABLES
from jobs.times import format_moment, utc_now
from tests.kill.server import LakeProcess, lake_process

pytestmark = pytest.mark.services

SALES = "sales_per_region"


class Installation:
    """A lake server with the project's tables live, and an Airflow whose home belongs to it."""

    def __init__(self, server: LakeProcess, airflow: Path) -> None:
        self.server = server
        self._environ = {
            **os.environ, "AIRFLOW_HOME": str(airflow), "TWINLAKE_HOME": str(server.home),
            "PYTHONPATH": str(PROJECT / "dags"),  # Airflow's own processes have it on their path
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }  # fmt: skip
        self._airflow("-m", "airflow", "db", "migrate")

    def run(self, *dags: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        """The DAGs with their parameters, one after another; `runs` and what people were `asked`."""
        done = self._airflow("tests/dags/airflow_run.py", json.dumps(dags))
        told: dict[str, Any] = json.loads(done.splitlines()[-1])
        return told

    def jobs(self, dag: str) -> dict[tuple[str, str], dict[str, Any]]:
        """By kind and table, the result of the last job that this DAG asked for."""
        asked = [job for job in self.server.client.jobs() if (job.key or "").startswith(f"{dag}/")]
        asked.sort(key=lambda job: job.created_at)
        return {(job.kind, job.params.get("table", "")): job.succeeded() for job in asked}

    def live(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.client.status()["release"]
        return found

    def _airflow(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            env=self._environ,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("dags")
    with lake_process(folder) as server:
        server.start()
        server.release()
        server.produce(3_000)
        server.until(server.caught_up)
        yield Installation(server, folder / "airflow")


def states(run: dict[str, Any]) -> set[str]:
    return {run["state"], *(state for _, _, state in run["tasks"])}


@pytest.mark.faults
def test_batch_certifies_all_of_history_first_and_then_what_has_gained_records(
    installation: Installation,
) -> None:
    tables = installation.server.client.status()["tables"]
    assert {(one["name"], one["stored"], one["windows"]) for one in tables} == {
        ("orders", False, False), ("latest_order", True, False), (SALES, True, True)
    }  # fmt: skip

    (first,) = installation.run(("batch", {}))["runs"]
    whole = installation.jobs("batch")
    installation.server.produce(200)
    installation.server.until(installation.server.caught_up)
    (again,) = installation.run(("batch", {}))["runs"]
    then = installation.jobs("batch")

    assert states(first) == states(again) == {"success"} and len(first["tasks"]) == len(again["tasks"]) == 7
    assert set(whole) == set(then) == {
        ("rebuild", SALES), ("rebuild", "latest_order"), ("verify", SALES), ("verify", "latest_order"),
        ("verify", "orders"),
    }  # fmt: skip
    assert {(one["equal"], one["due"], one["covers"]) for one in whole.values()} == {
        (True, True, "all of history")
    }
    for kind in ("rebuild", "verify"):
        since = "all of history: windows with new records since orders batch"
        assert then[kind, SALES]["covers"].startswith(since)
        assert 0 < then[kind, SALES]["rows_compared"] < whole[kind, SALES]["rows_compared"]
        assert then[kind, SALES]["position"]["orders"] > whole[kind, SALES]["position"]["orders"]
    assert not then["verify", "orders"]["due"] and not then["rebuild", "latest_order"]["due"]
    assert then["verify", "latest_order"]["due"] and then["verify", "latest_order"]["rows_compared"] == 0


@pytest.mark.faults
def test_backfill_rebuilds_a_range_in_chunks(installation: Installation) -> None:
    hour = utc_now().replace(minute=0, second=0, microsecond=0)
    start, end = (format_moment(hour + timedelta(hours=hours)) for hours in (-1, 1))
    asked = {"table": SALES, "from": start, "to": end, "chunk_hours": 1}

    (run,) = installation.run(("backfill", asked))["runs"]

    assert states(run) == {"success"}
    assert [task[:2] for task in run["tasks"]] == [
        ["chunks", -1], ["found", -1], ["rebuild", 0], ["rebuild", 1]
    ]  # fmt: skip
    rebuilt = [
        job.succeeded() for job in installation.server.client.jobs() if (job.key or "").startswith("back")
    ]
    assert {one["covers"] for one in rebuilt} == {
        f"windows {start} to {format_moment(hour)}", f"windows {format_moment(hour)} to {end}"
    }  # fmt: skip
    assert all(one["equal"] for one in rebuilt) and sum(one["rows_compared"] for one in rebuilt) > 0


@pytest.mark.faults
def test_a_backfill_of_a_range_in_which_nothing_lies_fails(installation: Installation) -> None:
    asked = {"table": SALES, "from": "2030-01-01T00:00:00Z", "to": "2030-01-01T02:00:00Z", "chunk_hours": 1}

    (run,) = installation.run(("backfill", asked))["runs"]

    assert run["state"] == "failed"
    assert run["tasks"] == [
        ["chunks", -1, "success"], ["found", -1, "failed"],
        ["rebuild", 0, "success"], ["rebuild", 1, "success"],
    ]  # fmt: skip


@pytest.mark.faults
def test_a_release_is_approved_goes_live_is_rolled_back_and_what_it_left_is_retired(
    installation: Installation,
) -> None:
    before = installation.live()
    definitions = {table.name: table.to_json() for table in TABLES}
    definitions[SALES]["where"] = "status = 'paid'"

    told = installation.run(("release", {"definitions": definitions}))
    released = installation.live()
    told_back = installation.run(("rollback", {"reason": "too few orders"}), ("maintain", {"keep": 1}))
    back = installation.live()

    assert [states(run) for run in (*told["runs"], *told_back["runs"])] == [{"success"}] * 3
    (page,) = told["asked"]
    assert SALES.replace("_", r"\_") in page and "checks passed" in page
    assert (released["number"], released["approved_by"]) == (before["number"] + 1, "Ada")
    assert released["tables"][SALES] != before["tables"][SALES]
    assert (back["number"], back["tables"]) == (released["number"] + 1, before["tables"])
    assert back["reason"] == "too few orders"
    living = {one["version"] for one in installation.server.client.status()["versions"]}
    assert released["tables"][SALES] not in living and before["tables"][SALES] in living

"""What a DAG does in the second run and where nothing lies: a real lake server, Airflow's own task runner."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.dags.installation import SALES, Installation, changed, states
from tests.kill.server import lake_process
from twinlake.base.job import Asker

pytestmark = [pytest.mark.services, pytest.mark.faults]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("dags")
    with lake_process(folder) as server:
        server.start()
        server.release()
        server.produce(3_000)
        server.until(server.caught_up)
        yield Installation(server, folder / "airflow")


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

    assert states(first) == states(again) == {"success"} and len(first["tasks"]) == len(again["tasks"]) == 8
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


def test_a_backfill_of_a_range_in_which_nothing_lies_fails(installation: Installation) -> None:
    asked = {"table": SALES, "from": "2030-01-01T00:00:00Z", "to": "2030-01-01T02:00:00Z", "chunk_hours": 1}

    (run,) = installation.run(("backfill", asked))["runs"]

    assert run["state"] == "failed"
    assert run["tasks"] == [
        ["chunks", -1, "success"], ["found", -1, "failed"],
        ["rebuild", 0, "success"], ["rebuild", 1, "success"],
    ]  # fmt: skip


def decided_elsewhere(installation: Installation, where: str, kind: str, **decision: str) -> dict[str, Any]:
    """A run of the DAG release; once it waits, its plan is decided by a job of this kind, not by Airflow."""
    server = installation.server

    def waiting() -> str | None:
        found = server.client.status()["waiting"]
        return found and str(found["plan"])

    with ThreadPoolExecutor(1) as airflow:
        run = airflow.submit(installation.run, ("release", {"definitions": changed(where)}, None))
        server.until(lambda: waiting() is not None or run.done(), 300)
        plan = waiting()
        assert plan, run.result()
        asker = Asker(by="carol", via="console", why="as agreed")
        job = server.client.submit(kind, {"plan": plan, **decision}, f"elsewhere/{kind}", asker)
        server.client.follow(job.id).succeeded()
        told: dict[str, Any] = run.result()["runs"][0]
    return told


def test_a_plan_that_is_promoted_elsewhere_is_approved_in_airflow_and_made_live_once(
    installation: Installation,
) -> None:
    before = installation.live()["number"]

    run = decided_elsewhere(installation, "status = 'paid'", "promote", approved_by="carol")

    assert states(run) == {"success"}
    assert run["reasons"] == ["carol, not in Airflow: as agreed"]
    live = installation.live()
    assert (live["number"], live["approved_by"], live["reason"]) == (before + 1, "carol", "as agreed")
    promotes = [job for job in installation.server.client.jobs() if job.kind == "promote"]
    assert len([job for job in promotes if job.params["plan"] == live["plan"]]) == 1


def test_a_plan_that_is_rejected_elsewhere_fails_its_run_in_airflow(installation: Installation) -> None:
    before = installation.live()

    run = decided_elsewhere(installation, "amount > 2", "reject", rejected_by="carol", reason="as agreed")

    assert run["state"] == "failed" and ["approve", -1, "failed"] in run["tasks"]
    assert run["reasons"][-1] == "carol, not in Airflow: as agreed"
    assert installation.live() == before
    assert len([job for job in installation.server.client.jobs() if job.kind == "reject"]) == 1

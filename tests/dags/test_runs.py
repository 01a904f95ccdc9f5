"""What a DAG does in the second run and where nothing lies: a real lake server, Airflow's own task runner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dags.installation import SALES, Installation, states
from tests.kill.server import lake_process

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

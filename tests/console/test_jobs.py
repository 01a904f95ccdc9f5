"""Jobs are shown as they are; who has the role cancels one, others are refused by the server too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.console.conftest import RUNNING, Browser, World
from tests.console.test_home import text

SignIn = Callable[[str], Browser]
FAILED = {
    **RUNNING, "id": "j0", "state": "failed", "ended_at": "2026-01-31T11:59:31Z",
    "error": {"what": "the rebuild failed", "why": "the disk is full", "remedy": "make room, `df -h` helps"},
}  # fmt: skip


def test_what_runs_shows_how_far_it_is_and_what_failed_why(signed_in: SignIn, world: World) -> None:
    world.jobs = [RUNNING, FAILED]
    made = signed_in("analyst")

    listed, failed = text(made.get("/jobs")), made.get("/jobs/j0")

    assert "running, 3 of 10 windows, about 7 s left" in listed and "the rebuild failed" in listed
    assert "j0 rebuild failed 60 s ago 30 s" in listed
    assert "Why the disk is full" in text(failed) and "<code>df -h</code>" in failed.text


def test_the_result_of_a_comparison_is_shown_without_its_rows(signed_in: SignIn, world: World) -> None:
    gate = {"checks": [{"name": "witness", "rows": ["ada: 3, not 4"]}]}
    result = {"changed": 2, "samples": [{"key": "ada"}, {}], "gate": gate}
    world.jobs = [{**RUNNING, "kind": "diff", "state": "succeeded", "result": result}]

    page = text(signed_in("analyst").get("/jobs/j1"))

    assert '"changed": 2' in page and "2 rows, which the page of the plan shows" in page
    assert "ada" not in page


def test_a_job_says_what_it_did_and_leads_to_what_it_was_about(signed_in: SignIn, world: World) -> None:
    replay = {"topic": "orders", "contract": "1.1.0", "judged": 562, "replayed": 0, "verdicts": {}}
    verify = {
        "table": "sales", "version": "v-1", "equal": False, "position": {"orders": 7}, "covers": "all",
        "rows_compared": 9, "differences": [{"key": {"region": "ada"}}], "repaired": [],
        "disputed": [{"key": {"region": "ada"}}, {}], "due": False,
    }  # fmt: skip
    ended = {**RUNNING, "state": "succeeded", "ended_at": "2026-01-31T11:59:31Z"}
    world.jobs = [
        {**ended, "id": "j2", "kind": "replay", "params": {"topic": "orders"}, "result": replay},
        {**ended, "id": "j3", "kind": "verify", "params": {"table": "sales"}, "result": verify},
        {**ended, "id": "j4", "kind": "plan", "params": {"tables": None}, "result": {"id": "c" * 12}},
    ]  # fmt: skip
    made = signed_in("analyst")
    assert f'href="/plans/{"c" * 12}"' in made.get("/jobs/j4").text

    replayed, verified = made.get("/jobs/j2"), made.get("/jobs/j3")

    assert "562 records in quarantine were validated again by contract 1.1.0; all" in replayed.text
    assert 'href="/topics/orders"' in replayed.text and 'href="/topics/orders/quarantine"' in replayed.text
    assert "sales v-1: speed and batch are NOT equal at orders batch 7" in text(verified)
    assert "nothing is pending" in text(verified) and "does not agree with 2 rows" in text(verified)
    assert 'href="/tables/sales"' in verified.text and "ada" not in verified.text


def test_an_operator_cancels_a_job(signed_in: SignIn, world: World) -> None:
    page = signed_in("operator").send("/jobs/j1/cancel", "/jobs")

    assert page.url.path == "/jobs/j1" and "POST /jobs/j1/cancel" in world.asked


def test_an_analyst_has_no_button_and_is_refused_by_the_server_too(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")
    assert "Cancel" not in made.get("/jobs").text

    page = made.send("/jobs/j1/cancel", "/jobs")

    assert page.status_code == 403 and "the-analyst may not do that" in page.text
    assert "POST /jobs/j1/cancel" not in world.asked


def test_an_operator_has_a_backup_taken_and_nobody_says_where(signed_in: SignIn, world: World) -> None:
    world.status = {
        **world.status,
        "backup": {"newest": "2026-01-31T02:30:00Z", "since": None, "failed": None},
    }
    made = signed_in("operator")
    assert 'href="/backup"' in made.get("/jobs").text
    shown = text(made.get("/backup"))

    page = made.client.post("/backup", data={**made.hidden("/backup"), "folder": "/tmp/mine"})

    assert "The newest is of 2026-01-31T02:30:00Z" in shown and page.url.path == "/jobs/new1"
    (sent,) = world.submitted
    assert (sent["kind"], sent["params"], sent["by"], sent["via"]) == (
        "backup", {}, "the-operator", "console"
    )  # fmt: skip


def test_without_a_folder_there_is_no_button_and_an_analyst_takes_no_backup(
    signed_in: SignIn, world: World
) -> None:
    world.status = {**world.status, "backup": None}
    page = signed_in("operator").get("/backup")
    analyst = signed_in("analyst")

    assert "no folder of backups is set" in text(page) and "<button>Take a backup" not in page.text
    assert 'href="/backup"' not in analyst.get("/jobs").text
    assert analyst.send("/backup", "/").status_code == 403 and world.submitted == []


def test_a_job_that_has_ended_is_not_cancelled_and_one_that_is_not_there_is_said(
    signed_in: SignIn, world: World
) -> None:
    world.jobs = [FAILED]
    made = signed_in("admin")

    ended, missing = made.send("/jobs/j0/cancel", "/jobs"), made.get("/jobs/j9")

    assert ended.status_code == 400 and "it has ended: failed" in ended.text
    assert missing.status_code == 404 and "there is no such job" in missing.text


def test_a_job_is_found_by_the_key_that_a_task_of_airflow_knows(signed_in: SignIn, world: World) -> None:
    world.jobs = [{**RUNNING, "key": "release/manual__1/build/-1"}, FAILED]
    made = signed_in("analyst")

    found = made.get("/jobs", params={"key": "release/manual__1/build/-1"})
    missing = made.get("/jobs", params={"key": "release/manual__2/build/-1"})

    assert found.url.path == f"/jobs/{RUNNING['id']}"
    assert missing.status_code == 404 and "this job has not begun" in missing.text


@pytest.mark.parametrize("path", ["/jobs/../status", "/jobs/a%2Fb", "/jobs/%2e%2e"])
def test_an_id_reaches_nothing_but_jobs(signed_in: SignIn, world: World, path: str) -> None:
    made = signed_in("admin")
    world.asked.clear()

    assert made.get(path).status_code == 404
    assert world.asked == []

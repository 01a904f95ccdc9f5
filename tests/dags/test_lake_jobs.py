"""A task submits one job under its own key, follows it, and fails in the way that its error asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import lake_jobs
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from lake_connection import Lake

from jobs import waiting
from jobs.server import client
from jobs.server.client import LakeClient
from jobs.version import VERSION

JOB: dict[str, Any] = {
    "state": "running", "progress": {}, "result": None, "error": None, "attempt": 1,
    "created_at": "2026-01-31T12:00:00Z", "started_at": "2026-01-31T12:00:01Z", "ended_at": None,
}  # fmt: skip


class FakeLake:
    """The lake server's job API in memory: a job ends as `outcome` says, one look after it was asked for."""

    def __init__(self, outcome: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.outcome = outcome
        self.jobs: dict[str, dict[str, Any]] = {}
        self.keys: list[str] = []
        self.tables: list[dict[str, Any]] = []
        self.version = VERSION

    def client(self) -> LakeClient:
        return LakeClient("http://lake", "token", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            asked = json.loads(request.content)
            self.keys.append(asked["key"])
            job = self.jobs.setdefault(asked["key"], {**JOB, "id": f"job{len(self.jobs)}", **asked})
            return httpx.Response(202, json=job)
        if request.url.path == "/health":
            return httpx.Response(200, json={"ready": True, "version": self.version})
        if request.url.path == "/status":
            return httpx.Response(200, json={"tables": self.tables})
        job = next(job for job in self.jobs.values() if request.url.path.endswith(job["id"]))
        job.update(self.outcome(job))
        return httpx.Response(200, json=job)


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> FakeLake:
    fake = FakeLake(lambda job: {"state": "succeeded", "result": {"table": job["params"]["table"]}})
    task = SimpleNamespace(dag_id="batch", run_id="manual__1", task_id="rebuild", map_index=2, try_number=1)
    monkeypatch.setattr(lake_jobs, "get_current_context", lambda: {"ti": task})
    monkeypatch.setattr(lake_jobs, "lake", lambda: Lake(client=fake.client()))
    return fake


def test_a_task_is_skipped_while_nothing_is_live(lake: FakeLake) -> None:
    with pytest.raises(AirflowSkipException):
        lake_jobs.live_tables()

    lake.tables = [{"name": "t", "version": "v-1", "stored": True, "windows": False}]
    assert lake_jobs.live_tables() == lake.tables


@pytest.mark.parametrize("version", ["0.0.9", "1.1.0", None])
def test_a_lake_server_of_another_version_is_asked_for_nothing(lake: FakeLake, version: str | None) -> None:
    lake.version = version

    for ask in (lake_jobs.live_tables, lambda: lake_jobs.run_job("promote", {"plan": "p"})):
        with pytest.raises(AirflowFailException, match="do not understand each other") as refused:
            ask()
        assert f"its version is {VERSION}, that of the lake server" in str(refused.value)
        assert "`twinlake dags FOLDER`" in str(refused.value)
    assert lake.keys == []


def test_a_lake_server_that_differs_in_the_last_number_is_asked(lake: FakeLake) -> None:
    lake.version = f"{VERSION.rpartition('.')[0]}.999"

    assert lake_jobs.run_job("rebuild", {"table": "t"}) == {"table": "t"}


def test_a_wrong_token_is_not_tried_again_and_a_server_that_is_away_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"error": "UsageError", "what": "the token is missing or wrong", "why": "", "remedy": "take it"}
    refusing = lambda request: httpx.Response(401, json=told)  # noqa: E731

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    for answer, raised in ((refusing, AirflowFailException), (away, RuntimeError)):
        client = LakeClient("http://lake", "token", transport=httpx.MockTransport(answer))
        monkeypatch.setattr(lake_jobs, "lake", lambda client=client: Lake(client=client))
        with pytest.raises(raised) as caught:
            lake_jobs.live_tables()
        assert isinstance(caught.value, AirflowFailException) == (raised is AirflowFailException)


def test_the_approver_reads_where_the_report_is(monkeypatch: pytest.MonkeyPatch) -> None:
    client = LakeClient("http://lake", "token")
    shown = []
    for url in ("https://data.example/twinlake/", None):
        lake = Lake(client=client, report_url=url)
        monkeypatch.setattr(lake_jobs, "lake", lambda lake=lake: lake)
        shown.append(lake_jobs.report_of("p1", "/home/lake/plans/p1/report.html"))

    assert shown == [
        "[report](https://data.example/twinlake/reports/p1)",
        "report: `/home/lake/plans/p1/report.html`, where the lake server runs",
    ]


def test_a_task_that_is_tried_again_finds_its_job_again(lake: FakeLake) -> None:
    first = lake_jobs.run_job("rebuild", {"table": "t"})
    again = lake_jobs.run_job("rebuild", {"table": "t"})

    assert first == again == {"table": "t"}
    assert lake.keys == ["batch/manual__1/rebuild/2"] * 2
    assert len(lake.jobs) == 1


def test_the_parts_of_one_task_are_jobs_of_their_own(lake: FakeLake) -> None:
    lake_jobs.run_job("diff", {"table": "a"}, part="a")
    lake_jobs.run_job("diff", {"table": "b"}, part="b")

    assert lake.keys == ["batch/manual__1/rebuild/2/a", "batch/manual__1/rebuild/2/b"]


@pytest.mark.parametrize(
    ("state", "error", "raised"),
    [
        ("failed", "DifferenceError", AirflowFailException),
        ("failed", "UsageError", AirflowFailException),
        ("failed", "NotFoundError", AirflowFailException),
        ("failed", "BusyError", RuntimeError),
        ("failed", "TwinlakeError", RuntimeError),
        ("interrupted", "TwinlakeError", RuntimeError),
    ],
)
def test_only_what_may_go_well_next_time_is_tried_again(
    lake: FakeLake, state: str, error: str, raised: type[Exception]
) -> None:
    told = {"error": error, "what": "it went wrong", "why": "because", "remedy": "mend it"}
    lake.outcome = lambda job: {"state": state, "error": told}

    with pytest.raises(raised, match=r"it went wrong[\s\S]*because[\s\S]*mend it") as caught:
        lake_jobs.run_job("verify", {"table": "t"})
    assert isinstance(caught.value, AirflowFailException) == (raised is AirflowFailException)


def test_a_job_that_somebody_cancelled_is_not_tried_again_and_says_which(lake: FakeLake) -> None:
    told = {"error": "CancelledError", "what": "job job0 was cancelled", "why": "someone", "remedy": "again"}
    lake.outcome = lambda job: {"state": "cancelled", "error": told}

    with pytest.raises(AirflowFailException, match="job job0 was cancelled"):
        lake_jobs.run_job("verify", {"table": "t"})


def test_a_failed_job_fails_the_task_even_if_it_has_a_result(lake: FakeLake) -> None:
    told = {"error": "DifferenceError", "what": "they differ", "why": "because", "remedy": "look"}
    lake.outcome = lambda job: {"state": "failed", "error": told, "result": {"equal": False}}

    with pytest.raises(AirflowFailException, match="they differ"):
        lake_jobs.run_job("verify", {"table": "t"})


def test_a_server_that_does_not_come_back_is_asked_again_in_the_next_try(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(job: dict[str, Any]) -> dict[str, Any]:
        raise httpx.ConnectError("connection refused")

    lake.outcome = away
    monkeypatch.setattr(client, "AWAY_S", 0.01)
    monkeypatch.setattr(waiting, "sleep_using_event", lambda event: lambda seconds: None)

    with pytest.raises(RuntimeError, match="waiting for the lake server to come back took longer") as caught:
        lake_jobs.run_job("verify", {"table": "t"})
    assert not isinstance(caught.value, AirflowFailException)


def test_the_progress_of_the_job_is_in_the_task_log(lake: FakeLake, caplog: pytest.LogCaptureFixture) -> None:
    progress = {"done": 2, "total": 8, "unit": "chunks", "message": "window 2", "eta_s": 30.0}
    lake.outcome = lambda job: {"state": "succeeded", "result": {}, "progress": progress}

    with caplog.at_level("INFO", logger=lake_jobs.log.name):
        lake_jobs.run_job("rebuild", {"table": "t"})
    assert "succeeded, 2 of 8 chunks, window 2, about 30 s left" in caplog.messages

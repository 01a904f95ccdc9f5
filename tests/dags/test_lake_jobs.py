"""A task submits one job under its own key, follows it, and fails in the way that its error asks for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import structlog
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from twinlake.airflow import assets as lake_suggestions
from twinlake.airflow import connection as lake_connection
from twinlake.airflow import jobs as lake_jobs
from twinlake.airflow import task as lake_task
from twinlake.airflow import trigger as lake_trigger
from twinlake.airflow.connection import Lake
from twinlake.airflow.task import LakeTask, ReportedTask
from twinlake.airflow.trigger import LakeJobTrigger
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.job import AGAIN
from twinlake.base.version import VERSION
from twinlake.server.client import LakeClient

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
        self.cancelled: list[str] = []
        self.tables: list[dict[str, Any]] = []
        self.backup: dict[str, Any] | None = None
        self.version = VERSION
        self.task = SimpleNamespace()
        self.variables: dict[str, Any] = {}
        self.written = 0

    def get(self, key: str, default: Any, deserialize_json: bool) -> Any:
        """As Airflow's variables are read and written."""
        return self.variables.get(key, default)

    def set(self, key: str, value: Any, description: str, serialize_json: bool) -> None:
        self.variables[key] = value
        self.written += 1

    def client(self) -> LakeClient:
        return LakeClient("http://lake", "token", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path == "/jobs":
            asked = json.loads(request.content)
            self.keys.append(asked["key"])
            job = self.jobs.setdefault(asked["key"], {**JOB, "id": f"job{len(self.jobs)}", **asked})
            if job["state"] in AGAIN:
                job.update(state="running", attempt=job["attempt"] + 1, error=None)
            return httpx.Response(202, json=job)
        if request.url.path == "/health":
            return httpx.Response(200, json={"ready": True, "version": self.version})
        if request.url.path == "/status":
            return httpx.Response(200, json={
                "tables": self.tables, "topics": [{"name": "orders"}], "backup": self.backup,
            })  # fmt: skip
        if request.url.path == "/jobs":
            found = self.jobs.get(request.url.params["key"])
            return httpx.Response(200, json=[found] if found else [])
        job = next(job for job in self.jobs.values() if f"/{job['id']}" in request.url.path)
        if request.url.path.endswith("/cancel"):
            self.cancelled.append(job["id"])
            return httpx.Response(200, json=job)
        job.update(self.outcome(job))
        return httpx.Response(200, json=job)


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> FakeLake:
    fake = FakeLake(lambda job: {"state": "succeeded", "result": {"table": job["params"]["table"]}})
    fake.task = SimpleNamespace(
        dag_id="batch", run_id="manual__1", task_id="rebuild", map_index=2, max_tries=2,
        task=SimpleNamespace(retries=2),
    )  # fmt: skip
    context = {"ti": fake.task, "dag_run": SimpleNamespace(triggering_user_name="anna")}
    monkeypatch.setattr(lake_jobs, "get_current_context", lambda: context)
    monkeypatch.setattr(lake_connection, "lake", lambda: Lake(client=fake.client()))
    monkeypatch.setattr(lake_task, "lake", lambda: Lake(client=fake.client()))
    monkeypatch.setattr(lake_task, "get_current_context", lambda: context)
    monkeypatch.setattr(lake_suggestions, "Variable", fake)
    return fake


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_trigger, "LOOK_S", 0.005)
    monkeypatch.setattr(lake_trigger, "SETTLED_S", 0)


def next_event(trigger: Any) -> dict[str, Any]:
    """What the trigger says at last, after it was kept in a database as Airflow does."""
    path, kept = trigger.serialize()
    assert path == "twinlake.airflow.trigger.LakeJobTrigger"
    again = lake_trigger.LakeJobTrigger(**json.loads(json.dumps(kept)))

    async def event() -> Any:
        return await anext(again.run())

    told: dict[str, Any] = json.loads(json.dumps(asyncio.run(event()).payload))
    return told


def run_job(kind: str, params: dict[str, Any], part: str = "", **who: str) -> dict[str, Any]:
    """As Airflow runs a task: once, and again with each event that it was deferred for."""

    def task() -> dict[str, Any]:
        event = None
        while True:
            lake_task.event_of_this_run.set(event)
            try:
                return lake_jobs.run_job(kind, params, part, **who)
            except TaskDeferred as deferred:
                assert deferred.method_name == "resume"
                event = next_event(deferred.trigger)

    return copy_context().run(task)


def test_the_log_names_the_job_and_what_its_certificate_covers(
    lake: FakeLake, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = {
        "table": "t", "version": "v-1", "equal": True, "rows_compared": 2434, "position": {"orders": 5},
        "covers": "all of history",
    }  # fmt: skip
    lake.outcome = lambda job: {"state": "succeeded", "result": certificate}

    with caplog.at_level("INFO", "airflow.task.twinlake"):
        run_job("verify", {"table": "t"})

    assert "job job0 (`twinlake jobs follow job0 --json` shows it)" in caplog.text
    said = "t, version v-1: speed and batch are equal, 2,434 rows compared at orders batch 5, all of history"
    assert f"certificate of {said}" in caplog.text


def test_a_task_is_skipped_while_nothing_is_live(lake: FakeLake) -> None:
    with pytest.raises(AirflowSkipException):
        lake_jobs.live_tables()

    lake.tables = [{"name": "t", "version": "v-1", "stored": True, "windows": False}]
    assert lake_jobs.live_tables() == lake.tables


@pytest.mark.parametrize(
    ("run_type", "is_set", "skipped"),
    [("scheduled", False, True), ("scheduled", True, False), ("manual", False, False)],
)
def test_the_schedule_takes_no_backup_where_no_folder_is_set_and_a_person_hears_the_job_s_refusal(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, run_type: str, is_set: bool, skipped: bool
) -> None:
    context = {"ti": lake.task, "dag_run": SimpleNamespace(run_type=run_type)}
    monkeypatch.setattr(lake_jobs, "get_current_context", lambda: context)
    lake.backup = {"newest": None, "since": None, "failed": None} if is_set else None

    if skipped:
        with pytest.raises(AirflowSkipException, match=r"no folder of backups is set.*\[backup\]"):
            lake_jobs.skip_scheduled_without_folder()
    else:
        lake_jobs.skip_scheduled_without_folder()


def test_forms_suggest_the_names_that_a_task_has_seen_last(lake: FakeLake) -> None:
    assert lake_suggestions.suggestions("tables") == []

    lake.tables = [
        {"name": name, "version": "v", "stored": True, "windows": name != "latest"}
        for name in ("sales", "latest", "by_hour")
    ]
    for _ in range(2):
        lake_jobs.live_tables()

    assert lake_suggestions.suggestions("tables") == ["by_hour", "sales"] and lake.written == 1
    assert lake_suggestions.suggestions("topics") == ["orders"]


@pytest.mark.parametrize("odd", ["a text", {"tables": "sales"}, {"tables": [1, None]}, {}])
def test_a_variable_that_somebody_has_written_otherwise_takes_no_dag_away(lake: FakeLake, odd: Any) -> None:
    lake.variables[lake_suggestions.VARIABLE] = odd

    assert lake_suggestions.suggestions("tables") == []


def test_the_lake_server_is_told_who_has_started_the_run_or_who_has_approved(lake: FakeLake) -> None:
    run_job("verify", {"table": "t"})
    run_job("promote", {"table": "t"}, "second", by="ben", why="the totals are right")

    (verify, promote) = lake.jobs.values()
    assert (verify["by"], verify["via"], verify.get("why")) == ("anna", "airflow", None)
    assert (promote["by"], promote["via"], promote["why"]) == ("ben", "airflow", "the totals are right")


def test_the_lake_server_is_told_of_a_rejection_and_where_it_is_away_the_log_is(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake.outcome = lambda job: {"state": "succeeded", "result": {"plan": "p"}}
    lake_jobs.reject("p", "ben", "too few rows")
    (job,) = lake.jobs.values()
    assert job["params"] == {"plan": "p", "rejected_by": "ben", "reason": "too few rows"}
    assert (job["kind"], job["by"], job["via"], job["why"]) == ("reject", "ben", "airflow", "too few rows")
    assert caplog.text == "" and lake.keys[-1].endswith("/rebuild/2")

    tries = []

    def away(*asked: Any, **more: Any) -> None:
        tries.append(asked)
        raise UnreachableError("the lake server does not answer", "", "")

    monkeypatch.setattr(lake_jobs, "AWAY_S", 1.5)
    monkeypatch.setattr(LakeClient, "submit", away)
    lake_jobs.reject("p", "ben", None)
    assert "does not know that the plan is rejected" in caplog.text and len(tries) > 1


@pytest.mark.parametrize("version", ["0.0.9", "1.1.0", None])
def test_a_lake_server_of_another_version_is_asked_for_nothing(lake: FakeLake, version: str | None) -> None:
    lake.version = version

    for ask in (lake_jobs.live_tables, lambda: run_job("promote", {"plan": "p"})):
        with pytest.raises(AirflowFailException, match="do not understand each other") as refused:
            ask()
        assert f"its version is {VERSION}, that of the lake server" in str(refused.value)
        assert "`twinlake dags FOLDER`" in str(refused.value)
    assert lake.keys == []


def test_a_lake_server_that_differs_in_the_last_number_is_asked(lake: FakeLake) -> None:
    lake.version = f"{VERSION.rpartition('.')[0]}.999"

    assert run_job("rebuild", {"table": "t"}) == {"table": "t", "job": "job0"}


def test_a_wrong_token_is_not_tried_again_and_a_server_that_is_away_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"error": "UsageError", "what": "the token is missing or wrong", "why": "", "remedy": "take it"}
    refusing = lambda request: httpx.Response(401, json=told)  # noqa: E731

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    for answer, raised in ((refusing, AirflowFailException), (away, RuntimeError)):
        client = LakeClient("http://lake", "token", transport=httpx.MockTransport(answer))
        monkeypatch.setattr(lake_connection, "lake", lambda client=client: Lake(client=client))
        with pytest.raises(raised) as caught:
            lake_jobs.live_tables()
        assert isinstance(caught.value, AirflowFailException) == (raised is AirflowFailException)


def test_the_approver_reads_where_the_report_is(monkeypatch: pytest.MonkeyPatch) -> None:
    client = LakeClient("http://lake", "token")
    operator = ReportedTask(task_id="gate", python_callable=lambda: None, op_args=(), op_kwargs={})
    context = {"ti": SimpleNamespace(task=operator)}
    monkeypatch.setattr(lake_jobs, "get_current_context", lambda: context)
    _, button = operator.operator_extra_links
    assert button.get_link(operator, ti_key=None) == ""
    shown = []
    for url in ("https://data.example/twinlake/", None):
        lake = Lake(client=client, report_url=url)
        monkeypatch.setattr(lake_jobs, "lake", lambda lake=lake: lake)
        shown.append(lake_jobs.report_of("p1", "/home/lake/plans/p1/report.html"))

    link, file = "https://data.example/twinlake/reports/p1", "/home/lake/plans/p1/report.html"
    assert shown == [
        (f"[report]({link})", link),
        (f"report: `{file}`, where the lake server runs", f"{file}, where the lake server runs"),
    ]
    assert button.get_link(operator, ti_key=None) == link


def test_the_button_of_a_task_leads_to_its_job_in_the_console(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (button,) = LakeTask.operator_extra_links
    assert button.get_link(lake.task.task, ti_key=None) == ""
    monkeypatch.setattr(lake_task, "get_current_context", lambda: {"ti": lake.task})
    where = Lake(client=lake.client(), console_url="http://console")
    monkeypatch.setattr(lake_task, "lake", lambda: where)

    run_job("rebuild", {"table": "t"})

    key = "batch%2Fmanual__1%2Frebuild%2F2"
    assert button.get_link(lake.task.task, ti_key=None) == f"http://console/jobs?key={key}"


def test_a_task_does_not_fail_for_want_of_a_button(lake: FakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Lake:
        raise UsageError("Airflow has no connection twinlake_default", "", "")

    monkeypatch.setattr(lake_task, "lake", nobody)

    assert run_job("rebuild", {"table": "t"})["job"] == "job0"


def test_a_task_that_is_tried_again_finds_its_job_again(lake: FakeLake) -> None:
    first = run_job("rebuild", {"table": "t"})
    again = run_job("rebuild", {"table": "t"})

    assert first == again == {"table": "t", "job": "job0"}
    assert lake.keys == ["batch/manual__1/rebuild/2"] * 2
    assert len(lake.jobs) == 1


def test_a_task_that_was_cleared_asks_for_a_new_job_unless_it_has_made_something_live(lake: FakeLake) -> None:
    for kind in ("rebuild", "promote"):
        lake.jobs.clear()
        lake.keys.clear()
        lake.task.max_tries = 2
        run_job(kind, {"table": "t"})
        lake.task.max_tries = 5  # as Airflow has it after three tries
        run_job(kind, {"table": "t"})

        key = "batch/manual__1/rebuild/2"
        assert list(lake.jobs) == ([key] if kind == "promote" else [key, f"{key}/4"])


def test_the_parts_of_one_task_are_jobs_of_their_own(lake: FakeLake) -> None:
    run_job("diff", {"table": "a"}, part="a")
    run_job("diff", {"table": "b"}, part="b")

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
        run_job("verify", {"table": "t"})
    assert isinstance(caught.value, AirflowFailException) == (raised is AirflowFailException)


def test_a_job_that_somebody_cancelled_is_not_tried_again_and_says_which(lake: FakeLake) -> None:
    told = {"error": "CancelledError", "what": "job job0 was cancelled", "why": "someone", "remedy": "again"}
    lake.outcome = lambda job: {"state": "cancelled", "error": told}

    with pytest.raises(AirflowFailException, match="job job0 was cancelled"):
        run_job("verify", {"table": "t"})


def test_a_failed_job_fails_the_task_even_if_it_has_a_result(lake: FakeLake) -> None:
    told = {"error": "DifferenceError", "what": "they differ", "why": "because", "remedy": "look"}
    lake.outcome = lambda job: {"state": "failed", "error": told, "result": {"equal": False}}

    with pytest.raises(AirflowFailException, match="they differ"):
        run_job("verify", {"table": "t"})


def test_a_server_that_does_not_come_back_is_asked_again_in_the_next_try(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = lake.client().submit("verify", {"table": "t"}, key="batch/manual__1/rebuild/2")
    assert submit.state == "running"

    def away(job: dict[str, Any]) -> dict[str, Any]:
        raise httpx.ConnectError("connection refused")

    lake.outcome = away
    monkeypatch.setattr(lake_trigger, "AWAY_S", 0.01)

    with pytest.raises(RuntimeError, match="the lake server does not answer") as caught:
        run_job("verify", {"table": "t"})
    assert not isinstance(caught.value, AirflowFailException)


def test_the_progress_of_the_job_is_in_the_task_log(
    lake: FakeLake, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = {"done": 2, "total": 8, "unit": "chunks", "message": "window 2", "eta_s": 30.0}
    lake.outcome = lambda job: {"state": "succeeded", "result": {}, "progress": progress}

    run_job("rebuild", {"table": "t"})

    assert "succeeded, 2 of 8 chunks, window 2, about 30 s left" in capsys.readouterr().out


def test_the_task_itself_asks_for_nothing_before_it_waits_deferred(lake: FakeLake) -> None:
    """A task that is ended while it runs on a worker leaves no job behind: the trigger starts it."""
    with pytest.raises(TaskDeferred):
        lake_jobs.run_job("rebuild", {"table": "t"})

    assert lake.jobs == {}


def test_a_task_is_not_resumed_before_airflow_has_noted_that_it_waits(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_trigger, "SETTLED_S", 0.3)
    began = time.monotonic()

    next_event(LakeJobTrigger("rebuild", {"table": "t"}, "k", 1))

    assert time.monotonic() - began >= 0.3


def started(lake: FakeLake, end: str | None) -> LakeJobTrigger:
    """A trigger that has asked for its job, which goes on, and that Airflow has then ended like this."""
    trigger = LakeJobTrigger("rebuild", {"table": "t"}, "k", 1)
    lake.outcome = lambda job: {}

    async def run() -> None:
        waiting = asyncio.ensure_future(anext(trigger.run()))
        while not lake.jobs:
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if end == "by a user":
            await trigger.on_kill()

    asyncio.run(run())
    return trigger


def test_a_user_who_ends_the_task_cancels_its_job_and_a_restart_of_airflow_does_not(lake: FakeLake) -> None:
    trigger = started(lake, "by a restart")
    assert lake.cancelled == [] and list(lake.jobs) == ["k"]

    lake.outcome = lambda job: {"state": "succeeded", "result": {}}
    assert next_event(trigger)["job"]["id"] == "job0" and len(lake.jobs) == 1  # the same one is followed

    lake.jobs.clear()
    started(lake, "by a user")
    assert lake.cancelled == ["job0"]


def test_a_restart_of_airflow_does_not_start_a_failed_job_again_and_a_retry_does(lake: FakeLake) -> None:
    trigger = started(lake, "by a restart")
    lake.jobs["k"].update(state="failed", error={"error": "BusyError", "what": "busy"})

    assert next_event(trigger)["job"]["state"] == "failed" and lake.jobs["k"]["attempt"] == 1

    lake.outcome = lambda job: {"state": "succeeded", "result": {}}
    retry = LakeJobTrigger("rebuild", {"table": "t"}, "k", 2)
    assert next_event(retry)["job"]["state"] == "succeeded" and lake.jobs["k"]["attempt"] == 2


@pytest.mark.parametrize("ends", [True, False])
def test_a_job_without_progress_for_too_long_is_cancelled_and_the_task_fails_at_once(
    lake: FakeLake, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(lake_trigger, "CANCEL_S", 0.02)
    end = {"state": "cancelled", "idle_minutes": None}
    lake.outcome = lambda job: end if ends and lake.cancelled else {"idle_minutes": 61}

    with pytest.raises(AirflowFailException, match="nothing in it went on for 61 minutes") as failed:
        run_job("rebuild", {"table": "t"})
    assert lake.cancelled == ["job0"]
    assert ("it has not ended" in str(failed.value)) != ends


def test_of_an_error_the_log_shows_the_message_and_not_the_frames_of_airflow() -> None:
    """As Airflow's own logging makes JSON of it."""
    told = structlog.tracebacks.ExceptionDictTransformer(use_rich=False, show_locals=False)

    def deep(left: int) -> None:
        if left:
            return deep(left - 1)
        with lake_jobs.telling_airflow():
            raise UsageError("nothing lies there", "it is empty", "choose another")

    try:
        deep(12)
    except AirflowFailException as error:
        (shown,) = told((type(error), error, error.__traceback__))

    assert shown["exc_value"].startswith("nothing lies there") and len(shown["frames"]) == 1

"""The client follows a job to its end, over a restart of the server, and judges nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from twinlake.base import waiting
from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.job import Job
from twinlake.server import client as client_module
from twinlake.server.client import LakeClient

BUSY = BusyError("the lock is busy", "a rebuild runs", "wait")
RUNNING: dict[str, Any] = {
    "id": "j", "kind": "rebuild", "params": {"table": "t"}, "key": None, "state": "running", "progress": {},
    "result": None, "error": None, "created_at": "2026-01-31T12:00:00Z",
    "started_at": "2026-01-31T12:00:01Z", "ended_at": None, "attempt": 1,
}  # fmt: skip
DONE = {**RUNNING, "state": "succeeded", "result": {"equal": True}, "ended_at": "2026-01-31T12:00:09Z"}
AWAY = httpx.ConnectError("connection refused")


class Looks:
    """Answers each look at the job with the next of these; the last one for ever."""

    def __init__(self, answers: Iterable[dict[str, Any] | httpx.Response | Exception]) -> None:
        self.left = list(answers)
        self.asked: list[str] = []

    def client(self) -> LakeClient:
        return LakeClient("http://lake", "token", httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.raw_path.decode())
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between two looks; no test really does."""
    slept: list[float] = []
    monkeypatch.setattr(waiting, "sleep_using_event", lambda event: slept.append)
    return slept


def test_each_look_lets_the_server_wait_for_a_change(naps: list[float]) -> None:
    looks = Looks([RUNNING, RUNNING, DONE])

    job = looks.client().follow("j")

    assert job == Job.from_json(DONE)
    assert looks.asked == [f"/jobs/j?wait={client_module.WAIT_S}"] * 3
    assert naps == []


@pytest.mark.parametrize("state", ["failed", "cancelled", "interrupted"])
def test_a_job_that_did_not_succeed_is_returned_and_its_error_raised_when_asked_for(state: str) -> None:
    ended = {**DONE, "state": state, "result": {"half": 1}, "error": BUSY.to_json()}

    job = Looks([RUNNING, ended]).client().follow("j")

    assert (job.state, job.result) == (state, {"half": 1})
    with pytest.raises(BusyError) as caught:
        job.succeeded()
    assert caught.value.to_json() == BUSY.to_json()


def test_a_job_without_an_error_says_how_it_is() -> None:
    with pytest.raises(TwinlakeError, match="job j is interrupted"):
        Job.from_json({**DONE, "state": "interrupted"}).succeeded()


def test_only_what_changed_is_reported() -> None:
    further = {**RUNNING, "progress": {"done": 1}}
    seen: list[tuple[str, dict[str, Any]]] = []

    looks = Looks([RUNNING, RUNNING, further, further, DONE])
    looks.client().follow("j", lambda job: seen.append((job.state, job.progress)))

    assert seen == [("running", {}), ("running", {"done": 1}), ("succeeded", {})]


def test_a_server_that_is_away_is_waited_for_again_and_again(naps: list[float]) -> None:
    looks = Looks([RUNNING, AWAY, AWAY, RUNNING, AWAY, DONE])

    assert looks.client().follow("j").state == "succeeded"
    assert naps == [1, 1, 1]


def test_a_server_that_stays_away_ends_the_wait_and_it_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "AWAY_S", 0.05)

    with pytest.raises(UnreachableError) as caught:
        Looks([RUNNING, AWAY]).client().follow("j")

    assert caught.value.what == "waiting for the lake server to come back took longer than 0.05 s"
    assert "UnreachableError: the lake server does not answer" in caught.value.why
    assert "http://lake: connection refused" in caught.value.why
    assert caught.value.remedy == "see `twinlake status` and `twinlake logs lake`"


def test_a_server_that_answers_no_is_not_asked_again() -> None:
    gone = NotFoundError("there is no job 'j'", "", "see `twinlake jobs list`")
    looks = Looks([httpx.Response(404, json=gone.to_json())])

    with pytest.raises(NotFoundError, match="there is no job 'j'"):
        looks.client().follow("j")
    assert len(looks.asked) == 1


def test_an_answer_that_is_not_json_is_told_in_part() -> None:
    looks = Looks([httpx.Response(502, text="<html>bad gateway</html>")])

    with pytest.raises(TwinlakeError, match="the lake server answered 502") as caught:
        looks.client().job("j")
    assert caught.value.why == "<html>bad gateway</html>"


def test_a_server_that_is_away_behind_a_proxy_is_waited_for_as_well(naps: list[float]) -> None:
    bad_gateway = httpx.Response(502, text="<html>bad gateway</html>")

    assert Looks([RUNNING, bad_gateway, bad_gateway, DONE]).client().follow("j").state == "succeeded"
    assert naps == [1, 1]


def test_a_page_where_an_answer_should_be_is_told_with_the_address() -> None:
    looks = Looks([httpx.Response(200, text="<html>please log in</html>")])

    with pytest.raises(TwinlakeError, match="which is not JSON") as caught:
        looks.client().status()
    assert not isinstance(caught.value, UnreachableError)
    assert "http://lake" in caught.value.remedy


@pytest.mark.parametrize("token", ["hunter2\n", "hunter2\r\n", "hunter2\0", "hunter\u00e9", "\ufeffhunter2"])
def test_a_token_that_cannot_be_sent_is_refused_without_telling_it(token: str) -> None:
    """The HTTP library's own error shows it, escaped, so that Airflow does not know what to mask."""
    with pytest.raises(UsageError) as told:
        LakeClient("http://127.0.0.1:1", token)

    assert "hunter" not in str(told.value)

"""The API's border: the token, shapes of requests, and errors that keep their class across it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from jobs.errors import DifferenceError, NotFoundError, UnreachableError, UsageError
from jobs.server.api import build_app
from jobs.server.client import LakeClient, error_of
from jobs.server.job_kinds import Kind, Params
from jobs.server.jobs import Jobs


class EchoParams(Params):
    text: str


class Server:
    """What the API needs of the lake server."""

    def __init__(self, lake: Path) -> None:
        self.ready, self.lake_id = True, "lake"
        echo = Kind(params=EchoParams, handler=lambda server, params, run: {"text": params.text})
        self.jobs = Jobs(lake, {"echo": echo}, lambda kind, params, run: kind.handler(None, params, run))  # type: ignore[arg-type]

    def status(self) -> dict[str, Any]:
        return {"topics": []}


@pytest.fixture
def web(tmp_path: Path) -> TestClient:
    return TestClient(build_app(Server(tmp_path), "secret"), headers={"Authorization": "Bearer secret"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given", [None, "", "secret", "Bearer", "Bearer wrong", "Bearer secret2", "Bearer ſecret"]
)
def test_nothing_but_health_answers_without_the_token(web: TestClient, given: str | None) -> None:
    web.headers.pop("Authorization")
    headers = {} if given is None else {"Authorization": given.encode()}

    answers = [
        web.get(path, headers=headers).status_code for path in ("/status", "/jobs", "/health", "/docs")
    ]

    assert answers == [401, 401, 200, 401]
    assert web.post("/jobs", json={"kind": "echo"}, headers=headers).status_code == 401


def test_a_job_is_accepted_followed_and_found_again(web: TestClient) -> None:
    asked = web.post("/jobs", json={"kind": "echo", "params": {"text": "hi"}, "key": "k"})
    job = web.get(f"/jobs/{asked.json()['id']}", params={"wait": 10}).json()

    assert asked.status_code == 202
    assert (job["state"], job["result"]) == ("succeeded", {"text": "hi"})
    assert [one["id"] for one in web.get("/jobs").json()] == [job["id"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "echo", "parms": {}}, 400),
        ({"kind": "nope"}, 400),
        ({"kind": "echo", "params": {}}, 400),
        ([], 400),
    ],
)
def test_malformed_requests_are_refused_with_what_and_why(web: TestClient, body: Any, status: int) -> None:
    answer = web.post("/jobs", json=body)

    assert answer.status_code == status and {"what", "why", "remedy"} <= set(answer.json())


def test_an_unknown_job_and_a_too_large_request_are_refused(web: TestClient) -> None:
    assert web.get("/jobs/none").status_code == 404
    assert web.post("/jobs", content=b" " * (5 << 20)).status_code == 413


@pytest.mark.parametrize("kind", [DifferenceError, UsageError, NotFoundError])
def test_an_error_is_of_the_same_class_on_both_sides(kind: type) -> None:
    told = kind("what", "why", "remedy").to_json()

    error = error_of(told)

    assert type(error) is kind and error.to_json() == told


def test_a_server_that_does_not_answer_is_not_reachable() -> None:
    with pytest.raises(UnreachableError):
        LakeClient("http://127.0.0.1:9", "token").status()

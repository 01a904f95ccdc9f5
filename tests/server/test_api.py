"""The API's border: the token, shapes of requests, and errors that keep their class across it."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from tests.broker import free_port
from twinlake.base.errors import (
    BusyError,
    DifferenceError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
    error_of,
)
from twinlake.base.job import Failed
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.audit_log import AuditLog
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.open_lake import OpenLake
from twinlake.server.api import build_app
from twinlake.server.client import LakeClient
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import Params
from twinlake.server.jobs import Jobs

DIFFERENCE = DifferenceError("they differ", "because", "look")


class EchoParams(Params):
    text: str


@dataclass(frozen=True, kw_only=True)
class Echoed:
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text}


def echo(lake: Any, params: EchoParams, run: Any) -> Echoed:
    return Echoed(text=params.text)


def differ(lake: Any, params: EchoParams, run: Any) -> Failed:
    return Failed(error=DIFFERENCE, result=Echoed(text=params.text))


KINDS = {name: JobKind(params=EchoParams, handler=do) for name, do in (("echo", echo), ("differ", differ))}  # type: ignore[arg-type]


class Server:
    """What the API needs of the lake server."""

    def __init__(self, lake: Path, kinds: dict[str, JobKind] = KINDS) -> None:
        self.ready, self.lake_id = True, "lake"
        self.error: TwinlakeError | None = None
        do: Any = lambda kind, params, run: kind.handler(None, params, run)  # noqa: E731
        self.jobs = Jobs(Runs(lake), AuditLog(lake), kinds, do, utc_now)
        self.jobs.start()

    @property
    def lake(self) -> OpenLake:
        raise BusyError("the lake is not open yet")

    def status(self) -> dict[str, Any]:
        return {"topics": []}


@pytest.fixture
def web(tmp_path: Path) -> TestClient:
    return TestClient(build_app(Server(tmp_path), "secret"), headers={"Authorization": "Bearer secret"})


@pytest.fixture
def client(web: TestClient) -> LakeClient:
    """The client of the commands and the DAGs, on this API."""

    def pass_on(request: httpx.Request) -> httpx.Response:
        answer = web.request(
            request.method, request.url.raw_path.decode(), content=request.content,
            headers=dict(request.headers),
        )  # fmt: skip
        return httpx.Response(answer.status_code, content=answer.content)

    return LakeClient("http://testserver", "secret", httpx.MockTransport(pass_on))


def test_many_who_wait_for_a_job_keep_nobody_from_asking(tmp_path: Path) -> None:
    """The threads that answer are forty, for all of the server."""
    done = threading.Event()
    hang = JobKind(
        params=EchoParams, handler=lambda lake, params, run: done.wait(60) and echo(lake, params, run)
    )  # type: ignore[arg-type, return-value]
    server = Server(tmp_path, {"hang": hang})
    port = free_port()
    web = uvicorn.Server(
        uvicorn.Config(build_app(server, "secret"), host="127.0.0.1", port=port, log_level="error")
    )
    threading.Thread(target=web.run, daemon=True).start()
    wait_for("the server", lambda: web.started or None, 20)
    http = httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": "Bearer secret"}, timeout=30,
        trust_env=False, limits=httpx.Limits(max_connections=100),
    )  # fmt: skip
    id = http.post("/jobs", json={"kind": "hang", "params": {"text": "hi"}}).json()["id"]
    waiting = [threading.Thread(target=http.get, args=(f"/jobs/{id}?wait=20",)) for _ in range(60)]
    for one in waiting:
        one.start()
    time.sleep(1)

    began = time.monotonic()
    assert http.get("/health").json()["ready"]
    took_s = time.monotonic() - began
    done.set()
    for one in waiting:
        one.join()
    web.should_exit = True

    assert took_s < 10


def test_a_server_that_is_about_to_end_is_not_ready_and_says_why(tmp_path: Path) -> None:
    server = Server(tmp_path)
    web = TestClient(build_app(server, "secret"))
    before = web.get("/health").json()

    server.error = TwinlakeError("Spark runs nothing any more", "its executor has ended", "wait")

    assert (before["ready"], before["error"]) == (True, None)
    assert web.get("/health").json() == {**before, "ready": False, "error": server.error.to_json()}


READS = ("/releases", "/plans", "/plans/abc", "/tables/t", "/topics", "/topics/t")


@pytest.mark.parametrize("path", READS)
def test_what_only_says_needs_the_token_and_an_open_lake(web: TestClient, path: str) -> None:
    answer = web.get(path)

    assert (answer.status_code, answer.json()["error"]) == (409, "BusyError")
    assert web.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=1.0", "limit=+1", "limit=", "number=0", "number=x"]
)
def test_a_number_of_releases_is_a_whole_one_in_range(web: TestClient, query: str) -> None:
    answer = web.get(f"/releases?{query}")

    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")


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


def test_the_client_reads_back_every_field_that_the_server_tells(web: TestClient, client: LakeClient) -> None:
    job = client.follow(client.submit("echo", {"text": "hi"}, key="k").id)

    assert job.succeeded() == {"text": "hi"}
    assert job.to_json() == web.get(f"/jobs/{job.id}").json()
    assert client.jobs() == [job] and client.cancel(job.id) == job


def test_a_failed_job_has_its_result_and_its_error_on_the_other_side(client: LakeClient) -> None:
    job = client.follow(client.submit("differ", {"text": "hi"}).id)

    assert (job.state, job.result, job.error) == ("failed", {"text": "hi"}, DIFFERENCE.to_json())
    with pytest.raises(DifferenceError) as caught:
        job.succeeded()
    assert caught.value.to_json() == DIFFERENCE.to_json()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "echo", "parms": {}}, 400),
        ({"kind": "nope"}, 400),
        ({"kind": "echo", "params": {}}, 400),
        ([], 400),
        (b"\xff", 400),
    ],
)
def test_malformed_requests_are_refused_with_what_and_why(web: TestClient, body: Any, status: int) -> None:
    answer = web.post("/jobs", content=body) if isinstance(body, bytes) else web.post("/jobs", json=body)

    assert answer.status_code == status and answer.json()["error"] == "UsageError"
    assert {"what", "why", "remedy"} <= set(answer.json())


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/job", 404), ("PUT", "/jobs", 405)])
def test_what_is_not_served_is_told(web: TestClient, method: str, path: str, status: int) -> None:
    answer = web.request(method, path)

    assert (answer.status_code, answer.json()["what"]) == (status, f"there is no {method} {path}")
    assert ("allow" in answer.headers) == (status == 405)


def test_an_unknown_job_and_a_too_large_request_are_refused(web: TestClient) -> None:
    assert web.get("/jobs/none").status_code == 404
    refused = web.post("/jobs", content=b" " * (5 << 20))
    assert (refused.status_code, refused.json()["what"]) == (413, "the request is too large")
    in_chunks = web.post("/jobs", content=(b" " * (1 << 20) for _ in range(5)))
    assert (in_chunks.status_code, in_chunks.json()["what"]) == (413, "the request is too large")


@pytest.mark.parametrize("stated", ["abc", "-1", "1e3", "5\r\nContent-Length: 6"])
def test_a_content_length_that_is_no_number_is_refused_by_the_real_server(
    tmp_path: Path, stated: str
) -> None:
    config = uvicorn.Config(
        build_app(Server(tmp_path), "token"), host="127.0.0.1", port=free_port(), log_config=None
    )
    real = uvicorn.Server(config)
    thread = threading.Thread(target=real.run)
    thread.start()
    wait_for("uvicorn", lambda: real.started or None, 20, every_s=0.02)
    with socket.create_connection(("127.0.0.1", config.port), timeout=10) as wire:
        wire.sendall(f"POST /jobs HTTP/1.1\r\nHost: a\r\nContent-Length: {stated}\r\n\r\n".encode())
        answer = wire.recv(200)
    real.should_exit = True
    thread.join()

    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("kind", [DifferenceError, UsageError, NotFoundError])
def test_an_error_is_of_the_same_class_on_both_sides(kind: type) -> None:
    told = kind("what", "why", "remedy").to_json()

    error = error_of(told)

    assert type(error) is kind and error.to_json() == told


def test_a_server_that_does_not_answer_is_not_reachable() -> None:
    with pytest.raises(UnreachableError):
        LakeClient("http://127.0.0.1:9", "token").status()

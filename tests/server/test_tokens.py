"""Which tokens the lake server takes: those of services.json as it is, while the server runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from tests.server.test_api import Server
from twinlake.base.errors import UnreachableError
from twinlake.config.settings import Services
from twinlake.server.api import build_app
from twinlake.server.client import LakeClient
from twinlake.server.tokens import Tokens

FIRST = Services(api_url="http://lake", api_token="first")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "services.json"
    FIRST.save(found)
    return found


def test_a_running_server_takes_what_the_file_says_now(file: Path, tmp_path: Path) -> None:
    web = TestClient(build_app(Server(tmp_path), Tokens(file)))

    def taken(token: str) -> bool:
        return web.get("/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200

    assert taken("first") and not taken("second") and not taken("")
    replace(FIRST, api_token="second", api_tokens_rotating=["first"]).save(file)
    assert taken("first") and taken("second") and not taken("")
    replace(FIRST, api_token="second").save(file)
    assert not taken("first") and taken("second")


def test_a_file_that_cannot_be_read_changes_nothing_and_no_token_lets_nobody_in(file: Path) -> None:
    tokens = Tokens(file)

    file.write_text("{")
    assert tokens() == ("first",)
    file.unlink()
    assert tokens() == ("first",)
    Services().save(file)
    assert tokens() == ()
    file.unlink()
    with pytest.raises(UnreachableError):
        Tokens(file)


def test_a_client_reads_the_new_token_once_the_old_one_is_refused(file: Path, tmp_path: Path) -> None:
    app = TestClient(build_app(Server(tmp_path), Tokens(file)))
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["authorization"])
        found = app.request(request.method, request.url.path, headers=dict(request.headers))
        return httpx.Response(found.status_code, content=found.content)

    def token_now() -> str:
        return Services.load(file).api_token

    client = LakeClient("http://lake", "first", httpx.MockTransport(answer), renewed=token_now)
    assert client.jobs() == []
    replace(FIRST, api_token="second").save(file)

    assert client.jobs() == [] and client.jobs() == []
    assert asked == [f"Bearer {token}" for token in ("first", "first", "second", "second")]


def test_a_client_whose_token_is_wrong_asks_once(file: Path) -> None:
    asked: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(401, json={"what": "the token is missing or wrong", "why": "", "remedy": ""})

    client = LakeClient("http://lake", "first", httpx.MockTransport(refuse), renewed=lambda: "first")

    with pytest.raises(Exception, match="the token is missing or wrong"):
        client.jobs()
    assert asked == ["/jobs"]

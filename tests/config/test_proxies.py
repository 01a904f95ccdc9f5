"""Whoever asks a part of this machine asks it directly, whatever proxy the environment names."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.oracle.judge import writer_schemas
from tests.oracle.shown import SqlDoor
from twinlake.config.settings import Services
from twinlake.reading.client import ask
from twinlake.server.client import LakeClient
from twinlake.services.part import get_json
from twinlake.topics.registry import Registry

ANSWERS: dict[str, Any] = {
    "/query": {"rows": [], "columns": [], "truncated": False, "release": 1},
    "/subjects/s/versions": [],
    "/status": {"release": 1, "ready": True, "error": None},
}


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A part that answers; the environment's proxy does not."""

    class Part(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            content = json.dumps(ANSWERS[self.path.partition("?")[0]]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Part)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "asks",
    [
        lambda url: writer_schemas(url, "s"),
        lambda url: SqlDoor(url, "analyst", "x").rows("SELECT 1"),
        lambda url: ask(Services(sql_url=url), "SELECT 1"),
        lambda url: LakeClient(url, "token").status(),
        lambda url: Registry(url).schemas("s"),
        lambda url: get_json(f"{url}/status"),
    ],
    ids=["oracle's registry", "oracle's door", "query", "lake", "registry", "probe"],
)
def test_no_proxy_stands_between(url: str, asks: Callable[[str], Any]) -> None:
    asks(url)

"""The answers of the lake server that has them all, on a real port: for commands that are real processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.cli.answers import Answers

TOKEN = "secret"
"""Who does not show it is told nothing."""


class Lake(Answers):
    """The same answers, and those of a server that is ready; `topics` are what its status tells of them."""

    topics: tuple[dict[str, Any], ...] = ()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/health":
            return httpx.Response(200, json={"ready": True})
        if request.url.path == "/status":
            return httpx.Response(200, json={"topics": self.topics})
        return super().__call__(request)


@contextmanager
def listening(lake: Lake) -> Iterator[str]:
    """The URL at which it answers meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = httpx.Request(self.command, f"http://lake{self.path}", content=sent)
            known = self.headers["Authorization"] == f"Bearer {TOKEN}"
            answer = lake(request) if known else httpx.Response(401)
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

"""Statements of one process share a connection while it is there; each is sent with the login of its own."""

from __future__ import annotations

import multiprocessing
import threading
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from twinlake.config.settings import Services
from twinlake.reading.client import ask


class Server(ThreadingHTTPServer):
    """Answers every statement with the user's name, and knows the connections that were opened."""

    def __init__(self) -> None:
        self.connections = list[Any]()
        self.closes = False
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def services(self) -> Services:
        return Services(
            sql_url=f"http://127.0.0.1:{self.server_address[1]}", sql_user="ann", sql_password="secret"
        )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        user = b64decode(self.headers["Authorization"].split()[1]).decode().partition(":")[0]
        body = f'{{"columns":[{{"name":"user","type":"string"}}],"rows":[\n{{"user":"{user}"}}\n]}}'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.server.closes

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def users(services: Services) -> list[Any]:
    return [row["user"] for row in ask(services, "SELECT 1")["rows"]]


def test_statements_after_each_other_take_one_connection_whoever_asks(server: Server) -> None:
    other = replace(server.services, sql_user="ben")

    found = [users(server.services), users(other), users(server.services)]

    assert found == [["ann"], ["ben"], ["ann"]]
    assert len(server.connections) == 1


def test_a_connection_that_the_server_has_closed_is_opened_again(server: Server) -> None:
    server.closes = True

    assert [users(server.services) for _ in range(3)] == [["ann"]] * 3
    assert len(server.connections) == 3


def test_statements_at_once_do_not_wait_for_each_other(server: Server) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = [*threads.map(users, [server.services] * 40)]

    assert found == [["ann"]] * 40
    assert len(server.connections) <= 8


def test_a_fork_has_connections_of_its_own(server: Server) -> None:
    users(server.services)

    with multiprocessing.get_context("fork").Pool(1) as forked:
        assert forked.apply(users, (server.services,)) == ["ann"]
    assert users(server.services) == ["ann"]
    assert len(server.connections) == 2

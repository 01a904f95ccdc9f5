"""Who holds a connection without asking for anything is cut off; who asks is not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from itertools import repeat

import pytest
import uvicorn
from fastapi import FastAPI

from tests.broker import free_port
from twinlake.base import http_errors
from twinlake.base.long_answer import LongAnswer
from twinlake.base.waiting import wait_for

SLOW_S = 3.0
closed = threading.Event()
"""What an endless answer holds is free."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[uvicorn.Server]:
    """One that answers after a while."""
    monkeypatch.setattr(http_errors, "HEAD_S", 0.5)
    monkeypatch.setattr(http_errors, "BODY_S", 1.0)
    app = FastAPI()
    app.add_middleware(http_errors.LimitedBody, most=1_000)

    @app.get("/")
    async def slow() -> str:
        await asyncio.sleep(SLOW_S)
        return "here"

    @app.get("/endless")
    async def endless() -> LongAnswer:
        async def close() -> None:
            closed.set()

        closed.clear()
        return LongAnswer(repeat(bytes(1 << 20)), close, 60.0, 1.0, "text/plain")

    config = uvicorn.Config(app, port=free_port(), log_config=None, http=http_errors.Protocol)
    server = uvicorn.Server(config)
    serving = threading.Thread(target=server.run)
    serving.start()
    wait_for("the server", lambda: server.started or None, 30)
    yield server
    server.should_exit = True
    serving.join()


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    return server.config.port


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: 127"], ids=["silent", "half"])
def test_who_sends_no_head_is_cut_off(port: int, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(begun)

        assert client.recv(1) == b""


def test_who_sends_it_drop_by_drop_is_cut_off(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, pytest.raises(OSError):
        client.sendall(b"GET / HTTP/1.1\r\n")
        until = time.monotonic() + 30
        while time.monotonic() < until:
            client.sendall(b"X: y\r\n")
            time.sleep(0.1)


def test_who_does_not_send_the_body_is_told_and_cut_off(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n" + b"x" * 899)

        told = client.makefile("rb").read()

    assert told.startswith(b"HTTP/1.1 408") and b"its body has not come within 1 s" in told


def test_who_waits_for_an_answer_gets_it(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")

        assert client.makefile("rb").read().endswith(b'"here"')


@pytest.mark.parametrize("goes", [True, False], ids=["goes", "takes nothing"])
def test_who_goes_or_takes_nothing_of_an_answer_holds_nothing(server: uvicorn.Server, goes: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.config.port), timeout=30) as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200") and not closed.is_set()
        if goes:
            client.close()

        assert closed.wait(10)
        # although much of it waits to be sent
        wait_for("the end of the connection", lambda: not server.server_state.connections or None, 10)

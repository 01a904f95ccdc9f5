"""Downloads from a repository that sends too little, the wrong bytes, nothing, or everything slowly."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.setup.test_jars import artifact
from twinlake.setup import jars
from twinlake.setup.jars import JarError, fetch
from twinlake.setup.java import find_java

CONTENT = bytes(range(256)) * 400
Send = Callable[[BaseHTTPRequestHandler], None]


def whole(door: BaseHTTPRequestHandler, content: bytes = CONTENT, pause_s: float = 0) -> None:
    door.send_response(200)
    door.send_header("Content-Length", str(len(CONTENT)))
    door.end_headers()
    if door.command == "GET":
        for start in range(0, len(content), 10_000):
            door.wfile.write(content[start : start + 10_000])
            time.sleep(pause_s)


def slow(door: BaseHTTPRequestHandler) -> None:
    whole(door, pause_s=0.2)


def damaged(door: BaseHTTPRequestHandler) -> None:
    whole(door, CONTENT[:-1] + b"!")


def interrupted(door: BaseHTTPRequestHandler) -> None:
    whole(door, CONTENT[:20_000])
    door.close_connection = True


def broken(door: BaseHTTPRequestHandler) -> None:
    door.send_error(503)


@dataclass
class Repository:
    """Answers the tries for the jar in this order, the last one for ever."""

    answers: list[Send] = field(default_factory=lambda: [whole])
    tries: int = 0

    def answer(self, door: BaseHTTPRequestHandler) -> None:
        if not door.path.endswith("/g/a/1/a-1.jar"):
            door.send_error(404)
            return
        send = self.answers[min(self.tries, len(self.answers) - 1)]
        if door.command == "GET" or send is broken:  # what is asked for first is the head alone
            self.tries += 1
        send(door)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    made = Repository()

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.answer(self)

        do_HEAD = do_GET

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    root = f'<ibiblio name="central" root="http://127.0.0.1:{door.server_port}/"'
    monkeypatch.setattr(jars, "_SETTINGS", jars._SETTINGS.replace('<ibiblio name="central"', root))
    monkeypatch.setattr(jars.time, "sleep", lambda seconds: None if seconds >= 1 else time_sleep(seconds))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    yield made
    door.shutdown()
    door.server_close()


time_sleep = time.sleep


@pytest.mark.parametrize("first", [[], [slow], [damaged], [interrupted], [broken], [interrupted, damaged]])
def test_a_jar_arrives_whole_whatever_came_first(
    repository: Repository, tmp_path: Path, first: list[Send]
) -> None:
    repository.answers = [*first, whole]

    fetch([artifact("a", CONTENT)], tmp_path, find_java(os.environ))

    assert (tmp_path / "spark" / "a-1.jar").read_bytes() == CONTENT
    assert repository.tries <= len(first) + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spark"]


@pytest.mark.parametrize("answer", [damaged, interrupted, broken])
def test_a_jar_that_never_arrives_whole_is_not_installed_and_named(
    repository: Repository, tmp_path: Path, answer: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.answers = [answer]
    monkeypatch.setattr(jars, "_ATTEMPTS", 2)

    with pytest.raises(JarError, match=r"1 jars could not be fetched \(a-1.jar\)"):
        fetch([artifact("a", CONTENT)], tmp_path, find_java(os.environ))

    assert not list(tmp_path.glob("spark/*"))
    repository.answers = [whole]
    fetch([artifact("a", CONTENT)], tmp_path, find_java(os.environ))  # as the message says
    assert (tmp_path / "spark" / "a-1.jar").read_bytes() == CONTENT

"""A receiver of a webhook, as docs/changes.md describes one: it keeps the table, or refuses what comes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Row = dict[str, Any]


@dataclass
class Got:
    key: str
    signature: str
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    url: str = ""
    got: list[Got] = field(default_factory=list)
    """All that came, the refused included."""
    table: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    states: dict[str, dict[tuple[Any, ...], Row]] = field(default_factory=dict)
    answers: Callable[[Got], int] = lambda got: 200
    _parts: list[dict[str, Any]] = field(default_factory=list)

    def takes(self, got: Got) -> int:
        self.got.append(got)
        status = self.answers(got)
        if status != 200:
            return status
        said = got.said
        if said["part"] == 1:
            self._parts = []
        if said["part"] != len(self._parts) + 1:
            return 200  # it came twice
        self._parts.append(said)
        if not said["more"]:
            self._apply(said)
        return 200

    def _apply(self, last: dict[str, Any]) -> None:
        table = {} if last["whole"] else dict(self.table)
        for part in self._parts:
            for key in part["deletes"]:
                table.pop(tuple(key[name] for name in last["key"]), None)
            table |= {tuple(row[name] for name in last["key"]): row for row in part["upserts"]}
        self.table = self.states[last["id"]] = table
        self._parts = []


@contextmanager
def receiving() -> Iterator[Receiver]:
    found = Receiver()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            key, signature = self.headers["Idempotency-Key"], self.headers["Twinlake-Signature"]
            status = found.takes(Got(key, signature, body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{door.server_port}/changes"
    try:
        yield found
    finally:
        door.shutdown()
        door.server_close()

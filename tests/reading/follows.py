"""A reader who follows a table as docs/changes.md says: each change is applied as a whole."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.reading.conftest import PASSWORD
from twinlake.base.waiting import wait_for

WAIT_S = 120


@dataclass
class Event:
    name: str
    data: Any
    id: str = ""


def events(lines: Iterator[str]) -> Iterator[Event | None]:
    """As the standard of server-sent events has them; None for a comment."""
    now = Event("", None)
    for line in lines:
        name, _, value = line.partition(": ")
        if not line and now.name:
            yield now
            now = Event("", None)
        elif line.startswith(":"):
            yield None
        elif name == "event":
            now.name = value
        elif name == "id":
            now.id = value
        elif name == "data":
            now.data = json.loads(value)


@dataclass
class Follows:
    """What it holds, and what it held at each position."""

    table: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    at: str = ""
    states: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)
    """Of each position: how many upserts, deletes, and whether it was the whole."""
    wholes: list[str] = field(default_factory=list)
    ended: dict[str, str] | None = None
    comments: int = 0
    failed: BaseException | None = None
    _parts: list[dict[str, Any]] = field(default_factory=list)
    _is_whole: bool = False

    def connects(self) -> None:
        self._parts, self._is_whole = [], False

    def takes(self, event: Event | None) -> None:
        if event is None:
            self.comments += 1
        elif event.name == "ended":
            self.ended = event.data
        elif event.name == "whole":
            self._parts, self._is_whole = [], True
            self.wholes.append(event.data["why"])
        else:
            self._parts.append(event.data)
            if not event.data["more"]:
                self._apply(event)

    def _apply(self, event: Event) -> None:
        keys = event.data["key"]
        table = {} if self._is_whole else dict(self.table)
        for part in self._parts:
            for key in part["deletes"]:
                del table[tuple(key[name] for name in keys)]  # what is not there cannot go
            table |= {tuple(row[name] for name in keys): row for row in part["upserts"]}
        self.changes.append({
            "upserts": sum(len(part["upserts"]) for part in self._parts),
            "deletes": sum(len(part["deletes"]) for part in self._parts),
            "whole": self._is_whole, "release": event.data["release"], "position": event.data["position"],
        })  # fmt: skip
        self.table, self.at = table, event.id
        self.states[event.id] = table
        self.connects()

    def until(self, right: Any) -> None:
        def there() -> bool | None:
            if self.failed:
                raise self.failed
            return bool(right(self)) or None

        wait_for("the reader", there, WAIT_S, every_s=0.05, remedy=str(self.changes[-3:]))

    def until_at(self, batch: int, release: int | None = None) -> None:
        self.until(lambda one: one.changes and one.changes[-1]["position"] == {"orders": batch}
                   and release in (None, one.changes[-1]["release"]))  # fmt: skip


@contextmanager
def following(
    url: str, table: str, since: str = "", user: str = "analyst", last: str = "", held: Follows | None = None
) -> Iterator[Follows]:
    """A reader that is connected inside."""
    found, ending = held or Follows(), threading.Event()
    found.connects()
    found.ended = None
    client = httpx.Client(timeout=WAIT_S, trust_env=False, auth=(user, PASSWORD))
    headers = {"Last-Event-ID": last} if last else {}
    asked = client.build_request(
        "GET", f"{url}/tables/{table}/changes", params={"from": since} if since else {}, headers=headers
    )
    answer = client.send(asked, stream=True)
    if not answer.is_success:
        answer.read()
        raise Refused(answer)

    def read() -> None:
        try:
            for event in events(answer.iter_lines()):
                found.takes(event)
        except BaseException as error:
            if not ending.is_set():
                found.failed = error

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ending.set()
        with suppress(OSError):  # a close alone would wait for what the thread reads
            answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        thread.join(10)
        client.close()


class Refused(Exception):
    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer.text)
        self.status, self.error = answer.status_code, answer.json()

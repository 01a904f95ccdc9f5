"""Those who follow a table share its differences, and leave nothing behind: over HTTP, with made up rows."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from tests import chromium
from tests.broker import free_port
from tests.history import LATEST, version_of
from tests.reading.follows import Follows, Refused, following
from twinlake.base import http_errors
from twinlake.base.errors import BusyError, DamagedError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.http_errors import Protocol
from twinlake.base.waiting import wait_for
from twinlake.config.users import User
from twinlake.lake.catalog.version import Pin
from twinlake.metrics.catalogue import SQL
from twinlake.metrics.scrape import Collector
from twinlake.reading.changes import readers, route
from twinlake.reading.changes.feed import Delivery, Feeds
from twinlake.reading.changes.pins import At
from twinlake.reading.changes.readers import Readers
from twinlake.reading.running import RunningStatements

TABLE = "latest_order"
VERSION = version_of(LATEST)
OPENED: Any = SimpleNamespace(definition=SimpleNamespace(view_keys=("k",), timeless=("k", "v")))


def at(batch: int, release: int = 1) -> At:
    pin = Pin(version=VERSION, position={"orders": batch}, delta_version=batch, step=batch)
    return At(release=release, opened=OPENED, pin=pin)


@dataclass(eq=False)
class Table(Feeds):
    """A table whose rows are said by batch; what differs is found by comparing them."""

    states: list[dict[str, int]] = field(default_factory=lambda: [{"a": 1}])
    error: TwinlakeError | None = None
    made: list[tuple[str, ...]] = field(default_factory=list)
    """Each difference that was computed."""
    closed: int = 0
    padding: str = ""
    rights: str = ""
    slow_s: float = 0.0
    is_kept: bool = True

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(2)
        self._looking = ThreadPoolExecutor(1)
        self._feeds = {}
        self.readers = Readers()
        self.pins: Any = SimpleNamespace(now=self._now, seen=self._seen)
        self.seen: Any = SimpleNamespace(refuse_blind=lambda *_: None)
        self.judge: Any = SimpleNamespace(like=lambda user, table: self.rights)

    def _now(self, table: str) -> At:
        if self.error:
            raise self.error
        return at(len(self.states))

    def _seen(self, position: Any) -> At | None:
        return at(position.batches["orders"]) if self.is_kept else None

    def table(self, name: str, user: User) -> None:
        if name != TABLE:
            raise NotFoundError(f"there is no table {name!r}")

    def delivery(self, feed: Any, before: At | None, to: At, user: User, like: str) -> Delivery:
        time.sleep(self.slow_s)
        self.made.append(tuple(str(one.pin.position["orders"]) if one else "" for one in (before, to)))
        old = self.states[before.pin.position["orders"] - 1] if before else {}
        new = self.states[to.pin.position["orders"] - 1]
        rows = [{"gone": None, "row": {"k": key, "v": f"{value}{self.padding}"}}
                for key, value in new.items() if old.get(key) != value]  # fmt: skip
        gone = [{"gone": {"k": key}, "row": None} for key in old if key not in new]
        whole = [*rows, *gone]

        def close() -> None:
            self.closed += 1

        found: Any = SimpleNamespace(rows=lambda: ([one] for one in whole), close=close)
        return Delivery(to=to, keys=("k",), is_whole=before is None, found=found)


@dataclass
class Server:
    url: str
    table: Table
    running: RunningStatements

    @property
    def listed(self) -> list[str]:
        return [one.sql for one in self.running._here.values()]

    def measured(self) -> tuple[float, ...]:
        """Who follows now; events that were sent; those who were cut off: as a scrape has them."""
        found = {one.name: one for one in Collector(SQL, {"readers": self.table.readers.add}).collect()}
        names = ("twinlake_readers", "twinlake_reader_events", "twinlake_readers_cut_off")
        return tuple(found[name].samples[0].value for name in names)

    def until_left(self) -> None:
        wait_for("readers to have left", lambda: not self.listed or None, 20)


@pytest.fixture
def server() -> Iterator[Server]:
    app, running, port = FastAPI(), RunningStatements(), free_port()

    def status_of(error: TwinlakeError) -> int:
        return 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 503

    http_errors.install(app, status_of, "look")

    class Known:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                scope.setdefault("state", {})["user"] = SimpleNamespace(name="ben")
            await self.inner(scope, receive, send)

    app.add_middleware(Known)
    table = Table()
    route.add(app, table, table, running)  # type: ignore[arg-type]
    config = uvicorn.Config(app, port=port, log_level="warning", http=Protocol, lifespan="off")
    made = uvicorn.Server(config)

    thread = threading.Thread(target=lambda: asyncio.run(made.serve()), daemon=True)
    thread.start()
    wait_for("the server", lambda: made.started or None, 20, every_s=0.05)
    yield Server(f"http://127.0.0.1:{port}", table, running)
    made.should_exit = made.force_exit = True
    thread.join(20)


def rows(reader: Follows) -> dict[str, str]:
    return {key[0]: row["v"] for key, row in reader.table.items()}


def test_a_reader_has_the_table_and_what_changes(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        assert rows(reader) == {"a": "1"}
        server.table.states.append({"b": 2})
        reader.until_at(2)
        server.table.states.append({"b": 3, "c": 4})
        reader.until_at(3)
        expected = (1, 1 + 2 + 3 + 3, 0)  # that it is the whole, then three changes, each with its end
        wait_for("them to be counted", lambda: server.measured() == expected or None, 10)

    assert rows(reader) == {"b": "3", "c": "4"} and reader.wholes == ["it is the beginning"]
    server.until_left()
    wait_for("none to follow", lambda: server.measured()[0] == 0 or None, 10)
    assert server.table.closed == len(server.table.made) == 3


def test_all_at_one_place_share_one_difference(server: Server) -> None:
    server.table.slow_s = 0.5
    with ExitStack() as many:
        readers = [many.enter_context(following(server.url, TABLE, "now")) for _ in range(8)]
        for one in readers:
            one.until_at(1)
        server.table.states.append({"a": 2})
        for one in readers:
            one.until_at(2)

    assert server.table.made == [("1", "2")]
    server.until_left()
    assert server.table.closed == 1


def test_one_who_comes_back_gets_what_differs_and_one_too_far_behind_the_whole(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
    server.table.states += [{"b": 2}, {"b": 3}]
    held = Follows(table=dict(reader.table))
    with following(server.url, TABLE, last=reader.at, since="beginning", held=held) as again:
        again.until_at(3)
    assert rows(again) == {"b": "3"} and again.wholes == []

    server.table.is_kept = False
    with following(server.url, TABLE, reader.at, held=Follows(table={("x",): {"v": "?"}})) as late:
        late.until_at(3)
    assert rows(late) == {"b": "3"} and late.wholes == [route.LOST]


def test_one_who_leaves_takes_nothing_from_those_who_stay(server: Server) -> None:
    server.table.slow_s = 1.0
    with following(server.url, TABLE, "now") as stays:
        stays.until_at(1)
        with following(server.url, TABLE, "now") as leaves:
            leaves.until_at(1)
            server.table.states.append({"a": 2})
            feed = server.table._feeds[TABLE]
            wait_for("it to be computed", lambda: feed._shared or None, 10, every_s=0.01)
        stays.until_at(2)

    assert rows(stays) == {"a": "2"} and server.table.made == [("1", "2")]
    server.until_left()
    assert server.table.closed == 1 and server.table._feeds == {}


def test_an_error_is_the_last_event_and_a_new_reader_gets_it_as_an_answer(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        server.table.error = DamagedError("a file is damaged", "it is torn", "restore it")
        reader.until(lambda one: one.ended)
    assert reader.ended is not None and reader.ended["what"] == "a file is damaged"
    with pytest.raises(Refused) as refused, following(server.url, TABLE):
        pass
    assert (refused.value.status, refused.value.error["remedy"]) == (503, "restore it")

    server.table.error = None
    with following(server.url, TABLE, reader.at, held=Follows(table=dict(reader.table))) as again:
        again.until_at(1)


def test_whose_rights_change_or_who_is_cancelled_gets_no_more(server: Server) -> None:
    with following(server.url, TABLE) as reader:
        reader.until_at(1)
        server.table.rights = "less"
        reader.until(lambda one: one.ended)
        server.table.states.append({"a": 2})
    assert "rights of ben have changed" in str(reader.ended) and len(reader.changes) == 1

    with following(server.url, TABLE) as other:
        other.until_at(2)
        server.running.end_of("ben", BusyError("it was cancelled", "olga has done it"), lasting_alone=True)
        other.until(lambda one: one.ended)
    assert other.ended is not None and other.ended["why"] == "olga has done it"


def test_a_comment_comes_when_nothing_else_does(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "HEARTBEAT_S", 1.0)
    with following(server.url, TABLE, "now") as reader:
        reader.until(lambda one: one.comments >= 2)


def test_more_readers_than_are_allowed_are_refused_and_places_become_free(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "OF_ONE_USER", 2)
    with following(server.url, TABLE, "now"), following(server.url, TABLE, "now"):
        with pytest.raises(Refused) as refused, following(server.url, TABLE, "now"):
            pass
    assert refused.value.status == 503 and "2 of one login" in refused.value.error["why"]
    server.until_left()
    with following(server.url, TABLE, "now") as reader:
        reader.until_at(1)


def test_one_who_takes_nothing_is_cut_off_and_others_go_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route.wire, "SLOW_S", 2.0)
    server.table.padding = "x" * 200_000
    server.table.states = [{str(number): number for number in range(200)}]  # 40 MB
    with socket.create_connection(server.url.removeprefix("http://").rsplit(":", 1)) as slow:  # type: ignore[arg-type]
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /tables/{TABLE}/changes HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_for("it to be sent", lambda: server.listed or None, 10, every_s=0.01)
        held = Follows(table={(str(number),): {} for number in range(200)})
        with following(server.url, TABLE, "now", held=held) as quick:
            quick.until_at(1)
            wait_for("the slow one to be cut off", lambda: len(server.listed) == 1 or None, 20)
            server.table.states.append({})
            quick.until_at(2)

    assert quick.changes[-1]["deletes"] == 200
    assert server.measured()[2] == 1


def test_what_is_asked_wrongly_is_refused(server: Server) -> None:
    def status(path: str, **headers: str) -> int:
        return httpx.get(server.url + path, headers=headers, trust_env=False, timeout=10).status_code

    assert status("/tables/none/changes") == 404
    assert status(f"/tables/{TABLE}/changes?since=now") == 400
    assert status(f"/tables/{TABLE}/changes?from=nonsense") == 400
    assert status(f"/tables/{TABLE}/changes", **{"Last-Event-ID": "nonsense"}) == 400
    assert status(f"/tables/{TABLE}/changes", **{"Sec-Fetch-Site": "same-site"}) == 400
    assert status(f"/tables/{TABLE}/changes", Accept="text/html") == 200


@chromium.needed
def test_a_browser_shows_the_table_as_it_changes_and_takes_no_value_for_html(
    server: Server, tmp_path: Path
) -> None:
    driver = chromium.started(tmp_path / "profile", (800, 600))
    try:
        driver.get(f"{server.url}/tables/{TABLE}/changes")

        def shows(*lines: str) -> None:
            def there() -> bool | None:
                found = [one.text for one in driver.find_elements("css selector", "tbody tr")]
                return sorted(found) == sorted(lines) or None

            wait_for("the page", there, 60, remedy=driver.page_source)

        shows("a 1")
        server.table.states.append({"<b>b</b>": 2, "c": 3})
        shows("<b>b</b> 2", "c 3")
        assert driver.find_element("id", "state").text == '2 rows, release 1, {"orders":2}'
        assert driver.find_element("tag name", "h1").text == TABLE
        assert driver.find_elements("css selector", "tbody b") == []
        assert not [one for one in driver.get_log("browser") if "Content Security" in one["message"]]

        for one in list(server.running._here.values()):
            one.end(BusyError("it was cancelled", ""))  # the browser comes back by itself, with its position
        server.table.states.append({"c": 4})
        shows("c 4")
        assert server.table.made[-1] == ("2", "3")
    finally:
        driver.quit()

"""A table with made up rows that is followed over HTTP, by the real route: no lake, no Spark."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import uvicorn
from fastapi import FastAPI

from tests.broker import free_port
from tests.history import LATEST, version_of
from twinlake.base import http_errors
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.http_errors import Protocol
from twinlake.base.waiting import wait_for
from twinlake.config.users import User
from twinlake.lake.catalog.version import Pin
from twinlake.metrics.catalogue import SQL
from twinlake.metrics.scrape import Collector
from twinlake.reading.changes import route
from twinlake.reading.changes.feed import Delivery, Feeds
from twinlake.reading.changes.pins import At
from twinlake.reading.changes.readers import Readers
from twinlake.reading.followed import Followed
from twinlake.reading.metrics import Queries
from twinlake.reading.running import RunningStatements
from twinlake.reading.turns import Statements

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
    followed: Followed = field(default_factory=lambda: Followed(ready=True))

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


class Known:
    """Whoever asks is ben."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["user"] = SimpleNamespace(name="ben")
        await self.inner(scope, receive, send)


@dataclass
class Server:
    port: int = field(default_factory=free_port)
    table: Table = field(default_factory=Table)
    running: RunningStatements = field(default_factory=RunningStatements)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        """As often as a test likes, at the same address."""
        app = FastAPI()

        def status_of(error: TwinlakeError) -> int:
            return 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 503

        http_errors.install(app, status_of, "look")
        app.add_middleware(Known)
        statements = Statements(lambda: self.table.followed, Queries(), self.running)
        route.add(app, self.table, self.table, self.running, statements.refuse_unready)  # type: ignore[arg-type]
        config = uvicorn.Config(app, port=self.port, log_level="warning", http=Protocol, lifespan="off")
        made = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(made.serve()), daemon=True)
        thread.start()
        try:
            wait_for("the server", lambda: made.started or None, 20, every_s=0.05)
            yield
        finally:
            made.should_exit = made.force_exit = True
            thread.join(20)

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

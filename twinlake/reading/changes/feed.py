"""Feed: one table as those who follow it share it: where it is now, and each difference on the way there.

A difference is computed once for all who are at the same place and see the same, and waits in files until the
last of them has it. Whoever is slower gets a longer one: no reader is waited for, nothing is kept for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from twinlake.base.errors import BusyError, TwinlakeError
from twinlake.config.users import User
from twinlake.difference.changed import (
    all_rows,
    changed_rows,
    gone_and_there,
    rest_s,
    without_scales,
)
from twinlake.reading.answer import Answer, Answers
from twinlake.reading.changes.pins import At, Pins
from twinlake.reading.changes.readers import Readers
from twinlake.reading.changes.seen import Seen
from twinlake.reading.reader import Reader
from twinlake.reading.rights import Judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 0.5
AT_ONCE = 2
"""Differences that are computed at once; statements have turns of their own beside them."""
MOST_BYTES, MOST_BYTES_IN_ALL, KEPT_FREE = 4 << 30, 8 << 30, 1 << 30
"""Of a difference in files, of all of them, and what their disk has to keep free."""

journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What leads to a place: rows that are new or changed, and keys that are gone. `is_whole` says that
    nothing of before counts."""

    to: At
    keys: tuple[str, ...]
    is_whole: bool = False
    found: Answer | None = None
    """Columns `gone`, a key, and `row`, of which each row has one; None where nothing differs."""

    def pieces(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """Rows and keys, as JSON has them, some at a time."""
        for piece in self.found.rows() if self.found else ():
            rows = [one["row"] for one in piece if one["row"] is not None]
            yield rows, [one["gone"] for one in piece if one["row"] is None]


@dataclass(eq=False)
class _Shared:
    making: asyncio.Future[Delivery]
    holders: int = 0


class Feeds:
    """Of all tables that somebody follows; its methods are called in one event loop."""

    def __init__(
        self, spark: SparkSession, pins: Pins, reader: Reader, seen: Seen, judge: Judge
    ) -> None:  # fmt: skip
        self._spark, self.pins, self._reader, self.seen, self.judge = spark, pins, reader, seen, judge
        self.readers = Readers()
        self._answers = Answers(spark, MOST_BYTES, MOST_BYTES_IN_ALL, pool="changes", kept_free=KEPT_FREE)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="changes")
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="changes look")
        self._feeds: dict[str, Feed] = {}

    @asynccontextmanager
    async def one(self, table: str) -> AsyncIterator[Feed]:
        """The feed of the table, which looks for what is new as long as somebody is inside."""
        feed = self._feeds.get(table) or self._feeds.setdefault(table, Feed(table, self))
        feed.readers += 1
        try:
            yield feed
        finally:
            feed.readers -= 1
            if not feed.readers:
                del self._feeds[table]
                feed.end()

    async def look(self, work: Callable[[], Any]) -> Any:
        """By the one thread that reads commits."""
        return await asyncio.get_running_loop().run_in_executor(self._looking, work)

    async def compute(self, work: Callable[[], Delivery]) -> Delivery:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def delivery(self, feed: Feed, before: At | None, to: At, user: User, like: str) -> Delivery:
        """From what a reader has seen, None for nothing, to this place."""
        return self._reader.in_words(lambda: self._tagged(feed, before, to, user, like), user.name)

    def _tagged(self, feed: Feed, before: At | None, to: At, user: User, like: str) -> Delivery:
        context, tag = self._spark.sparkContext, f"changes-{uuid4().hex}"
        context.addJobTag(tag)
        try:
            return self._delivery(feed, before, to, user, like)
        finally:
            context.removeJobTag(tag)

    def _delivery(self, feed: Feed, before: At | None, to: At, user: User, like: str) -> Delivery:
        keys, began = to.opened.definition.view_keys, time.monotonic()
        if before is not None and before.shows_as(to):
            return Delivery(to=to, keys=keys)
        changed = None
        if before is not None and before.opened.definition.view_keys == keys:
            changed = changed_rows(before.opened, before.pin, to.opened, to.pin)
        found = changed.rows if changed else all_rows(to.opened, to.pin)
        found = without_scales(found, *(one.opened.definition.timeless for one in (to, before or to)))
        if like:
            found = self.seen.of(feed.table, keys, found, user)
        answer = self._answers.of(gone_and_there(found, keys), None)
        if self.judge.like(user, feed.table) != like:  # others share it who may not see this
            answer.close()
            raise BusyError(
                f"{feed.table} is not followed any further", f"the rights of {user.name} have changed",
                "come back",
            )  # fmt: skip
        if changed:
            feed.rest(rest_s(to.opened, changed.way, time.monotonic() - began))
        return Delivery(to=to, keys=keys, is_whole=changed is None, found=answer)


class Feed:
    """Of one table, while somebody follows it."""

    def __init__(self, table: str, feeds: Feeds) -> None:
        self.table = table
        self.readers = 0
        self._feeds = feeds
        self._at: At | None = None
        self._error: TwinlakeError | None = None
        self._moved = asyncio.Condition()
        self._shared: dict[tuple[str, str, str], _Shared] = {}
        self._rest_until = 0.0
        self._going = asyncio.ensure_future(self._go())

    def end(self) -> None:
        self._going.cancel()

    def rest(self, for_s: float) -> None:
        """Nobody looks whether there is more meanwhile."""
        self._rest_until = max(self._rest_until, time.monotonic() + for_s)

    async def after(self, seen: At | None, wait_s: float) -> At | None:
        """Where the table is, once that is another place than this one; None where it is not in time.

        The error of a table that is not live any more, or that cannot be read.
        """

        def is_there() -> bool:
            return self._error is not None or _is_after(self._at, seen)

        async with self._moved:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._moved.wait_for(is_there)
            if self._error is not None:
                raise self._error
            return self._at if _is_after(self._at, seen) else None

    @asynccontextmanager
    async def delivery(self, before: At | None, to: At, user: User, like: str) -> AsyncIterator[Delivery]:
        """Inside, it can be read: by everybody who is at the same place, and sees the same (`like`)."""
        key = (before.position.text if before else "", to.position.text, like)
        shared = self._shared.get(key)
        if shared is None:
            making = self._feeds.compute(lambda: self._feeds.delivery(self, before, to, user, like))
            shared = self._shared[key] = _Shared(asyncio.ensure_future(making))
        shared.holders += 1
        try:
            yield await asyncio.shield(shared.making)  # who leaves takes it from nobody else
        finally:
            shared.holders -= 1
            if not shared.holders:
                del self._shared[key]
                shared.making.add_done_callback(_close)

    async def _go(self) -> None:
        while True:
            try:
                if time.monotonic() >= self._rest_until:
                    await self._look()
                self._error = None
            except TwinlakeError as error:
                await self._tell(error)
            except Exception as error:
                journal.exception("a table cannot be followed; it is tried again", table=self.table)
                await self._tell(BusyError(f"{self.table} cannot be followed", str(error)[:300], "come back"))
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        found: At | None = await self._feeds.look(lambda: self._feeds.pins.now(self.table))
        if found is None or (self._at and found.is_back_from(self._at)):
            return
        if self._at is None or found.position != self._at.position:
            async with self._moved:
                self._at = found
                self._moved.notify_all()

    async def _tell(self, error: TwinlakeError) -> None:
        async with self._moved:
            self._error = error.alone()
            self._moved.notify_all()


def _is_after(at: At | None, seen: At | None) -> bool:
    return at is not None and (
        seen is None or (at.position != seen.position and not at.is_back_from(seen))
    )  # fmt: skip


def _close(made: asyncio.Future[Delivery]) -> None:
    if not made.cancelled() and made.exception() is None and (found := made.result().found):
        found.close()

"""Statements in turn: so many are computed at once, whichever endpoint they come by; the others wait.

A statement that nobody waits for any more, or that has to make room, is ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from twinlake.base.errors import BusyError
from twinlake.reading.answer import STOPPED
from twinlake.reading.followed import Followed
from twinlake.reading.metrics import Queries, Statement
from twinlake.reading.running import HTTP, Running, RunningStatements
from twinlake.spark.session import is_jvm_lost

T = TypeVar("T")
AT_ONCE = 4
LONG_AT_ONCE = 4
"""Long statements have turns of their own, so that short ones find theirs."""
EXPORTS_AT_ONCE = 2
"""Statements with large results have turns of their own, in which they may be long."""
LONG_S = 5.0
"""What runs longer is a long statement."""
WAIT_S = 30.0
LOOK_S = 0.2
"""So often it is looked whether the client still waits, and whether a statement is a long one by now."""


class Waiting(Protocol):
    """Who has asked for a statement."""

    async def is_disconnected(self) -> bool:
        """Whether nobody waits for the answer any more."""


class StartingError(BusyError):
    """Nothing can be computed yet; asking again in a second helps."""

    def __init__(self, why: str) -> None:
        super().__init__("the SQL server is starting", why, "ask again in a few seconds")


class QueryQueue:
    """So many statements at once; who waits for a turn takes no thread, so that nobody else has to wait.

    A statement that has become a long one goes on in one of as many other turns. Where all of those are taken
    it keeps its own until somebody waits for it.
    """

    def __init__(self, at_once: int, long_at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._at_once = at_once
        self._clock = clock
        self._free = asyncio.Semaphore(at_once)
        self._free_long = long_at_once
        self._waiting = 0
        self._over: list[Turn] = []

    @asynccontextmanager
    async def one(self, client: Waiting) -> AsyncIterator[Turn]:
        """BusyError when none is free in time; a client that has left gives up its place."""
        if self._free.locked():
            self._waiting += 1
            try:
                await self._wait(client)
            finally:
                self._waiting -= 1
        else:
            await self._free.acquire()  # at once: nobody has to make room for it
        turn = Turn(since=self._clock())
        try:
            yield turn
        finally:
            if turn.is_over:
                self._over.remove(turn)
            if turn.is_long:
                self._free_long += 1
            else:
                self._free.release()

    def look(self, turn: Turn) -> None:
        """To be called now and then while its statement runs: it may become long, or be over."""
        if turn.is_long or turn.is_over or self._clock() - turn.since < LONG_S:
            return
        if self._free_long:
            self._free_long -= 1
            self._free.release()
            turn.is_long = True
        elif self._waiting > self._ending():
            turn.over_at = self._clock()
            self._over.append(turn)

    def _ending(self) -> int:
        """How many were cancelled lately; instead of one that goes on for all that, another has to end."""
        return sum(self._clock() - (turn.over_at or 0) < LONG_S for turn in self._over)

    async def _wait(self, client: Waiting) -> None:
        waiting = asyncio.ensure_future(self._free.acquire())
        until = self._clock() + WAIT_S
        while not (await asyncio.wait({waiting}, timeout=LOOK_S))[0]:
            if self._clock() > until or await client.is_disconnected():
                if not waiting.cancel():  # it came in the last moment, and nobody takes it
                    self._free.release()
                why = f"{self._at_once} others are running since {WAIT_S:g} s"
                raise BusyError("the query was not started", why, "ask again later")


@dataclass(eq=False)
class Turn:
    """One statement's; times are by the clock of its QueryQueue, and who is over has to end the statement."""

    since: float
    is_long: bool = False
    over_at: float | None = None

    @property
    def is_over(self) -> bool:
        return self.over_at is not None


@dataclass(frozen=True)
class Client:
    """Who waits for a statement's turn; whose statement is ended waits no more."""

    asking: Waiting
    statement: Running

    async def is_disconnected(self) -> bool:
        return self.statement.left.is_set() or await self.asking.is_disconnected()


class Pool:
    """Where statements of one sort have their turns, and a thread each."""

    def __init__(self, name: str, at_once: int, long_at_once: int = 0, makes_room: bool = True) -> None:
        """`makes_room` says whether long ones leave their turns to others."""
        self.turns = QueryQueue(at_once, long_at_once)
        self.threads = ThreadPoolExecutor(at_once + long_at_once, thread_name_prefix=name)
        self.makes_room = makes_room


class Statements:
    """Computes statements in turn; `queries` counts how they end, `running` knows those that have not."""

    def __init__(
        self, followed: Callable[[], Followed], queries: Queries, running: RunningStatements
    ) -> None:
        self._followed, self._queries, self._running = followed, queries, running
        self._small = Pool("statement", AT_ONCE, LONG_AT_ONCE)
        self._large = Pool("export", EXPORTS_AT_ONCE, makes_room=False)

    async def in_turn(
        self, asking: Waiting, user: str, text: str, answer: Callable[[Running], T], endpoint: str = HTTP,
        id: str = "", is_large: bool = False,
    ) -> T:  # fmt: skip
        """What `answer` returns. BusyError, and StartingError, where it is not computed, or stopped."""
        pool = self._large if is_large else self._small
        with (
            self._queries.one(endpoint) as statement,
            self._running.one(user, text, endpoint, id) as one,
        ):
            return await self._answered(Client(asking, one), answer, statement, pool)

    def refuse_unready(self) -> None:
        """BusyError, or StartingError, where nobody knows yet what is live."""
        now = self._followed()
        if now.ready:
            return
        if now.error:
            what, remedy = "the SQL server cannot follow the lake", "see `twinlake logs sql`"
            raise BusyError(what, now.error, remedy)
        raise StartingError("it has not read yet what is live")

    async def _answered(
        self, client: Client, answer: Callable[[Running], T], statement: Statement, pool: Pool
    ) -> T:
        self.refuse_unready()
        one = client.statement
        async with pool.turns.one(client) as turn:
            statement.begins()
            one.has_begun = True
            reading = asyncio.get_running_loop().run_in_executor(pool.threads, answer, one)
            try:
                while not (await asyncio.wait({reading}, timeout=LOOK_S))[0]:
                    if pool.makes_room:
                        pool.turns.look(turn)
                    statement.has_left = statement.has_left or await client.asking.is_disconnected()
                    if turn.is_over or statement.has_left:
                        one.left.set()
            except asyncio.CancelledError:  # the server ends
                one.left.set()
                raise
            if turn.is_over and reading.exception():
                why = f"{LONG_AT_ONCE} others run longer than {LONG_S:g} s, and more wait for their turns"
                raise BusyError(STOPPED, why, "ask again later")
            try:
                return await reading
            except Exception as error:
                if not is_jvm_lost(error):
                    raise
                raise StartingError("its JVM has ended, and the supervisor starts it again") from error

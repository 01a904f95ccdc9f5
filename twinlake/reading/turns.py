"""The queue: how many statements run at once over HTTP, who waits, is long, or has to make room."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from twinlake.base.errors import BusyError
from twinlake.reading.running import Client

LONG_S = 5.0
"""What runs longer is a long statement."""
WAIT_S = 30.0
LOOK_S = 0.2
"""So often it is looked whether the client still waits, and whether a statement is a long one by now."""


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
    async def one(self, request: Client) -> AsyncIterator[Turn]:
        """BusyError when none is free in time; a client that has left gives up its place."""
        if self._free.locked():
            self._waiting += 1
            try:
                await self._wait(request)
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

    async def _wait(self, request: Client) -> None:
        waiting = asyncio.ensure_future(self._free.acquire())
        until = self._clock() + WAIT_S
        while not (await asyncio.wait({waiting}, timeout=LOOK_S))[0]:
            if self._clock() > until or await request.is_disconnected():
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

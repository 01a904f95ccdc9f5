"""Hold: a version stands still for somebody, who must renew it; one that died frees it by saying nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any


class Hold:
    """`stand` runs in the owner's thread, everything else in the holder's."""

    def __init__(self, limit_s: float) -> None:
        self.at: Future[int] = Future()
        """The position at which the version stands, once it does."""
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self._until = 0.0
        self._over = False

    def stand(self, position: int) -> None:
        """Returns when the hold was given back, or was not renewed in time."""
        with self._changed:
            if self._over or not self.at.set_running_or_notify_cancel():
                return
            self._until = time.monotonic() + self._limit_s
            self.at.set_result(position)
            while not self._over and (left := self._until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._over = True

    def refuse(self, asked: Future[Any]) -> None:
        """Tells the holder why the version never stood: its mailbox was closed."""
        error = asked.exception()
        if error and not self.at.done() and self.at.set_running_or_notify_cancel():
            self.at.set_exception(error)

    def renew(self) -> bool:
        """Whether the version has stood still until now; if so, it does for as long again."""
        with self._changed:
            now = time.monotonic()
            if self._over or now >= self._until:
                return False
            self._until = now + self._limit_s
            return True

    def give_back(self) -> None:
        """From here on the version takes steps again; one that does not stand yet never will."""
        with self._changed:
            self._over = True
            self._changed.notify()


class Held:
    """Implements `lake.open_lake.Held` for the versions of these holds."""

    def __init__(self, positions: list[dict[str, int]], holds: Sequence[Hold]) -> None:
        self.positions = positions
        self._holds = holds

    def renew(self) -> bool:
        return all([hold.renew() for hold in self._holds])

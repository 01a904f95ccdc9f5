"""Slowdown: who guesses a password waits ever longer for the answer, and only so many guess one at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twinlake.base.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_S = 8.0
FIRST_S = 0.5
FORGOTTEN_S = 600.0
MOST_NAMES = 1_000
AT_ONCE = 20
"""By one name."""


class Slowdown:
    """Counts wrong passwords by name, whatever name was given. Thread-safe.

    Who knows the password waits at most LONGEST_S, and is kept out only while many guess by the same name.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: dict[str, tuple[int, float]] = {}
        self._trying: Counter[str] = Counter()

    @contextmanager
    def trying(self, name: str) -> Iterator[float]:
        """Within it the caller waits so many seconds, then looks at the password; BusyError where too many do
        so already."""
        with self._lock:
            if self._trying[name] >= AT_ONCE:
                raise BusyError(
                    f"{name} cannot sign in right now", f"{AT_ONCE} others try to by this name",
                    "try again in a few seconds",
                )  # fmt: skip
            self._trying[name] += 1
            count, at = self._wrong.get(name, (0, 0.0))
        try:
            is_old = self._clock() - at > FORGOTTEN_S
            yield 0.0 if not count or is_old else min(LONGEST_S, FIRST_S * 2.0 ** (count - 1))
        finally:
            with self._lock:
                self._trying[name] -= 1
                if not self._trying[name]:
                    del self._trying[name]

    def was_wrong(self, name: str) -> None:
        with self._lock:
            count, at = self._wrong.pop(name, (0, 0.0))
            if self._clock() - at > FORGOTTEN_S:
                count = 0
            self._wrong[name] = (min(count + 1, 10), self._clock())
            if len(self._wrong) > MOST_NAMES:
                # what was guessed seldom, longest ago: many other names do not make anybody forget one
                del self._wrong[min(self._wrong, key=self._wrong.__getitem__)]

    def was_right(self, name: str) -> None:
        with self._lock:
            self._wrong.pop(name, None)

"""Readers who follow tables: how many there may be, how many there are, and what they were sent.

Those who come, go and are sent something do so in one event loop; a scrape reads from another thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from twinlake.base.errors import BusyError
from twinlake.metrics import catalogue
from twinlake.metrics.scrape import Scrape

MOST_READERS, OF_ONE_USER = 200, 20


class Readers:
    """All of one process."""

    def __init__(self) -> None:
        self._of = Counter[str]()
        self._sent = 0
        self._cut_off = 0

    @contextmanager
    def one(self, user: str) -> Iterator[None]:
        """BusyError where too many follow tables already, of this user or of all."""
        of_user, of_all = self._of[user], self._of.total()
        if of_user >= OF_ONE_USER or of_all >= MOST_READERS:
            raise BusyError(
                "the table was not followed",
                f"{of_all} readers follow tables, {of_user} of them by the login {user}; at most "
                f"{OF_ONE_USER} of one login may, and {MOST_READERS} of all",
                "end one, or have one reader pass the changes on",
            )  # fmt: skip
        self._of[user] += 1
        try:
            yield
        finally:
            self._of[user] -= 1

    def sent(self) -> None:
        """One event."""
        self._sent += 1

    def cut_off(self) -> None:
        """One who took nothing."""
        self._cut_off += 1

    def add(self, scrape: Scrape) -> None:
        scrape.add(catalogue.READERS, self._of.total())
        scrape.add(catalogue.READER_EVENTS, self._sent)
        scrape.add(catalogue.READERS_CUT_OFF, self._cut_off)

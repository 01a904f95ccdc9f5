"""How many records a micro-batch may have: as many as take about five seconds, by those before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

P = ParamSpec("P")

RECORDS_PER_BATCH = 200_000
FIRST_RECORDS = 20_000
"""A process that has just started computes slowly, and one that was killed in a batch begins it again."""
BATCH_SECONDS = 5.0
LEAST_RECORDS = 1_000
"""What a batch costs however small it is would else take more and more of the time."""
GROWTH = 4
"""The next batch has at most so many times the records: a few cheap ones say little about many."""


class Pace:
    """Of one topic; `next_records` is the limit of the next batch."""

    def __init__(
        self,
        most_records: int,
        batch_seconds: float = BATCH_SECONDS,
        on_batch: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`on_batch` is called with the seconds of each batch that had records."""
        self._most = most_records
        self._batch_seconds = batch_seconds
        self._on_batch = on_batch
        self._waited = 0.0
        self.next_records = min(FIRST_RECORDS, most_records)

    @contextmanager
    def timed(self, records: int) -> Iterator[None]:
        """Inside, a batch of so many records is worked on."""
        self._waited, began = 0.0, time.monotonic()
        yield
        self.after(records, time.monotonic() - began - self._waited)

    def outside(self, call: Callable[P, None]) -> Callable[P, None]:
        """The call, whose time is not that of the batch: what is committed is not begun again."""

        def called(*args: P.args, **named: P.kwargs) -> None:
            began = time.monotonic()
            call(*args, **named)
            self._waited += time.monotonic() - began

        return called

    def after(self, records: int, seconds: float) -> None:
        """So many records took so long. A small batch says of a full one only that it can be larger."""
        if records <= 0:
            return
        self._on_batch(seconds)
        fitting = round(records * self._batch_seconds / max(seconds, 0.001))
        now = self.next_records
        if seconds <= self._batch_seconds:
            now = max(now, min(fitting, now * GROWTH))
        elif records > now // GROWTH:
            now = min(now, max(fitting, now // GROWTH, LEAST_RECORDS))
        self.next_records = min(now, self._most)

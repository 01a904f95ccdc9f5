"""How many records a micro-batch may have: as many as take about five seconds, by those before it."""

from __future__ import annotations

RECORDS_PER_BATCH = 200_000
FIRST_RECORDS = 20_000
"""A process that has just started computes slowly, and one that was killed in a batch begins it again."""
BATCH_SECONDS = 5.0
GROWTH = 4
"""The next batch has at most so many times the records: a few cheap ones say little about many."""


class Pace:
    """Of one topic; `next_records` is the limit of the next batch."""

    def __init__(self, most_records: int, batch_seconds: float = BATCH_SECONDS) -> None:
        self._most = most_records
        self._batch_seconds = batch_seconds
        self.next_records = min(FIRST_RECORDS, most_records)

    def after(self, records: int, seconds: float) -> None:
        """So many records took so long. A small batch that was quick enough says nothing of a full one."""
        if records <= 0:
            return
        fitting = round(records * self._batch_seconds / max(seconds, 0.001))
        now = self.next_records
        if seconds > self._batch_seconds:
            now = min(now, max(fitting, now // GROWTH, 1))
        else:
            now = max(now, min(fitting, now * GROWTH))
        self.next_records = min(now, self._most)

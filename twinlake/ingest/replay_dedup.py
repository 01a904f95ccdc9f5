"""Who was seen near a record in time, before it or after: decides duplicates among records validated again.

What Kafka brings comes in the order of its timestamps, so that `Duplicates` looks back only, at the newest
record of an id. A record that is validated again may be older than those that have its id by now.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from twinlake.ingest.duplicates import Seen


class Nearby:
    """Of few ids, every time that one was seen on a valid record. Times in microseconds."""

    def __init__(self, window_micros: int) -> None:
        self.window = window_micros
        self._seen: dict[tuple[int, int], list[int]] = defaultdict(list)

    def add(self, seen: Seen) -> None:
        """Valid records of the log."""
        for high, low, time in zip(seen.high.tolist(), seen.low.tolist(), seen.times.tolist(), strict=True):
            self._seen[high, low].append(time)

    def judge(self, high: np.ndarray, low: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Whether each record, in log order, repeats an id; remembers none of them.

        A record is a duplicate when its id is on a valid record at most the window away, whether that was
        known before or is one of those before it here.
        """
        repeated = np.zeros(len(times), dtype=bool)
        valid: dict[tuple[int, int], list[int]] = defaultdict(list)
        rows = zip(high.tolist(), low.tolist(), times.tolist(), strict=True)
        for place, (first, second, time) in enumerate(rows):
            others = (*self._seen.get((first, second), ()), *valid.get((first, second), ()))
            repeated[place] = any(abs(time - other) <= self.window for other in others)
            if not repeated[place]:
                valid[first, second].append(time)
        return repeated

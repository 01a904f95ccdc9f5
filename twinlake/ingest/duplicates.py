"""The index of ids seen on valid records: decides duplicates in log order, within the deduplication window.

An id is known by 128 bits of hash. The index is a list of chunks sorted by the first 64 of them, merged as
they become many (a log-structured merge tree in numpy): looking up 200,000 ids costs a binary search each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

NEVER = int(np.iinfo(np.int64).min)
NOTHING_YET = np.iinfo(np.int64).max
SLACK = 300_000_000  # microseconds that partitions may lie apart before the log is asked again
EVICTIONS = 32  # in a window
GROWTH = 4  # a chunk is merged into the one before it once that is less than four times as large


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Ids and when each was seen; sorted by `high`. Times in microseconds."""

    high: np.ndarray
    low: np.ndarray
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.high)

    @classmethod
    def nobody(cls) -> Seen:
        none = np.empty(0, dtype=np.int64)
        return cls(high=none, low=none, times=none)

    def take(self, which: np.ndarray) -> Seen:
        """Some of them, by mask or index."""
        return Seen(high=self.high[which], low=self.low[which], times=self.times[which])


class Duplicates:
    """Who was seen when. Not safe between threads: one topic, one owner.

    `load(t)` reads from the log who was seen at `t` or later. It is asked whenever a record looks further
    back than what is remembered: at first, after a restart with a longer window, and when the broker's clock
    has stepped back. So what is remembered decides how fast a record is judged, and never how.
    """

    def __init__(self, window_micros: int, load: Callable[[int], Seen]) -> None:
        self.window = window_micros
        self.since = NOTHING_YET  # everybody who was seen from then on is in the chunks
        self.chunks: list[Seen] = []
        self._evicted = NEVER
        self._load = load

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)

    def remember(self, since: int, chunks: Iterable[Seen], more: Sequence[Seen]) -> None:
        """Everybody who was seen from `since` on, as another one knew them: in its chunks, and who came
        after, in no order."""
        self.since, self.chunks = since, [chunk for chunk in chunks if len(chunk)]
        if more:
            columns = ([getattr(one, name) for one in more] for name in ("high", "low", "times"))
            self.add(*map(np.concatenate, columns))

    def judge(self, high: np.ndarray, low: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Whether each record, in log order, repeats an id; remembers none of them.

        A record is a duplicate when its id was on an earlier record that was none itself, at most the
        deduplication window before. So a chain of duplicates does not extend the deduplication window.
        """
        if len(times):
            self._look_back(int(times.min()) - self.window)
        order = np.argsort(high, kind="stable")
        sorted_ids = Seen(high=high, low=low, times=times).take(order)
        last = self._last_seen(sorted_ids.high, sorted_ids.low)
        repeated = np.zeros(len(order), dtype=bool)
        known = last != NEVER
        repeated[known] = sorted_ids.times[known] - last[known] <= self.window

        same = sorted_ids.high[1:] == sorted_ids.high[:-1]
        in_run = np.zeros(len(order), dtype=bool)
        in_run[1:] |= same
        in_run[:-1] |= same
        self._judge_runs(sorted_ids, np.flatnonzero(in_run), last, repeated)

        result = np.empty(len(order), dtype=bool)
        result[order] = repeated
        return result

    def _look_back(self, to_micros: int) -> None:
        if to_micros < self.since:
            found = self._load(to_micros)
            self.chunks, self.since, self._evicted = [], NOTHING_YET, NEVER
            self.add(found.high, found.low, found.times)
            self.since = to_micros  # not before: whoever finds no memory to sort them knows nobody

    def _judge_runs(self, ids: Seen, places: np.ndarray, last: np.ndarray, repeated: np.ndarray) -> None:
        """Ids that occur more than once in the batch, one record after the other."""
        seen: dict[tuple[int, int], int] = {}
        columns = (places, ids.high[places], ids.low[places], ids.times[places], last[places])
        for place, high, low, time, before in zip(*(column.tolist() for column in columns), strict=True):
            newest = seen.get((high, low), before)
            repeated[place] = newest != NEVER and time - newest <= self.window
            if not repeated[place]:
                seen[high, low] = max(time, newest)

    def _last_seen(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        last = np.full(len(high), NEVER, dtype=np.int64)
        for chunk in self.chunks:
            places = np.searchsorted(chunk.high, high)
            open_ones = np.arange(len(high))
            while len(open_ones):
                inside = places[open_ones] < len(chunk)
                open_ones = open_ones[inside]
                at = places[open_ones]
                same = chunk.high[at] == high[open_ones]
                open_ones, at = open_ones[same], at[same]
                hit = chunk.low[at] == low[open_ones]
                found = open_ones[hit]
                last[found] = np.maximum(last[found], chunk.times[at[hit]])
                places[open_ones] += 1
        return last

    def add(self, high: np.ndarray, low: np.ndarray, times: np.ndarray) -> None:
        """Remembers valid records."""
        if not len(high):
            return
        order = np.argsort(high, kind="stable")
        self.chunks.append(Seen(high=high, low=low, times=times).take(order))
        while len(self.chunks) > 1 and len(self.chunks[-2]) < GROWTH * len(self.chunks[-1]):
            self.chunks[-2:] = [_merge(*self.chunks[-2:])]

    def evict(self, now_micros: int) -> None:
        """Forgets whom no record of that time asks for; a chunk is rewritten once half of it is old.

        It looks at every id, and small batches come often: not before a part of the window has gone by.
        """
        before_micros = now_micros - self.window - SLACK
        if before_micros - self._evicted < self.window // EVICTIONS:
            return
        self._evicted = before_micros
        self.since = max(self.since, before_micros)
        kept = []
        for chunk in self.chunks:
            young = chunk.times >= before_micros
            share = np.count_nonzero(young) / len(chunk)
            if share > 0.5:
                kept.append(chunk)
            elif share:
                kept.append(chunk.take(young))
        self.chunks = kept


def _merge(older: Seen, newer: Seen) -> Seen:
    """Both, sorted; numpy's stable sort is a merge on two sorted runs."""
    high = np.concatenate([older.high, newer.high])
    order = np.argsort(high, kind="stable")
    return Seen(
        high=high[order],
        low=np.concatenate([older.low, newer.low])[order],
        times=np.concatenate([older.times, newer.times])[order],
    )

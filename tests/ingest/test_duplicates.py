"""The index of ids against a plain dictionary, over any cut of any history, by clocks that jump."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.ingest import duplicates
from twinlake.ingest.duplicates import EVICTIONS, SLACK, Duplicates, Seen

HORIZON = 10
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 100)), max_size=60)


def plain(records: list[tuple[int, int, int]]) -> list[bool]:
    """A record repeats an id that was on a record which repeated none, at most the horizon before."""
    newest: dict[tuple[int, int], int] = {}
    found = []
    for high, low, time in records:
        repeats = (high, low) in newest and time - newest[high, low] <= HORIZON
        if not repeats:
            newest[high, low] = time
        found.append(repeats)
    return found


class Index:
    """An index, and the log that it asks: every valid record so far."""

    def __init__(self, horizon: int = HORIZON) -> None:
        self.log: list[tuple[int, int, int]] = []
        self.asked: list[int] = []
        self.duplicates = Duplicates(horizon, self._load)

    def _load(self, since: int) -> Seen:
        self.asked.append(since)
        return seen([record for record in self.log if record[2] >= since])

    def judge(self, records: list[tuple[int, int, int]]) -> list[bool]:
        batch = seen(records)
        repeats = self.duplicates.judge(batch.high, batch.low, batch.times)
        self.duplicates.add(*(column[~repeats] for column in (batch.high, batch.low, batch.times)))
        self.log += [record for record, again in zip(records, repeats.tolist(), strict=True) if not again]
        return repeats.tolist()


def seen(records: list[tuple[int, int, int]]) -> Seen:
    high, low, times = np.array(records, dtype=np.int64).reshape(-1, 3).T
    return Seen(high=high, low=low, times=times)


@given(RECORDS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 200)), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_cut_judges_as_one_after_the_other_whatever_is_forgotten_and_wherever_the_clock_jumps(
    records: list[tuple[int, int, int]], cuts: list[tuple[int, int]]
) -> None:
    index = Index()
    edges = sorted({(0, 0), (len(records), 0), *((cut % (len(records) + 1), now) for cut, now in cuts)})
    found: list[bool] = []
    for (start, now), (end, _) in pairwise(edges):
        index.duplicates.evict(now + SLACK)
        found += index.judge(records[start:end])

    assert found == plain(records)


def test_a_log_that_could_not_be_read_is_asked_again() -> None:
    index, found = Index(), []
    index.judge([(1, 1, 0)])
    index.duplicates.evict(100 + SLACK)
    index.duplicates._load = lambda since: seen(found[0])  # fails: nothing is there yet
    with pytest.raises(IndexError):
        index.judge([(1, 1, 5)])
    found.append(index.log)

    assert index.judge([(1, 1, 5)]) == [True]


@pytest.mark.parametrize("where", ["the sort", "a merge"])
def test_who_finds_no_memory_for_what_is_known_forgets_nobody(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def no_memory(*given: object) -> None:
        raise MemoryError

    index = Index()
    index.judge([(n, n, 0) for n in range(3)])
    if where == "the sort":
        index.duplicates.evict(100 + SLACK)
    failing = Seen if where == "the sort" else duplicates
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(failing, "take" if where == "the sort" else "_merge", no_memory)
        index.judge([(4, 4, 5)])

    assert index.judge([(1, 1, 5), (9, 9, 5)]) == [True, False]


def test_the_index_is_bounded_by_the_horizon_and_asks_the_log_once() -> None:
    index = Index()
    for n in range(200):
        index.judge([(n * 100 + i, n * 100 + i, n) for i in range(100)])
        index.duplicates.evict(n + SLACK)

    assert len(index.duplicates) <= 2 * (HORIZON + 1) * 100
    assert len(index.duplicates.chunks) < 10
    assert index.asked == [-HORIZON]


def test_after_the_clock_has_stepped_back_for_good_the_index_is_bounded_too() -> None:
    horizon = 10 * EVICTIONS
    index, back = Index(horizon), 100 * SLACK
    index.judge([(1, 1, back)])
    index.duplicates.evict(back + SLACK)
    for n in range(10 * horizon):
        index.judge([(n + 2, n + 2, n)])
        index.duplicates.evict(n + SLACK)

    assert len(index.duplicates) <= 3 * horizon
    assert len(index.asked) == 2

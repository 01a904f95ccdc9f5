"""The index of ids against a plain dictionary, over any cut of any history."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ingest.duplicates import Duplicates

HORIZON = 10
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 6)), max_size=60)


def plain(records: list[tuple[int, int, int]]) -> list[bool]:
    """A record repeats an id that was on a record which repeated none, at most the horizon before."""
    first: dict[tuple[int, int], int] = {}
    found = []
    for high, low, time in records:
        repeats = (high, low) in first and time - first[high, low] <= HORIZON
        if not repeats:
            first[high, low] = time
        found.append(repeats)
    return found


def judged(records: list[tuple[int, int, int]], cuts: list[int]) -> list[bool]:
    """The same by the index, in batches, forgetting what is too old after each."""
    index = Duplicates(HORIZON)
    edges = sorted({0, len(records), *(cut % (len(records) + 1) for cut in cuts)})
    found: list[bool] = []
    for start, end in pairwise(edges):
        high, low, times = np.array(records[start:end], dtype=np.int64).T
        repeats = index.judge(high, low, times)
        index.add(high[~repeats], low[~repeats], times[~repeats])
        index.evict(int(times.max()) - HORIZON)
        found += repeats.tolist()
    return found


@given(RECORDS, st.lists(st.integers(0, 60), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_cut_judges_as_one_after_the_other(steps: list[tuple[int, int, int]], cuts: list[int]) -> None:
    times = np.cumsum([step for _, _, step in steps]).tolist()
    records = [(high, low, time) for (high, low, _), time in zip(steps, times, strict=True)]

    assert judged(records, cuts) == plain(records)


def test_the_index_is_bounded_by_the_horizon() -> None:
    index = Duplicates(HORIZON)
    for n in range(200):
        ids = np.arange(n * 100, n * 100 + 100, dtype=np.int64)
        index.add(ids, ids, np.full(100, n, dtype=np.int64))
        index.evict(n - HORIZON)

    assert len(index) <= 2 * (HORIZON + 1) * 100
    assert len(index.chunks) < 10

"""Duplicates among records that are judged again: by distance in time, to both sides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinlake.ingest.duplicates import Seen
from twinlake.ingest.replay_dedup import Nearby

HORIZON = 10
RECORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=20)


def seen(records: list[tuple[int, int]]) -> Seen:
    """(id, time) pairs; half of an id's hash is the same for all."""
    ids, times = (np.array([one[at] for one in records], dtype=np.int64) for at in (0, 1))
    return Seen(high=np.zeros(len(records), dtype=np.int64), low=ids, times=times)


@given(known=RECORDS, asked=RECORDS)
def test_a_record_repeats_an_id_that_is_at_most_the_horizon_away_on_either_side(
    known: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    nearby = Nearby(HORIZON)
    nearby.add(seen(known))
    records = seen(asked)

    found = nearby.judge(records.high, records.low, records.times)

    valid = list(known)
    for (id, time), repeated in zip(asked, found.tolist(), strict=True):
        assert repeated == any(id == other and abs(time - at) <= HORIZON for other, at in valid)
        if not repeated:
            valid.append((id, time))
    assert nearby.judge(records.high, records.low, records.times).tolist() == found.tolist()

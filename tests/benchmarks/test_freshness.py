"""Freshness counts every record from when it was made to the first answer that counts it."""

from __future__ import annotations

import numpy as np

from benchmarks.freshness import delays


def test_a_record_waits_until_the_first_answer_that_counts_it() -> None:
    waits = delays(moments=[0.0, 1.0], totals=[2, 4], arrived=[0.5, 1.5, 3.0], seen=[1, 2, 4], skip=0)

    assert waits.tolist() == [0.5, 1.5, 2.0, 2.0]


def test_a_record_that_is_never_counted_waits_for_ever_and_the_lead_does_not_count() -> None:
    waits = delays(moments=[0.0, 1.0], totals=[1, 3], arrived=[2.0], seen=[2], skip=1)

    assert waits.tolist() == [1.0, np.inf]

"""Which of many small pieces are written together: the newest ones, and older ones while they are no giants.

A log-structured merge: over n pieces every byte is rewritten about log(n) times, and about log(n) are left.
"""

from __future__ import annotations

from collections.abc import Sequence

GROWTH = 2
"""An older piece joins when it is at most this many times as large as everything newer."""


def first_to_merge(sizes: Sequence[int]) -> int:
    """The index of the oldest piece to take, with all newer ones; `len(sizes)` where there are none."""
    held, first = 0, len(sizes)
    for index in reversed(range(len(sizes))):
        if first < len(sizes) and sizes[index] > GROWTH * held:
            break
        held += sizes[index]
        first = index
    return first

"""Records close to each other in time, and what sessions and hopping windows show of them by definition."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.laws import oracle
from tests.laws.cuts import Shown
from tests.laws.histories import START, History, Record
from tests.laws.tables import WINDOWED
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.windows import Hopping, window_from_json

GAP = timedelta(seconds=20)
SIZE, EVERY = timedelta(seconds=150), timedelta(seconds=30)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHARED: dict[str, Any] = {
    "inputs": ("made",), "columns": WINDOWED.columns, "keys": ("history", "key"),
    "measures": WINDOWED.measures,
}  # fmt: skip
VISITS = Sessions(name="visits", on="at", gap="20 seconds", grid="1 minute", **_SHARED)
"""Cells of a minute cut many of its sessions; records are 10 s apart, so that many gaps are exactly 20 s."""
HOURLY = replace(VISITS, name="hourly", grid="1 hour")
"""The same sessions with few cuts: states of different blocks lie within each other."""
SLIDING = Aggregate(
    name="sliding", window=Hopping(on="at", size="150 seconds", every="30 seconds"), **_SHARED
)
BEFORE = replace(
    SLIDING,
    window=window_from_json({"kind": "hopping", "on": "at", "size": "150 seconds", "every": "30 seconds"}),
)
"""The same as a version of before stores it: each state in every window."""
UNEVEN_EVERY = timedelta(seconds=60)
UNEVEN = replace(SLIDING, window=Hopping(on="at", size="150 seconds", every="60 seconds"))
"""Each record is in two windows or in three, and tiles are half a minute long."""


def told(*blocks: tuple[int | None, ...]) -> History:
    """Records of one key, block after block, so many seconds after START; None is a record without a time."""
    times = [(number, at) for number, block in enumerate(blocks) for at in block]
    records = (
        Record(
            record_id=(0, 0, offset), key="a", at=None if at is None else START + timedelta(seconds=at),
            amount=None, wide=None, ratio=None, words=None, gone=None,
        )
        for offset, (_, at) in enumerate(times)
    )  # fmt: skip
    return History(records=tuple(records), places=tuple((block, block % 3, 0) for block, _ in times))


NESTED = told((0, 20, 40), (10,), (60,))
"""The state of the second block lies within that of the first, which reaches to the third."""


def activity(seed: int, count: int) -> list[History]:
    """Histories around the end of a cell, half of them around 1970, of up to five blocks; and NESTED."""
    draw = random.Random(seed)
    return [NESTED, *(_history(draw, draw.choice((START, EPOCH))) for _ in range(count))]


def _history(draw: random.Random, about: datetime) -> History:
    """Each block is a burst or a stray record, so that states lie within and beside each other."""
    keys = draw.choice((("a",), ("a", "a", "b", None)))
    merged_of, base_of = [draw.randrange(3) for _ in range(5)], [draw.randrange(2) for _ in range(3)]
    held = []
    for block in range(draw.randrange(2, 6)):
        key, at = draw.choice(keys), about + timedelta(seconds=10 * draw.randrange(-12, 6))
        for _ in range(draw.choice((1, 1, 2, 6))):
            at += timedelta(seconds=draw.choice((0, 20, 20, 20, 20, 40)), microseconds=draw.random() < 0.05)
            place = (block, merged_of[block], base_of[merged_of[block]])
            held.append((_record(draw, key, at), place))
    draw.shuffle(held)
    numbered = [replace(one, record_id=(0, n % 2, n)) for n, (one, _) in enumerate(held)]
    return History(records=tuple(numbered), places=tuple(place for _, place in held))


def _record(draw: random.Random, key: str | None, at: datetime) -> Record:
    return Record(
        record_id=(0, 0, 0), key=key, at=None if draw.random() < 0.05 else at, gone=None,
        amount=draw.choice((None, Decimal(draw.randrange(-300, 300)) / 100)),
        wide=draw.choice((None, Decimal("1.50"))),
        ratio=draw.choice((None, 0.1, -0.1, 1e15, -1e15, 3.3)),
        words=draw.choice((None, "", "x", "x y")),
    )  # fmt: skip


def sessions(records: Iterable[Record]) -> Shown:
    """By key and first time: one session ends where the next record comes more than the gap later."""
    timed: dict[Any, list[tuple[datetime, Record]]] = defaultdict(list)
    for record in records:
        if record.at is not None:
            timed[record.key].append((record.at, record))
    found: Shown = {}
    for key, held in timed.items():
        held.sort(key=lambda one: one[0])
        session = [held[0]]
        for last, one in zip(held, [*held[1:], None], strict=True):
            if one is not None and one[0] - last[0] <= GAP:
                session.append(one)
                continue
            values = oracle.measures([record for _, record in session])
            found[key, session[0][0]] = {"session_end": last[0], **values}
            session = [one] if one is not None else []
    return found


def uneven_windows(records: Iterable[Record]) -> Shown:
    return windows(records, UNEVEN_EVERY)


def windows(records: Iterable[Record], every: timedelta = EVERY) -> Shown:
    """By key and start: of each start that is a multiple of `every`, the records in [start, start + SIZE)."""
    held: dict[tuple[Any, datetime], list[Record]] = defaultdict(list)
    for record in records:
        if record.at is None:
            continue
        start = EPOCH + (record.at - EPOCH) // every * every
        while record.at < start + SIZE:
            held[record.key, start].append(record)
            start -= every
    return {key: {"window_end": key[1] + SIZE, **oracle.measures(records)} for key, records in held.items()}

"""Pairs of histories, the joins that laws are asked about, and the plain-Python oracle of what they show.

All times are moved to 1970-01-01, so that some are before it and some in its first cell.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.laws.histories import LEVELS, START, History, Record, generated
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.store import Store

BEFORE, AFTER = timedelta(seconds=37), timedelta(seconds=74)
"""Generated times are multiples of 37 seconds apart: some pairs are exactly at a bound."""
CELL = timedelta(minutes=1)
EPOCH_DAYS = 20_454
"""From 1970-01-01 to START."""
_COLUMNS = {name: name for name in ("history", *LEVELS, "key", "amount", "words", "gone")}
_AT = {"at": f"at - INTERVAL '{EPOCH_DAYS}' DAY"}
_KEPT = Store(keys=("history", "key"), on="at", cell="1 minute")
ASKS = Events(
    name="asks", inputs=("made",), columns=_COLUMNS | _AT,
    store=replace(_KEPT, back="37 seconds", ahead="74 seconds"),
)  # fmt: skip
HITS = Events(
    name="hits", inputs=("made",), where="words IS NULL OR words <> 'x'", columns=_COLUMNS | _AT,
    store=replace(_KEPT, back="74 seconds", ahead="37 seconds"),
)  # fmt: skip
TABLES = {table.name: table for table in (ASKS, HITS)}
SHOWN = {"asked": "left.words", "hit": "right.words", "amount": "coalesce(right.amount, 0.00)"}
NEAR = {
    how: IntervalJoin(
        name=f"near_{how}", left="asks", right="hits", on=("history", "key"), how=how,
        before="37 seconds", after="74 seconds", columns=SHOWN,
    ).bound(TABLES)
    for how in IntervalJoin.hows
}  # fmt: skip
AS_OF = {
    how: AsOfJoin(
        name=f"as_of_{how}", left="asks", right="hits", on=("history", "key"), how=how, delete_when="gone",
        columns=SHOWN,
    ).bound(TABLES)
    for how in AsOfJoin.hows
}  # fmt: skip

Coordinate = tuple[int, int, int] | None
Joined = tuple[Any, ...]
"""Key, the three columns of SHOWN, and both record ids."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two histories, each up to a position of its own."""

    left: History
    right: History


def pairs(count: int, seed: int) -> list[Pair]:
    """So many pairs, at any pair of positions; each side was cut and merged in a way of its own."""
    draw, pool = random.Random(seed), generated(150)
    return [Pair(left=_history(pool, draw), right=_history(pool, draw)) for _ in range(count)]


def _history(pool: Sequence[History], draw: random.Random) -> History:
    """Some generated records, met by others: few keys and times, each record at a record id of its own."""
    some = [
        drawn
        for history in draw.choices(pool, k=3)
        for drawn in zip(history.records, history.places, strict=True)
    ]
    records = [
        replace(
            record,
            record_id=(draw.randint(0, 1), draw.randint(0, 1), offset),
            key=draw.choice(["a", "a", "b", "", None]),
            at=draw.choice([None, *(START + timedelta(seconds=37 * step) for step in range(-4, 5))]),
        )
        for offset, (record, _) in enumerate(some)
    ]
    end = len(some) if draw.random() < 0.5 else draw.randint(0, len(some))
    return History(records=tuple(records[:end]), places=tuple(place for _, place in some[:end]))


def near(pair: Pair, how: str) -> Counter[Joined]:
    """Every pair of records, one after the other."""
    rights = [record for record in pair.right.records if record.words != "x"]
    found: list[Joined] = []
    met: set[int] = set()
    for left in pair.left.records:
        partners = [
            (number, right)
            for number, right in enumerate(rights)
            if _same_key(left, right)
            and left.at is not None
            and right.at is not None
            and -BEFORE <= right.at - left.at <= AFTER
        ]
        met.update(number for number, _ in partners)
        found += [_row(left, right) for _, right in partners]
        if not partners and how != "inner":
            found.append(_row(left, None))
    if how == "full":
        found += [_row(None, right) for number, right in enumerate(rights) if number not in met]
    return Counter(found)


def as_of(pair: Pair, how: str) -> Counter[Joined]:
    """For each left record the last that was valid, and nothing where that is a delete."""
    found: list[Joined] = []
    for left in pair.left.records:
        valid = [
            right
            for right in pair.right.records
            if right.words != "x" and _same_key(left, right) and _is_before(right.at, left.at)
        ]
        last = max(valid, key=lambda right: (right.at or START, right.record_id), default=None)
        if last is not None and not last.gone:
            found.append(_row(left, last))
        elif how == "left":
            found.append(_row(left, None))
    return Counter(found)


def cells(record: Record, back: timedelta, ahead: timedelta) -> Iterator[tuple[datetime, bool]]:
    """Where a table keeps the record: the start of each cell, and whether it is its own."""
    if record.at is None:
        yield _moved(START), True
        return
    start = START + (record.at - START) // CELL * CELL
    for number in range(-10, 11):
        cell = start + number * CELL
        if cell <= record.at + ahead and record.at - back < cell + CELL:
            yield _moved(cell), number == 0


def rows(found: Sequence[Any], side: str, count: int) -> list[Counter[Joined]]:
    """What a view shows for each of `count` pairs, of those that were cut or of the whole ones."""
    shown: list[Counter[Joined]] = [Counter() for _ in range(count)]
    for row in found:
        index, of = row["history"].split("/")
        if of == side:
            ends = (_coordinate(row, "left"), _coordinate(row, "right"))
            shown[int(index)][(row["key"], row["asked"], row["hit"], row["amount"], *ends)] += 1
    return shown


def _coordinate(row: Any, side: str) -> Coordinate:
    found = tuple(row[f"_{side}_{name}"] for name in ("epoch", "partition", "offset"))
    return None if found[0] is None else found  # type: ignore[return-value]


def _row(left: Record | None, right: Record | None) -> Joined:
    some = left or right
    assert some is not None
    amount = right.amount if right and right.amount is not None else 0
    return (
        some.key, left and left.words, right and right.words, amount,
        left and left.record_id, right and right.record_id,
    )  # fmt: skip


def _same_key(left: Record, right: Record) -> bool:
    return left.key is not None and left.key == right.key


def _is_before(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one <= other


def _moved(moment: datetime) -> datetime:
    return moment - timedelta(days=EPOCH_DAYS)

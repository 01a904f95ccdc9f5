"""The plain-Python oracle: what each table shows for a history, by definition and without merging."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from tests.laws.histories import LIMIT, START, Record

_EXACT = Context(prec=80)
MINUTE = timedelta(minutes=1)
FILTERED = Decimal("1.00")
"""Rows with this amount stay in no table whose `where` says so."""


def total(values: Iterable[Decimal | None]) -> Decimal | None:
    """NULL without values, or when the positive or negative ones alone leave decimal(38, 2)."""
    known = [value for value in values if value is not None]
    up = down = Decimal(0)
    for value in known:
        if value > 0:
            up = _EXACT.add(up, value)
        else:
            down = _EXACT.add(down, value)
    return _EXACT.add(up, down) if known and up < LIMIT and -LIMIT < down else None


def mean(values: Iterable[Decimal | None]) -> Decimal | None:
    """Half up to six decimals."""
    known = [value for value in values if value is not None]
    sum_ = total(known)
    if sum_ is None:
        return None
    exact = _EXACT.divide(sum_, Decimal(len(known)))
    result = exact.quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP, context=_EXACT)
    return result if result.copy_abs() < Decimal(10) ** 32 else None


def window_of(at: datetime) -> datetime:
    """The start of the minute, before 1970 too."""
    return START + (at - START) // MINUTE * MINUTE


def measures(records: list[Record]) -> dict[str, Any]:
    """Every measure over the records of one group."""
    amounts = [r.amount for r in records if r.amount is not None]
    ratios = [r.ratio for r in records if r.ratio is not None]
    return {
        "n": len(records),
        "n_amount": len(amounts),
        "sales": total(amounts),
        "average": mean(amounts),
        "smallest": min(amounts, default=None),
        "largest": max(amounts, default=None),
        "wide": total(r.wide for r in records),
        "wide_average": mean(r.wide for r in records),
        "ratio": sum(ratios) if ratios else None,
        "ratio_size": sum(map(abs, ratios)),
        "ratio_average": sum(ratios) / len(ratios) if ratios else None,
        "ratio_average_size": sum(map(abs, ratios)) / len(ratios) if ratios else 0,
        "first_word": min((r.words for r in records if r.words is not None), default=None),
        "distinct": len({r.words for r in records if r.words is not None}),
    }


def aggregate(records: Iterable[Record], *, windowed: bool) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By key (and minute); without a time there is no window. The amount FILTERED is left out."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.amount == FILTERED:
            continue
        if not windowed:
            groups[record.key,].append(record)
        elif record.at is not None:
            groups[record.key, window_of(record.at)].append(record)
    return {key: measures(group) for key, group in groups.items()}


def words(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """How often each word occurs: one row per element."""
    counts: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(lambda: {"n": 0})
    for record in records:
        for word in record.words.split(" ") if record.words is not None else []:
            counts[word,]["n"] += 1
    return dict(counts)


def latest(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The greatest by (time, record id) per key, NULL before every time; a deleting winner hides its key."""
    best: dict[Any, tuple[Any, Record]] = {}
    for record in records:
        order = (record.at is not None, record.at or START, record.record_id)
        if record.key not in best or order > best[record.key][0]:
            best[record.key] = (order, record)
    return {
        (key,): {"at": record.at, "amount": record.amount, "words": record.words}
        for key, (_, record) in best.items()
        if not record.gone
    }


def top_rows(
    records: Iterable[Record], *, rows: int, by_time: bool = True
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By key and place the greatest by (time, record id), NULL before every time; or by record id alone."""
    of_key: dict[Any, list[Record]] = {}
    for record in records:
        of_key.setdefault(record.key, []).append(record)
    found = {}
    for key, group in of_key.items():
        group.sort(key=lambda one: one.record_id, reverse=True)
        if by_time:  # a stable sort: those of one time stay as they are
            timed = sorted((one for one in group if one.at), key=lambda one: one.at or START, reverse=True)
            group = timed + [one for one in group if not one.at]
        for place, record in enumerate(group[:rows], start=1):
            found[key, place] = {"at": record.at, "amount": record.amount, "words": record.words}
    return found


def versions(
    records: Iterable[Record], stamp: Callable[[Record], datetime] | None = None
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By key and begin the texts that were valid in a row, by the record's time; those without one are left
    out. With a `stamp`, Kafka's time of a record, by the log."""
    of_key: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        of_key[record.key].append(record)
    found = {}
    for key, group in of_key.items():
        times = _stamped(group, stamp) if stamp else [(one.at, one) for one in group if one.at]
        times.sort(key=lambda one: (one[0], one[1].record_id))
        begun: datetime | None = None
        shown: tuple[str | None] | None = None
        for at, record in dict(times).items():  # of one time the last
            row = None if record.gone else (record.words,)
            if row != shown:
                if shown:
                    found[key, begun] |= {"valid_to": at, "is_current": False}
                if row:
                    found[key, at] = {"words": row[0], "valid_to": None, "is_current": True}
                begun, shown = at, row
    return found


def _stamped(records: list[Record], stamp: Callable[[Record], datetime]) -> list[tuple[datetime, Record]]:
    """Each with the greatest stamp of those of its partition that are not after it in the log."""
    return [
        (max(stamp(one) for one in records
             if one.record_id[1] == record.record_id[1] and one.record_id <= record.record_id), record)
        for record in records
    ]  # fmt: skip

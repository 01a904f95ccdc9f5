"""The table with every measure that has entry rows, and what it shows by definition, without merging."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.laws.histories import LEVELS, Record
from tests.laws.oracle import FILTERED, window_of
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.windows import Tumbling

ODDS = (math.nan, -0.0, 0.0, math.inf, -math.inf, 2.5, -7.25, 1e-300, 1.0, None)
"""Doubles that are told apart, ordered or added up in unusual ways."""
_ODD = ", ".join("CAST(NULL AS DOUBLE)" if one is None else f"double('{one}')" for one in ODDS)
QS = (0.0, 0.3, 0.5, 0.95, 1.0)

ENTRIES = Aggregate(
    name="entries", inputs=("made",), where="amount IS NULL OR amount <> 1.00",
    columns={
        **{name: name for name in ("history", *LEVELS, "key", "at", "amount", "words")},
        "odd": f"element_at(array({_ODD}), 1 + pmod(CAST(amount * 100 AS INT), {len(ODDS)}))",
    },
    keys=("history", "key"), window=Tumbling(on="at", size="1 minute"),
    measures={
        "n": Count(), "middle": Quantile("amount", 0.5), "sales": Sum("amount"),
        "spread": Quantile("amount", QS), "odd_spread": Quantile("odd", QS), "often": TopK("words", 2),
        "sold": TopK("words", 2, by="amount"),
        "odd_often": TopK("odd", 3), "exact": CountDistinct("words", exact=True),
        "sketched": CountDistinct("words"), "odds": CountDistinct("odd", exact=True),
        "first": TopK("at", 1),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Near:
    """What is within 1 % of a value, or, where the neighbours of the place have two signs, of the larger."""

    exact: float
    slack: float

    def holds(self, found: Any) -> bool:
        if not math.isfinite(self.exact):
            return repr(found) == repr(self.exact)
        return isinstance(found, float) and abs(found - self.exact) <= self.slack * 1.0000001


def odd_of(record: Record) -> float | None:
    return None if record.amount is None else ODDS[int(record.amount * 100) % len(ODDS)]


def quantile(values: Iterable[Any], q: float) -> Near | None:
    """Between the two values around the place, in a straight line; NaN is the greatest."""
    held = sorted(map(float, values), key=lambda one: (math.isnan(one), 0.0 if math.isnan(one) else one))
    if not held:
        return None
    place = (len(held) - 1) * q
    low, high = held[math.floor(place)], held[math.ceil(place)]
    if low == high or place == math.floor(place):
        return Near(low + 0.0, abs(low) / 100)
    share = place - math.floor(place)
    exact = low * (1 - share) + high * share
    return Near(exact, (abs(exact) if low * high > 0 else max(abs(low), abs(high))) / 100)


def top(pairs: Iterable[tuple[Any, Any]], most: int) -> list[tuple[Any, Any]]:
    """The greatest sums, of equal ones the smaller item, NaN the greatest item; items by their text."""
    sums: dict[str, Any] = {}
    items: dict[str, Any] = {}
    for item, weight in pairs:
        if item is not None and weight is not None:
            name = text(item)
            items[name] = item
            sums[name] = sums.get(name, 0) + weight

    def order(name: str) -> tuple[Any, ...]:
        nan = name == "nan"
        return (-sums[name], nan, 0 if nan else items[name])

    return [(name, sums[name]) for name in sorted(sums, key=order)[:most]]


def text(value: Any) -> str:
    """The same for what is one item: -0.0 is 0.0."""
    if isinstance(value, datetime):
        return str(value.timestamp())
    return str(value + 0.0) if isinstance(value, float) else str(value)


def shown(records: list[Record]) -> dict[str, Any]:
    amounts = [r.amount for r in records if r.amount is not None]
    odds = [odd for odd in map(odd_of, records) if odd is not None]
    words = [r.words for r in records if r.words is not None]
    return {
        "n": len(records),
        "sales": sum(amounts, Decimal(0)) if amounts else None,
        "middle": quantile(amounts, 0.5),
        "spread": [quantile(amounts, q) for q in QS] if amounts else None,
        "odd_spread": [quantile(odds, q) for q in QS] if odds else None,
        "often": top(((r.words, 1) for r in records), 2),
        "sold": top(((r.words, r.amount) for r in records), 2),
        "odd_often": top(((odd, 1) for odd in odds), 3),
        "exact": len(set(words)),
        "sketched": len(set(words)),
        "odds": len(Counter(map(text, odds))),
        "first": top(((r.at, 1) for r in records), 1),
    }


def expected(
    records: Iterable[Record], *, windowed: bool, minutes: int = 1
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By key (and window of so many minutes, one beginning with each); the amount FILTERED is left out, and
    without a time there is no window."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.amount == FILTERED:
            continue
        if not windowed:
            groups[(record.key,)].append(record)
        elif record.at is not None:
            for before in range(minutes):
                groups[record.key, window_of(record.at) - timedelta(minutes=before)].append(record)
    return {key: shown(group) for key, group in groups.items()}


def plain(found: Any) -> Any:
    """A column of the view in the oracle's form."""
    if isinstance(found, list):
        return [(text(one[0]), one[1]) if isinstance(one, tuple) else one for one in found]
    return found


def agrees(found: Any, expected: Any) -> bool:
    if isinstance(expected, Near):
        return expected.holds(found)
    if isinstance(expected, list) and expected and not isinstance(expected[0], tuple):
        return len(found) == len(expected) and all(map(agrees, found, expected))
    return bool(found == expected)

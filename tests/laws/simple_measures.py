"""The oracle of the measures that need no rows beside their state, and the histories that try them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as how
from hypothesis import strategies as st

from tests.laws.histories import LEVELS, START, History, Record, histories
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum

NAN, INF = math.nan, math.inf
PALETTES: tuple[tuple[float | None, ...], ...] = (
    (None, 0.1, -0.1, 3.3, 1e15),
    (None, 1e15, 1e15 + 1, 1e15 + 2, 1e15 + 3.5),
    (-0.0, 0.0),
    (None, 0.1),
    (NAN, INF, -INF, -0.0, 0.0, 1.5),
    (None, INF, -INF, 2.0),
    (1e308, -1e308, 1.7e308, 5.0),
    (1e308, -1e308, INF, 5.0, None),
    (1e-170, 3e-165, -2e-160, 1e-158, 0.0),
    (1e147, 4e147, -1e147, 1.0),
)
WIDES = (
    (None, Decimal("10000000000000000.01"), Decimal("10000000000000000.03"), Decimal("9999999999999999.98")),
    (None, Decimal("49999999999999999.99"), Decimal("-49999999999999999.99")),
    (Decimal("9" * 36 + ".00"), Decimal("0.01"), None),
)
GREATEST = Fraction(1.7976931348623157e308)
INFINITE = Fraction(2) ** 1024 - Fraction(2) ** 970
"""From here on a number rounds to no double."""
EDGES: dict[str, tuple[float, ...]] = {
    "amount_counts": (-2.505, -1, 0, 0.001, 0.5, 2.5),
    "ratio_counts": (-1e308, -0.1, 0, 0.1, 3.3, 1e15, 1.7e308),
    "wide_counts": (-1e300, -0.1, 0, 0.015, 1e16, 5e16, 1e35, 1e300),
}
"""Of histograms; some are between two values of the column's type, some are beyond all."""
COUNTS = (*EDGES, "tenths")
"""The histograms."""
MEASURES: dict[str, Measure] = {
    "total": Sum("ratio"),
    "average": Avg("ratio"),
    "least": Min("ratio"),
    "most": Max("ratio"),
    "variance": Variance("ratio"),
    "deviation": Stddev("ratio"),
    "amounts": Variance("amount"),
    "amounts_deviation": Stddev("amount"),
    "wides": Variance("wide"),
    "first": First("words"),
    "last": Last("words"),
    "first_at": First("words", "at"),
    "last_at": Last("words", "at"),
    "word_of_least": ArgMin("words", "ratio"),
    "ratio_of_most": ArgMax("ratio", "amount"),
    "amount_of_word": ArgMax("amount", "words"),
    "items": CollectSet("words", most=2),
    "numbers": CollectSet("ratio", most=3),
    **{name: Histogram(name.removesuffix("_counts"), edges=edges) for name, edges in EDGES.items()},
    "tenths": Histogram("amount", low=-3, high=3, buckets=60),
}
COLUMNS = {name: name for name in ("history", *LEVELS, "key", "at", "amount", "wide", "ratio", "words")}
TABLE = Aggregate(
    name="simple", inputs=("made",), columns=COLUMNS, keys=("history", "key"), measures=MEASURES
)  # fmt: skip


@st.composite
def _odd(draw: st.DrawFn) -> History:
    history = draw(histories())
    ratios, wides = draw(st.sampled_from(PALETTES)), draw(st.sampled_from(WIDES))
    records = tuple(
        replace(one, ratio=draw(st.sampled_from(ratios)), wide=draw(st.sampled_from(wides)))
        for one in history.records
    )
    return replace(history, records=records)


def odd_histories(count: int) -> list[History]:
    """Up to `count` different ones; their doubles are of one palette each."""
    found: list[History] = []

    @how(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
         suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(history=_odd())
    def collect(history: History) -> None:
        found.append(history)

    collect()
    return found


def order(value: Any) -> Any:
    """Spark's order of doubles: NaN is above infinity, -0.0 is 0.0; texts by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def zeroed(value: Any) -> Any:
    return 0.0 if value == 0.0 and isinstance(value, float) else value


def _special(values: list[float]) -> float | None:
    """What values that are not finite make of a sum."""
    odd = {value for value in values if not math.isfinite(value)}
    if not odd:
        return None
    return odd.pop() if len(odd) == 1 else NAN


def _total(values: list[float]) -> float | None:
    """The exact sum, rounded once."""
    special = _special(values)
    if special is not None or not values:
        return special
    exact = [Fraction(value) for value in values]
    ups, downs = sum(x for x in exact if x > 0), sum(-x for x in exact if x < 0)
    return None if max(ups, downs) >= INFINITE else float(sum(exact))


def summed(values: list[float]) -> tuple[float | None, float]:
    """The value and what it may differ by."""
    sizes = sum((abs(Fraction(value)) for value in values if math.isfinite(value)), Fraction(0))
    return _total(values), 1e-9 * float(min(sizes, GREATEST))


def _moments(values: Iterable[Fraction]) -> tuple[int, Fraction, Fraction]:
    known = list(values)
    mean = sum(known, Fraction(0)) / len(known) if known else Fraction(0)
    return len(known), mean, sum(((x - mean) ** 2 for x in known), Fraction(0))


def root(value: Fraction) -> float:
    """Of numbers beyond the range of doubles, too."""
    return math.isqrt(int(value * 2**2400)) / 2**1200 if value < 2**1000 else math.sqrt(value)


def variance(values: list[float]) -> tuple[float | None, float]:
    """The value and what it may differ by."""
    if len(values) < 2:
        return None, 0.0
    if _special(values) is not None:
        return NAN, 0.0
    if max(map(abs, values)) >= 2.0**490:
        return None, 0.0
    n, mean, m2 = _moments(map(Fraction, values))
    allowed = 1e-9 * (float(m2) + 1e-5 * abs(float(mean)) * math.sqrt(n) * root(m2)) / (n - 1)
    return float(m2 / (n - 1)), allowed + 1e-308


def deviation(values: list[float]) -> tuple[float | None, float]:
    found, _ = variance(values)
    if found is None or math.isnan(found):
        return found, 0.0
    n, mean, m2 = _moments(map(Fraction, values))
    exact = root(m2 / (n - 1))
    return exact, 1e-9 * (exact + 1e-5 * abs(float(mean)) * math.sqrt(n / (n - 1))) + 1e-154


def exact_variance(values: list[Decimal]) -> tuple[float | None, float]:
    """Of decimals with two digits behind the point."""
    whole = [int(value.scaleb(2)) for value in values]
    if len(values) < 2 or sum(x * x for x in whole) >= 10**38:
        return None, 0.0
    n, _, m2 = _moments(Fraction(x, 100) for x in whole)
    return float(m2 / (n - 1)), 1e-12 * float(m2 / (n - 1))


def _picked(records: list[Record], of: str, by: str | None, *, last: bool) -> Any:
    known = [one for one in records if by is None or getattr(one, by) is not None]
    if not known:
        return None
    ends = max if last else min
    best = ends(known, key=lambda one: (0 if by is None else order(getattr(one, by)), one.record_id))
    return zeroed(getattr(best, of))


def _items(values: Iterable[Any], most: int) -> tuple[list[Any], bool]:
    distinct = {order(value): zeroed(value) for value in values if value is not None}
    items = [distinct[key] for key in sorted(distinct)]
    return items[:most], len(items) > most


def counted(values: Iterable[Any], edges: Iterable[float]) -> list[tuple[float | None, float | None, int]]:
    """Of each bucket its ends and how many values are in it, decimals by the digits of the edges."""
    known, bounds = [value for value in values if value is not None], list(edges)
    exact = [Decimal(repr(edge)) for edge in bounds]
    held = [0] * (len(bounds) + 1)
    for value in known:
        if isinstance(value, float):
            held[len(bounds) if math.isnan(value) else sum(value >= edge for edge in bounds)] += 1
        else:
            held[sum(value >= edge for edge in exact)] += 1
    ends = [None, *map(float, bounds), None]
    return list(zip(ends, ends[1:], held, strict=False))


def shown(records: list[Record]) -> dict[str, tuple[Any, float]]:
    """Of one group: each measure's value, and what it may differ by."""
    ratios = [one.ratio for one in records if one.ratio is not None]
    amounts = [one.amount for one in records if one.amount is not None]
    total, allowed = summed(ratios)
    ends = sorted(map(zeroed, ratios), key=order)
    exact = {
        "least": ends[0] if ends else None,
        "most": ends[-1] if ends else None,
        "first": _picked(records, "words", None, last=False),
        "last": _picked(records, "words", None, last=True),
        "first_at": _picked(records, "words", "at", last=False),
        "last_at": _picked(records, "words", "at", last=True),
        "word_of_least": _picked(records, "words", "ratio", last=False),
        "ratio_of_most": _picked(records, "ratio", "amount", last=True),
        "amount_of_word": _picked(records, "amount", "words", last=True),
        "items": _items((one.words for one in records), 2),
        "numbers": _items(ratios, 3),
        **{
            name: counted((getattr(one, name.removesuffix("_counts")) for one in records), edges)
            for name, edges in EDGES.items()
        },
        "tenths": counted(amounts, [n / 10 for n in range(-30, 31)]),
    }
    squared = exact_variance(amounts)
    return {
        "total": (total, allowed),
        "average": (None if total is None else total / len(ratios), allowed / max(len(ratios), 1)),
        "variance": variance(ratios),
        "deviation": deviation(ratios),
        "amounts": squared,
        "amounts_deviation": (None, 0.0) if squared[0] is None else (
            math.sqrt(squared[0]), 1e-12 * math.sqrt(squared[0])),
        "wides": exact_variance([one.wide for one in records if one.wide is not None]),
        **{name: (value, 0.0) for name, value in exact.items()},
    }  # fmt: skip


def is_right(found: Any, expected: tuple[Any, float]) -> bool:
    """Whether a value is the oracle's: within its tolerance, else to the last bit and the sign of 0.0."""
    value, allowed = expected
    if isinstance(found, float) and isinstance(value, float) and allowed and math.isfinite(found + value):
        return abs(found - value) <= allowed
    return found == value if isinstance(value, Decimal) else repr(found) == repr(value)


def groups(records: Iterable[Record]) -> dict[str | None, list[Record]]:
    found: dict[str | None, list[Record]] = defaultdict(list)
    for one in records:
        found[one.key].append(one)
    return found


def one_group(ratios: list[float | None], blocks: list[int], **more: list[Any]) -> History:
    """Records of key "a" with these doubles, each in the block of that number."""
    empty = Record(
        record_id=(0, 0, 0), key="a", at=START, amount=None, wide=None, ratio=None, words=None, gone=None
    )
    records = tuple(
        replace(empty, record_id=(0, 0, n), ratio=ratio, **{name: held[n] for name, held in more.items()})
        for n, ratio in enumerate(ratios)
    )
    return History(records=records, places=tuple((block, block, 0) for block in blocks))

"""Owns Histogram: how many values are in each bucket."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from twinlake.base import quote
from twinlake.kinds.measures.measure import (
    FLOATS,
    Measure,
    Part,
    Semantics,
    digits,
    is_decimal,
    scale,
    state_column,
)

MOST = 1_000
"""A state is a value of one column, and a view's text names every edge."""
_GREATEST_BIGINT = 2**63 - 1


@dataclass(frozen=True)
class Histogram(Measure):
    """How many non-null values are in each bucket: an array of (low, high, count), low first. `edges` are one
    number or more, each above the one before; or `low`, `high` and `buckets` give so many buckets of one
    width. A bucket has its low and all below its high. The first is below all edges (its low is NULL), the
    last at or above all of them (its high is NULL): no value is lost. All buckets are shown, empty ones too.
    Edges are shown as doubles, and compared as the numbers that are written: with decimals exactly."""

    kind = "histogram"
    semantics = Semantics(
        equality="exactly", ties="a value that is an edge is in the bucket above it", null="left out",
        nan="NaN is the greatest value: it and infinity are in the last bucket, -infinity in the first;"
        " -0.0 is 0.0",
        empty="every count is 0", overflow="none below 2^63 rows",
    )  # fmt: skip
    example: ClassVar[Mapping[str, Any]] = {"edges": (0, 10, 100)}
    edges: tuple[float, ...] | None = None
    low: float | None = None
    high: float | None = None
    buckets: int | None = None

    @property
    def bounds(self) -> tuple[float, ...]:
        """The edges as they are shown, of arguments that are not refused."""
        if self.edges is not None:
            return tuple(float(one) + 0.0 for one in self.edges)  # 0.0 for -0.0
        assert self.low is not None and self.high is not None and self.buckets is not None
        low, width = _written(self.low), _written(self.high) - _written(self.low)
        return tuple(float(low + width * n / self.buckets) for n in range(self.buckets + 1))

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        if not (is_decimal(type_) or type_ in FLOATS):
            return f"{type_} is not a number"
        return next(self._wrong(), None)

    def _wrong(self) -> Iterator[str]:
        even = {"low": self.low, "high": self.high, "buckets": self.buckets}
        missing = [name for name, value in even.items() if value is None]
        if self.edges is not None and len(missing) < len(even):
            yield "it has edges, and low, high or buckets as well; give either"
        elif self.edges is not None:
            yield from self._wrong_edges(self.edges)
        elif len(missing) == len(even):
            yield "it has no edges; give edges=(0, 10, 100) or low=0, high=100, buckets=10"
        elif missing:
            yield f"it has no {' and no '.join(missing)}; low, high and buckets go together"
        else:
            yield from self._wrong_width()

    @staticmethod
    def _wrong_edges(edges: Any) -> Iterator[str]:
        if not isinstance(edges, tuple):
            yield f"edges are {edges!r}, not a tuple of numbers, like (0, 10, 100)"
            return
        if not 1 <= len(edges) <= MOST:
            yield f"it has {len(edges):,} edges, not between 1 and {MOST:,}"
        yield from (why for one in edges if (why := _no_edge("edge", one)))
        for below, above in pairwise(edges):
            if not below < above:
                yield f"edge {above!r} is not above {below!r}, the one before it"

    def _wrong_width(self) -> Iterator[str]:
        if type(self.buckets) is not int or not 1 <= self.buckets <= MOST:
            yield f"buckets is {self.buckets!r}, not a whole number between 1 and {MOST:,}"
        yield from (why for name in ("low", "high") if (why := _no_edge(name, getattr(self, name))))
        assert self.low is not None and self.high is not None
        if not self.low < self.high:
            yield f"high is {self.high!r}, not above low, which is {self.low!r}"
        if any(below == above for below, above in pairwise(self.bounds)):
            yield f"from {self.low!r} to {self.high!r} there are too few doubles for {self.buckets:,} buckets"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        column, number = quote.name(self.of), len(self.bounds) + 1
        # its sketch tracks as many items as there are, so it counts exactly, in memory for the buckets alone
        counted = f"approx_top_k({self._bucket(types[self.of])}, {number}, {number})"
        counted = f"map_from_entries({counted} FILTER (WHERE {column} IS NOT NULL))"
        # a variable of a lambda is computed once, and not for each bucket
        listed = f"transform(sequence(0, {number - 1}), bucket -> coalesce(counted[bucket], 0L))"
        from_rows = f"transform(array({counted}), counted -> {listed})[0]"
        return (Part(name=f"{name}__counts", from_rows=from_rows, merge=self._merged(name)),)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return (Part(name=f"{name}__counts", from_rows="", merge=self._merged(name)),)

    def value(self, name: str) -> str:
        edges = f"array({', '.join(f'{one!r}D' for one in self.bounds)})"
        bucket = f"struct(get({edges}, i - 1) AS low, get({edges}, i) AS high, n AS count)"
        return f"transform({self._merged(name)}, (n, i) -> {bucket})"

    def _merged(self, name: str) -> str:
        none = f"array_repeat(0L, {len(self.bounds) + 1})"
        states = f"collect_list({state_column(name, 'counts')})"
        return f"aggregate({states}, {none}, (l, r) -> zip_with(l, r, (a, b) -> a + b))"

    def _bucket(self, type_: str) -> str:
        """SQL of how many edges a value has reached: a binary search, whose code does not grow with them."""
        always, edges, value = self._reachable(type_)
        jumps = ", ".join(str(1 << power) for power in reversed(range(len(edges).bit_length())))
        if not edges:
            return str(always)
        # the variables of a lambda hide columns of their names, so none may have the value's
        at, jump = ("at_", "jump_") if self.of.lower() in ("at", "jump") else ("at", "jump")
        next_ = f"{at} + {jump}"
        reached = f"{next_} <= {len(edges)} AND get(array({', '.join(edges)}), {next_} - 1) <= {value}"
        return f"aggregate(array({jumps}), 0, ({at}, {jump}) -> if({reached}, {next_}, {at})) + {always}"

    def _reachable(self, type_: str) -> tuple[int, list[str], str]:
        """How many edges every value of the type has reached, the edges that some have and some have not, and
        the column, both as SQL of one type. An exact value reaches an edge where it reaches the next value of
        its type."""
        column = quote.name(self.of)
        if type_ in FLOATS:
            return 0, [f"{one!r}D" for one in self.bounds], f"CAST({column} AS DOUBLE)"
        places = scale(type_)
        greatest = 10 ** digits(type_) - 1 if type_.startswith("decimal(") else _GREATEST_BIGINT
        units = [math.ceil(_written(one) * 10**places) for one in self.bounds]
        always = sum(one <= -greatest - 1 for one in units)
        held = [one for one in units if -greatest <= one <= greatest]
        if type_.startswith("decimal("):
            return always, [f"CAST('{one}E-{places}' AS {type_})" for one in held], column
        return always, [f"{one}L" for one in held], f"CAST({column} AS BIGINT)"


def _written(number: float) -> Fraction:
    """The number as its digits say: 0.1 is a tenth, and not the double next to it."""
    return Fraction(Decimal(repr(number)))


def _no_edge(name: str, given: Any) -> str | None:
    """Why it cannot be an edge, if so."""
    if type(given) not in (int, float) or not abs(given) < math.inf:
        return f"{name} is {given!r}, not a finite number"
    try:
        double = float(given)
    except OverflowError:
        return f"{name} is a number beyond the greatest double, 1.8e308"
    is_kept = _written(double) == _written(given)
    return None if is_kept else f"{name} {given!r} has more digits than a double keeps"

"""Owns the measures that look at all their values at once, kept as a multiset: Quantile, TopK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.kinds.measures.measure import Measure, Part, Semantics, no_item, state_column
from twinlake.kinds.measures.totals import SAFE_DIGITS

GROWTH = 1.02
"""The greatest value of a bucket over that of the next smaller one: what is shown is 1 % off at most."""
ZERO_AT = 40_000
"""Added to a bucket's exponent: no double is so small that the sum is not positive."""
INFINITE, NAN = 1_000_000, 2_000_000
_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Quantile(Measure):
    """Continuous quantiles of the non-null values, by buckets: at most 1 % off wherever the values at both
    sides of the place have one sign, and exact for zero and infinities. NaN is the greatest value. `q` is one
    (shows a double) or several of 0 to 1 (shows an array); NULL where there is no value."""

    kind = "quantile"
    semantics = Semantics(
        equality="exactly: buckets are whole numbers", ties="-", null="left out",
        nan="NaN is the greatest value, the infinities the ends; -0.0 is 0.0", empty="NULL", overflow="none",
    )  # fmt: skip
    q: float | tuple[float, ...] = (0.5, 0.95)

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        if type_ not in (*_WHOLE, "float", "double") and not type_.startswith("decimal("):
            return f"{type_} is not a number"
        asked = self.q if isinstance(self.q, tuple) else (self.q,)
        if not asked:
            return "it asks for no q"
        wrong = [one for one in asked if type(one) not in (int, float) or not 0 <= one <= 1]
        return f"q is {wrong[0]!r}, not a number from 0 to 1" if wrong else None

    @property
    def item(self) -> str | None:
        value = f"CAST({quote.name(self.of)} AS DOUBLE)"
        size = f"CAST(ceil(ln(abs({value})) / ln({GROWTH}D)) AS INT) + {ZERO_AT}"
        return (
            f"CASE WHEN isnan({value}) THEN {NAN} WHEN {value} = 0 THEN 0"
            f" ELSE CAST(sign({value}) AS INT)"
            f" * CASE WHEN abs({value}) < double('infinity') THEN {size} ELSE {INFINITE} END END"
        )

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        return ()

    def value(self, name: str) -> str:
        bucket = state_column(name, "item")
        # the middle of the bucket, from its smaller end: its greater one may be beyond the doubles
        middle = f"pow({GROWTH}D, abs({bucket}) - {ZERO_AT + 1}) * {2 * GROWTH / (1 + GROWTH)!r}D"
        value = (
            f"CASE WHEN {bucket} = {NAN} THEN double('NaN') WHEN {bucket} = 0 THEN 0D"
            f" ELSE sign({bucket}) * CASE WHEN abs({bucket}) < {INFINITE} THEN {middle}"
            f" ELSE double('infinity') END END"
        )
        asked = f"array({', '.join(map(_double, self.q))})" if isinstance(self.q, tuple) else _double(self.q)
        return f"percentile({value}, {asked}, `_rows`)"


@dataclass(frozen=True)
class TopK(Measure):
    """The `most` items that occur most often, as an array of (item, count), or those with the greatest sum of
    `by`, as (item, weight), the greatest first and of equal ones the smaller item. NULL is not an item, and
    an item without a value of `by` has no weight and is not shown; an empty array where there is none.
    Doubles are no weight: their sum is not the same in every order, and so the order of items would not
    be."""

    kind = "top_k"
    semantics = Semantics(
        equality="exactly", ties="the smaller item comes first", null="is not an item, and no weight",
        nan="NaN is one item, the greatest; -0.0 is 0.0", empty="an empty array",
        overflow="none: sums have 38 digits",
    )  # fmt: skip
    most: int
    by: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.of,) if self.by is None else (self.of, self.by)

    @property
    def item(self) -> str | None:
        return quote.name(self.of)

    def refuses(self, types: Mapping[str, str]) -> str | None:
        if type(self.most) is not int or not 1 <= self.most < 2**31:
            return f"most is {self.most!r}, not a whole number of 1 or more"
        if self.by is not None and _sum_type(types[self.by]) is None:
            return f"a weight of type {types[self.by]} is not exact; cast it to decimal({SAFE_DIGITS}, 2)"
        return no_item(types[self.of])

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        if self.by is None:
            return ()
        weight = f"CAST({quote.name(self.by)} AS {_sum_type(types.get(self.by, 'bigint'))})"
        merge = f"sum({state_column(name, 'weight')})"
        return (Part(name=f"{name}__weight", from_rows=f"sum({weight})", merge=merge),)

    def value(self, name: str) -> str:
        size, weight = ("count", "`_rows`") if self.by is None else ("weight", state_column(name, "weight"))
        item = state_column(name, "item")
        held = f"{item} IS NOT NULL AND {weight} IS NOT NULL"
        items = f"collect_list(struct({item} AS item, {weight} AS {size})) FILTER (WHERE {held})"
        order = (
            f"CASE WHEN l.{size} > r.{size} THEN -1 WHEN l.{size} < r.{size} THEN 1"
            " WHEN l.item < r.item THEN -1 WHEN l.item > r.item THEN 1 ELSE 0 END"
        )
        return f"slice(array_sort({items}, (l, r) -> {order}), 1, {self.most})"


def _double(number: float) -> str:
    return f"{float(number)!r}D"


def _sum_type(type_: str) -> str | None:
    """The type of an exact sum that cannot overflow; None for values without one."""
    if type_ in _WHOLE:
        return "decimal(38,0)"
    if not type_.startswith("decimal("):
        return None
    digits, scale = type_.removeprefix("decimal(").rstrip(")").split(",")
    return f"decimal(38,{scale})" if int(digits) <= SAFE_DIGITS else None

"""Owns the measures that keep values themselves: CollectSet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.kinds.equality import has_order
from twinlake.kinds.measures.measure import Measure, Part, Semantics, plain, state_column

MOST = 10_000
"""A state is a value of one column: it must fit into memory many times."""


@dataclass(frozen=True)
class CollectSet(Measure):
    """The distinct non-null values: `items`, the `most` smallest in order, and whether there are `more`."""

    kind = "collect_set"
    semantics = Semantics(
        equality="exactly",
        ties="equal values are one item",
        null="left out",
        nan="NaN is one item, above infinity; -0.0 is 0.0",
        empty="no items, no more",
        overflow="beyond `most` items the greatest are not shown, and `more` is true",
    )
    most: int = 100

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        if type(self.most) is not int or not 1 <= self.most <= MOST:
            return f"most is {self.most!r}, not a whole number between 1 and {MOST:,}"
        if not has_order(type_):
            return f"{type_} has no order"
        # 0.0 and -0.0 inside would be two items in one place and one in another
        if "<" in type_ and ("float" in type_ or "double" in type_):
            return f"{type_} has floating point numbers inside; cast them to decimals"
        return None

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        from_rows = self._kept(f"collect_set({plain(self.of, types[self.of])})")
        return (Part(name=f"{name}__items", from_rows=from_rows, merge=self._merged(name)),)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return (Part(name=f"{name}__items", from_rows="", merge=self._merged(name)),)

    def value(self, name: str) -> str:
        items = self._merged(name)
        return f"struct(slice({items}, 1, {self.most}) AS items, size({items}) > {self.most} AS more)"

    def _kept(self, items: str) -> str:
        # one more than is shown: whether there are more is a question about all items, however they were cut
        return f"slice(array_sort(array_distinct({items})), 1, {self.most + 1})"

    def _merged(self, name: str) -> str:
        return self._kept(f"flatten(collect_list({state_column(name, 'items')}))")

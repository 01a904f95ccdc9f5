"""Owns the measures that count: Count, CountDistinct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.kinds.measures.measure import Measure, Part, Semantics, no_item, state_column

SKETCH_LOG_ENTRIES = 12
"""Theta sketches keep 2^12 entries: exact below 4,096 distinct values, about 3 % (two sigma) beyond."""


@dataclass(frozen=True)
class Count(Measure):
    """Rows, or with a column its non-null values."""

    kind = "count"
    adds_up = True
    semantics = Semantics(
        equality="exactly", ties="-", null="left out; without a column every row counts",
        nan="counted like any value", empty="0", overflow="none below 2^63 rows",
    )  # fmt: skip
    nothing = "0L"
    of: str | None = None  # type: ignore[assignment]

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        counted = "1" if self.of is None else quote.name(self.of)
        merge = f"sum({state_column(name, 'n')})"
        return (Part(name=f"{name}__n", from_rows=f"count({counted})", merge=merge),)

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...]:
        return self.parts(name, {})

    def value(self, name: str) -> str:
        return f"sum({state_column(name, 'n')})"


@dataclass(frozen=True)
class CountDistinct(Measure):
    """Distinct non-null values by a theta sketch: its bytes are the same in every cut of the rows. With
    `exact` by the values themselves, which costs a row of state each."""

    kind = "count_distinct"
    semantics = Semantics(
        equality="exactly: the sketch has one byte form", ties="-", null="left out",
        nan="NaN is one value; -0.0 is 0.0", empty="0", overflow="none",
    )  # fmt: skip
    nothing = "0L"
    exact: bool = False

    @property
    def item(self) -> str | None:
        return quote.name(self.of) if self.exact else None

    def refuses(self, types: Mapping[str, str]) -> str | None:
        if self.exact:
            return no_item(types[self.of])
        known, type_ = ("int", "bigint", "float", "double", "string", "binary"), types[self.of]
        return None if type_ in known else f"a sketch cannot take {type_}; cast it to string or bigint"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        if self.exact:
            return ()
        value, type_ = quote.name(self.of), types.get(self.of)
        # a theta sketch leaves out empty strings without a word, so none may be empty
        if type_ == "string":
            value = f"concat('=', {value})"
        if type_ == "binary":
            value = f"concat(X'3D', {value})"
        sketch = f"theta_sketch_agg({value}, {SKETCH_LOG_ENTRIES})"
        return (Part(name=f"{name}__sketch", from_rows=sketch, merge=_union(name)),)

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...] | None:
        return None if self.exact else self.parts(name, {})

    def value(self, name: str) -> str:
        return (
            f"count({state_column(name, 'item')})" if self.exact else f"theta_sketch_estimate({_union(name)})"
        )


def _union(name: str) -> str:
    return f"theta_union_agg({state_column(name, 'sketch')}, {SKETCH_LOG_ENTRIES})"

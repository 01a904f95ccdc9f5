"""Owns the measures that pick an end: Min, Max."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twinlake.kinds.equality import has_order
from twinlake.kinds.measures.measure import Measure, Part, Semantics, plain, state_column


class _Extreme(Measure):
    function: ClassVar[str]
    semantics = Semantics(
        equality="exactly",
        ties="equal values are one value",
        null="left out",
        nan="NaN is above infinity; -0.0 is 0.0",
        empty="NULL",
        overflow="none",
    )

    def refuses(self, types: Mapping[str, str]) -> str | None:
        return None if has_order(types[self.of]) else f"{types[self.of]} has no order"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        from_rows = f"{self.function}({plain(self.of, types[self.of])})"
        return (Part(name=f"{name}__{self.function}", from_rows=from_rows, merge=self.value(name)),)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return self.parts(name, {self.of: states[f"{name}__{self.function}"]})

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...]:
        return self.parts(name, {self.of: ""})  # the type is that of what is read from rows alone

    def value(self, name: str) -> str:
        return f"{self.function}({state_column(name, self.function)})"


@dataclass(frozen=True)
class Min(_Extreme):
    """Smallest non-null value."""

    kind = "min"
    function = "min"


@dataclass(frozen=True)
class Max(_Extreme):
    """Greatest non-null value."""

    kind = "max"
    function = "max"

"""Owns the measures that pick the value of one row: First, Last, ArgMin, ArgMax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twinlake.base import quote
from twinlake.kinds.equality import has_order
from twinlake.kinds.measures.measure import Measure, Part, Semantics, plain, state_column
from twinlake.topics import record_id


class _Pick(Measure):
    """State: one struct (by, record id, value), so that its order has no ties between records."""

    follows_log = True
    function: ClassVar[str]
    by: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.of,) if self.by is None else (self.of, self.by)

    def refuses(self, types: Mapping[str, str]) -> str | None:
        return next(
            (f"{types[name]} has no order" for name in self.columns if not has_order(types[name])), None
        )

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        fields = [*(f"{quote.name(column)} AS {quote.name(column)}" for column in record_id.KEY)]
        fields.append(f"{plain(self.of, types[self.of])} AS value")
        picked = f"struct({', '.join(fields)})"
        if self.by is not None:
            by = plain(self.by, types[self.by])
            picked = f"CASE WHEN {by} IS NOT NULL THEN struct({by} AS `by`, {', '.join(fields)}) END"
        return (self._part(name, picked),)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return (self._part(name, ""),)

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...]:
        return self.stored_parts(name, {})

    def _part(self, name: str, picked: str) -> Part:
        from_rows = f"{self.function}({picked})"
        return Part(name=f"{name}__pick", from_rows=from_rows, merge=self._merged(name))

    def _merged(self, name: str) -> str:
        return f"{self.function}({state_column(name, 'pick')})"

    def value(self, name: str) -> str:
        return f"{self._merged(name)}.value"


def _semantics(ties: str) -> Semantics:
    return Semantics(
        equality="exactly",
        ties=f"{ties} record id; rows that one record was exploded into follow the order of their values",
        null="a row whose `by` is NULL never wins; the value of the row that wins may be NULL",
        nan="as `by`, NaN is above infinity; -0.0 is 0.0",
        empty="NULL",
        overflow="none",
    )


@dataclass(frozen=True)
class First(_Pick):
    """The value in the first row of the log, or in the one with the smallest `by`."""

    kind = "first"
    function = "min"
    semantics = _semantics("the earlier")
    by: str | None = None


@dataclass(frozen=True)
class Last(_Pick):
    """The value in the last row of the log, or in the one with the greatest `by`."""

    kind = "last"
    function = "max"
    semantics = _semantics("the later")
    by: str | None = None


@dataclass(frozen=True)
class ArgMin(_Pick):
    """The value in the row with the smallest `by`."""

    kind = "arg_min"
    function = "min"
    semantics = _semantics("the earlier")
    by: str


@dataclass(frozen=True)
class ArgMax(_Pick):
    """The value in the row with the greatest `by`."""

    kind = "arg_max"
    function = "max"
    semantics = _semantics("the later")
    by: str

"""Owns what a kind answers: the rows that a view must show, and by which rule each column is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from twinlake.witness.database import Database
from twinlake.witness.question import Question
from twinlake.witness.types import Type, identifier


@dataclass(frozen=True)
class Rule:
    """When the witness's value and the shown one are equal.

    `same` is SQL with {w}, the witness's value, {s}, the shown one, and the names of columns that the result
    has beside the value; it is never NULL.
    """

    same: str
    beside: tuple[str, ...] = ()
    bound: str = ""
    """For a person how near it has to be, where the value is approximate by its definition."""
    is_exact: bool = False
    surely: str = "true"
    """SQL with the same names: whether values that are not equal by it prove that one side is wrong."""

    @property
    def unsure(self) -> Rule:
        """The same for what is made of sums of doubles and has no tolerance of its own: where large ones
        cancel, the order in which they are added up decides."""
        return replace(self, surely="false")

    def sql(self, name: str, witness: str, shown: str) -> str:
        """Whether the column is equal in a row of both sides, given as the names of relations."""
        return self._of(self.same, name, witness, shown)

    def differs_surely(self, name: str, witness: str, shown: str) -> str:
        """Whether it is not, and that proves something."""
        surely = self._of(self.surely, name, witness, shown)
        return f"(NOT {self.sql(name, witness, shown)} AND {surely})"

    def _of(self, text: str, name: str, witness: str, shown: str) -> str:
        column = identifier(name)
        beside = {part: f"{witness}.{identifier(part_of(name, part))}" for part in self.beside}
        return f"({text.format(w=f'{witness}.{column}', s=f'{shown}.{column}', **beside)})"


EXACTLY = Rule("{w} IS NOT DISTINCT FROM {s}", is_exact=True)
BY_ITS_SIZE = Rule(
    "{w} IS NOT DISTINCT FROM {s}"
    " OR coalesce(isfinite({w}) AND isfinite({s})"
    " AND abs({w} - {s}) <= 1e-9 * greatest(abs({w}), abs({s})), false)"
)
"""A double of a Derived."""
BY_WHAT_IS_ADDED = Rule(
    "{w} IS NOT DISTINCT FROM {s}"
    " OR coalesce(isfinite({w}) AND isfinite({s}) AND abs({w} - {s}) <= 1e-9 * {size} + 1e-300, false)",
    beside=("size",),
    surely="coalesce(isfinite({size}), true)",
)
"""A sum of doubles of a Derived. Where the sizes of what is added up leave the doubles, the order decides
whether a sum does."""


SIZE = "size"
"""The part that says of a sum of doubles what its order may decide a share of."""


def part_of(name: str, part: str) -> str:
    """A column beside the one of this name; no view's column has two `_` in a row."""
    return f"{name}__{part}"


@dataclass(frozen=True)
class Shown:
    """A column of the view."""

    type: Type
    rule: Rule = EXACTLY


@dataclass(frozen=True)
class Source:
    """Where the records of a key are: `sql` is SELECT text with these of the view's keys and record ids.

    `within`: (a time, the column of the view that ends it), both timestamps, for a key that says when its row
    begins and not which records are in it: those from its last key column on until then are.
    """

    topic: str
    sql: str
    keys: tuple[str, ...]
    within: tuple[str, str] | None = None
    newest_first: bool = False


@dataclass(frozen=True)
class Result:
    """What a version must show: `sql` has the keys, the columns, those that follow the clocks, and what their
    rules name beside them."""

    sql: str
    keys: tuple[str, ...]
    columns: Mapping[str, Shown]
    """Those that history alone decides, keys among them."""
    by_clocks: Mapping[str, Shown] = field(default_factory=dict)
    is_whole: bool = True
    """False where the same columns are to be computed when they are read: rows as many as the records."""
    sources: tuple[Source, ...] = ()
    unlisted: str = ""
    """Without sources, why records of a key cannot be listed."""


@dataclass(frozen=True)
class Asked:
    """What a kind works with."""

    database: Database
    question: Question
    definition: Mapping[str, Any]


Kind = Callable[[Asked], Result]
"""Evaluates a definition of one kind; Refused where it cannot."""

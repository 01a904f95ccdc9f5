"""Owns what a measure is to the witness: aggregates over all rows of a group, and a value made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlake.witness.result import EXACTLY, Rule, part_of
from twinlake.witness.types import Type, identifier


@dataclass(frozen=True, kw_only=True)
class Items:
    """A second grouping, by key and item: of each key the list of items, see `kinds/aggregate.py`."""

    item: str
    weight: str
    """An aggregate over the rows of one item; NULL leaves it out."""
    listed: str
    """An aggregate over the items, `_item` and `_weight`."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measure of a table."""

    type: Type
    parts: Mapping[str, str]
    """Aggregates over the rows of a group, by the name of the column that they become."""
    value: str
    """SQL over those columns."""
    rule: Rule = EXACTLY
    beside: Mapping[str, str] = field(default_factory=dict)
    """The same for what the rule names."""
    shifted: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Columns that the rows need besides: a value, and an aggregate over the group that is taken from it."""
    items: Items | None = None


@dataclass(frozen=True)
class Spec:
    """A measure as the definition has it: its name, its JSON, the types of the columns that it may name."""

    name: str
    data: Mapping[str, Any]
    types: Mapping[str, Type]
    is_exploded: bool
    """Whether several rows may have one record id."""

    def part(self, name: str) -> str:
        """The quoted column of a part."""
        return identifier(part_of(self.name, name))

    @property
    def of(self) -> str:
        return identifier(self.data["of"])

    @property
    def type(self) -> Type:
        return self.types[self.data["of"]]

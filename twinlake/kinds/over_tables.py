"""Owns what the kinds share that read other tables' states: no topic, and the definitions of those tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from twinlake.kinds.definition import NOT_STORED, Definition

if TYPE_CHECKING:
    from twinlake.kinds.kind import Kind

D = TypeVar("D", bound="OverTables")


@dataclass(frozen=True, kw_only=True)
class OverTables(Definition):
    """A view kind over states; how they look is known from the definitions in `tables`, once it is bound."""

    reads_states = True
    inputs: tuple[str, ...] = ()
    tables: dict[str, Definition] = field(
        default_factory=dict, compare=False, repr=False, metadata=NOT_STORED
    )
    """By name, those of `reads`; of the release, and so no part of the definition."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs:
            raise self.error(f"it reads tables, not topics: {', '.join(self.inputs)}", "leave out `inputs`")

    def bound(self: D, tables: Mapping[str, Any]) -> D:
        """The same, with the definitions of the tables that it reads."""
        return replace(self, tables={name: tables[name] for name in self.reads if name in tables})

    def table(self, name: str) -> Kind:
        """The definition of one of those that it reads."""
        return cast("Kind", self.tables[name])

"""Owns the expressions of a definition as data: what each is, and the rows that it sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from twinlake.base import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Expression:
    """One expression of a definition: what it is there, its SQL, and the type that it must have, if any."""

    what: str
    sql: str
    type: Literal["boolean", "array"] | None = None
    filters: bool = False
    """Whether those after it in its stage are computed only for rows that meet it."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Expressions that see the same rows; `rows` has their columns."""

    rows: DataFrame
    expressions: tuple[Expression, ...]


def holds_sql(condition: str | None) -> str:
    """SQL that is true where the condition is, else false and never NULL; false everywhere without one."""
    return "false" if condition is None else f"coalesce({quote.expression(condition)}, false)"

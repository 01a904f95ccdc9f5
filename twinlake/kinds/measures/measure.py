"""Owns what a measure is: three pieces of Spark SQL (state from rows, merge, value from state), and what
measures ask about columns of numbers.

A state must be a function of the *set* of inputs, so that any cut of history gives the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from twinlake.base import quote

MEASURED = ("of", "by")
"""Fields of a measure that name a column."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One state column."""

    name: str
    from_rows: str
    """Aggregate SQL over the rows' columns."""
    merge: str
    """Aggregate SQL over the state columns."""
    scale: str | None = None
    """For a double that compares with a tolerance: the state column with its sum of absolute values."""


@dataclass(frozen=True, kw_only=True)
class Semantics:
    """What a measure promises its readers beside its value; `docs/measures.md` is made from it."""

    equality: str
    """When two values of the same history are equal."""
    ties: str
    null: str
    nan: str
    """Of NaN, the infinities and -0.0."""
    empty: str
    """What a group without values shows."""
    overflow: str


@dataclass(frozen=True)
class Measure:
    """The field that measures share; what one computes stands in its family's module."""

    kind: ClassVar[str] = ""
    semantics: ClassVar[Semantics | None] = None
    """Every listed measure has them."""
    adds_up: ClassVar[bool] = False
    """Whether the values of several groups make sense as a sum, as counts do and averages do not."""
    follows_log: ClassVar[bool] = False
    """Whether the order of a topic's records decides between equal ones, which records of two topics lack."""
    nothing: ClassVar[str | None] = None
    """SQL of what no rows show, where no state is merged; None: NULL, which the value is then."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Arguments that make one whole, beside those without a default: where one of several is needed."""
    of: str
    """A column of the row-local steps."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the row-local steps that it reads, `of` first."""
        return () if self.of is None else (self.of,)

    @property
    def item(self) -> str | None:
        """For a measure whose state is a multiset: SQL over the steps' columns, of which NULL is not an item.

        The state then has a row per item (`kinds/entries.py`), with how often it occurs as `_rows` and with
        the measure's parts, whose merge must not depend on types. `value` sees these rows merged, the item as
        `<name>__item`, and others without an item, which it has to pass over. Measures with one text share
        the rows.
        """
        return None

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        """State columns `<name>__<part>`; `types` are the Spark types of the steps' columns.

        `from_rows` sees those columns and the record id.
        """
        raise NotImplementedError

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        """The parts of a state that is there already; `states` maps its columns to their Spark types."""
        return self.parts(name, {})

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...] | None:
        """The parts of `value`, and of `scale` where it is asked for: each `merge` adds the state of one row
        after the other, as a window function does. It knows no types, and a row must not cost more the more
        rows there have been. None for a measure that cannot.
        """
        return None

    def value(self, name: str) -> str:
        """Aggregate SQL over state columns: what a reader sees."""
        raise NotImplementedError

    def scale(self, name: str) -> str | None:
        """Aggregate SQL over state columns by which a double value's tolerance is measured; None: exact."""
        return None

    def refuses(self, types: Mapping[str, str]) -> str | None:
        """Why columns of these types cannot be measured, if so; `types` has those of `columns`."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain data; `measures.all.from_json` is its exact inverse."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {"kind": self.kind, **listed}


_ITEMS = ("string", "binary", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date",
          "timestamp")  # fmt: skip


def no_item(type_: str) -> str | None:
    """Why values of the type cannot be items, if so: only those with one form each, so that a group of equal
    ones has no first."""
    known = type_ in _ITEMS or type_.startswith("decimal(")
    return None if known else f"{type_} cannot be an item; cast it to string or bigint"


def state_column(name: str, part: str) -> str:
    """The quoted state column of a measure's part."""
    return quote.name(f"{name}__{part}")


FLOATS = ("float", "double")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def is_decimal(type_: str) -> bool:
    """Whether the numbers are exact: a decimal or an integer."""
    return type_.startswith("decimal(") or type_ in _DIGITS


def digits(type_: str) -> int:
    """At most so many digits has an exact number of the type."""
    return _DIGITS[type_] if type_ in _DIGITS else int(type_.removeprefix("decimal(").split(",")[0])


def scale(type_: str) -> int:
    """So many of them are behind the point."""
    return int(type_.rstrip(")").split(",")[1]) if type_.startswith("decimal(") else 0


def is_finite(double: str) -> str:
    """A condition on SQL of a double, NULL for NULL; NaN is above infinity by Spark's order."""
    return f"abs({double}) < CAST('Infinity' AS DOUBLE)"


def plain(column: str, type_: str) -> str:
    """SQL of a column as states keep it: 0.0 for -0.0, which is equal and would follow the arrival."""
    name = quote.name(column)
    return f"({name} + CAST(0 AS {type_}))" if type_ in FLOATS else name


def sample(kind: type[Measure]) -> Measure:
    """One of the kind, each column that it may have called like its field; of a number that it needs, 1;
    with the arguments of its example."""
    needed = (field for field in fields(kind) if field.name in MEASURED or field.default is MISSING)
    values: dict[str, Any] = {field.name: 1 if field.type == "int" else field.name for field in needed}
    return kind(**values | dict(kind.example))

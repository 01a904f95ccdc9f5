"""Owns what measures ask about columns of numbers: which are exact, how long, and how they are stored."""

from __future__ import annotations

from twinlake.base import quote

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

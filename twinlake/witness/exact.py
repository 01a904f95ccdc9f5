"""Owns exact numbers in DuckDB: decimals as whole numbers of their last digit, sums that cannot overflow."""

from __future__ import annotations

from twinlake.witness.refused import Refused
from twinlake.witness.types import Type

SAFE_DIGITS = 19
"""Values of so many digits cannot leave decimal(38) in fewer than 10^19 rows."""
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_HALF = 10**19
"""A whole number is added up as two parts, in and above so many: neither sum leaves 128 bits."""


def digits(type_: Type) -> int:
    """At most so many digits an exact number has; Refused for what is no number."""
    if type_.name == "decimal":
        return type_.precision
    if type_.name not in _DIGITS:
        raise Refused(f"a sum of {type_.name}", "it is no number")
    return _DIGITS[type_.name]


def whole(sql: str, type_: Type) -> str:
    """An exact number in units of its last digit, as HUGEINT."""
    if type_.is_integer:
        return f"CAST({sql} AS HUGEINT)"
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def number(sql: str, scale: int) -> str:
    """The decimal(38, scale) of a whole number of its last digits, which are 38 at most."""
    if not scale:
        return f"CAST({sql} AS DECIMAL(38,0))"
    unit = huge(10**scale)
    return (
        f"CAST((CASE WHEN {sql} < 0 THEN '-' ELSE '' END) || CAST(abs({sql}) // {unit} AS VARCHAR) || '.'"
        f" || lpad(CAST(abs({sql}) % {unit} AS VARCHAR), {scale}, '0') AS DECIMAL(38,{scale}))"
    )


def huge(value: int) -> str:
    """A literal of 128 bits."""
    return f"CAST('{value}' AS HUGEINT)"


def high(sql: str) -> str:
    """The sum of the upper parts of whole numbers."""
    return f"sum({sql} // {huge(_HALF)})"


def low(sql: str) -> str:
    """The sum of their lower parts."""
    return f"sum({sql} % {huge(_HALF)})"


def joined(high: str, low: str) -> str:
    """The sum of both; only where it has 38 digits at most."""
    return f"({high} * {huge(_HALF)} + {low})"


def is_beyond(high: str, low: str) -> str:
    """Whether a sum of numbers of one sign has more than 38 digits; false for no numbers."""
    return f"coalesce(abs({high} + {low} // {huge(_HALF)}) >= {huge(_HALF)}, false)"

"""Owns doubles read as Spark reads them where it needs digits: by their shortest text.

Spark rounds and casts BigDecimal(Double.toString(x)), so that 1.005 is 1.005 and no less.
"""

from __future__ import annotations

from twinlake.witness.rules.coercion import MAX_PRECISION
from twinlake.witness.rules.term import Guard, Term, bind, cast
from twinlake.witness.types import DOUBLE, STRING, Type, decimal

WHOLE_FROM = 2**52
"""Doubles of this size are whole numbers."""
DIGITS = 18
"""Digits after the point that a double's shortest text is read with."""
_READ = decimal(MAX_PRECISION, DIGITS)
_LARGEST = "1e15"
"""Below it Java 17 writes the shortest text, as DuckDB does; from 1e16 on it writes digits more, of some."""


def rounded(it: str, digits: int, guard: Guard) -> str:
    """SQL of the double `it` (written more than once), rounded half away from zero to digits below DIGITS."""
    value = cast(cast(f"({to_decimal(it, decimal(MAX_PRECISION, digits), guard)})", STRING), DOUBLE)
    return f"CASE WHEN isnan({it}) OR abs({it}) >= {WHOLE_FROM} THEN {it} ELSE {value} END"


def to_decimal(it: str, type_: Type, guard: Guard) -> str:
    """SQL of the double as a decimal, half away from zero; a guard raises for what is too large, or NaN."""
    made = _to_decimal(it, type_, guard)
    return guard(f"NOT abs({it}) < {_LARGEST}", made, "a double that decimals do not hold")


def _to_decimal(it: str, type_: Type, guard: Guard) -> str:
    """A guard raises where reading 18 digits has made it a half, so that it may be rounded another way."""
    scale = type_.scale
    half = f"CAST('{'0.' + '0' * scale + '5'}' AS {decimal(MAX_PRECISION, scale + 1).duckdb})"

    def read(text: str) -> str:
        is_cut = f"{cast(cast(text, STRING), DOUBLE)} <> {it}"
        is_half = f"abs({text} - {cast(text, decimal(MAX_PRECISION, scale))}) = {half}"
        return guard(f"{is_cut} AND {is_half}", cast(text, type_), "a double near a half")

    return bind([Term(sql=cast(cast(it, STRING), _READ), type=_READ)], read)

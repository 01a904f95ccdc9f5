"""Owns Histogram: the rows of a group counted once for each bucket, by its two ends."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from twinlake.witness.measured import Measured, Spec
from twinlake.witness.types import BIGINT, DOUBLE, EXACT, Type, array, struct

_SHOWN = array(struct(("low", DOUBLE), ("high", DOUBLE), ("count", BIGINT)))
_MOST_DIGITS = 38


def histogram(spec: Spec) -> Measured:
    """From each edge to the next, and what is outside of them."""
    edges = _edges(spec.data)
    reached = [_reached(spec.of, spec.type, edge) for edge in edges]
    lows, highs = ["true", *reached], [*reached, "false"]
    counts = (
        f"count({spec.of}) FILTER (WHERE {low} AND NOT {high})"
        for low, high in zip(lows, highs, strict=True)
    )
    held = spec.part("counts")
    value = ", ".join(
        f"struct_pack(low := {_double(low)}, high := {_double(high)}, count := {held}[{number}])"
        for number, (low, high) in enumerate(pairwise([None, *edges, None]), start=1)
    )
    return Measured(type=_SHOWN, parts={held: f"[{', '.join(counts)}]"}, value=f"[{value}]")


def _edges(data: Any) -> list[Fraction]:
    """Those that are written; or evenly from `low` to `high`, each the double next to its place."""
    if data.get("edges") is not None:
        return [_number(one) for one in data["edges"]]
    low, high, count = _number(data["low"]), _number(data["high"]), int(data["buckets"])
    places = ((low * (count - n) + high * n) / count for n in range(count + 1))
    return [_number(float(place)) for place in places]


def _number(written: float) -> Fraction:
    """By its digits."""
    return Fraction(Decimal(repr(written)))


def _reached(column: str, type_: Type, edge: Fraction) -> str:
    """Whether a value is at or above the edge; exact ones are compared with the whole unit at or below it."""
    if type_.is_floating:
        return f"CAST({column} AS DOUBLE) >= {_double(edge)}"
    units = math.floor(edge * 10**type_.scale)
    is_whole = units == edge * 10**type_.scale
    digits = type_.precision if type_.name == "decimal" else _MOST_DIGITS
    if abs(units) >= 10**digits:
        return str(units < 0).lower()
    exact, sign = f"DECIMAL({digits},{type_.scale})", ">=" if is_whole else ">"
    least = EXACT.scaleb(Decimal(units), -type_.scale)
    return f"CAST({column} AS {exact}) {sign} CAST('{least:f}' AS {exact})"


def _double(edge: Fraction | None) -> str:
    return "CAST(NULL AS DOUBLE)" if edge is None else f"CAST('{float(edge)!r}' AS DOUBLE)"

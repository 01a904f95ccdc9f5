"""Owns the measures that add up: Sum, Avg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.kinds.measures.measure import (
    FLOATS,
    Measure,
    Part,
    Semantics,
    digits,
    is_decimal,
    is_finite,
    scale,
    state_column,
)

SAFE_DIGITS = 19
"""Values of so many digits cannot overflow decimal(38) in fewer than 10^19 rows."""
_GREATEST = "1.7976931348623157E308D"
_UNITS = (
    "CASE WHEN {0} > 1E270D AND {0} < CAST('Infinity' AS DOUBLE)"
    " THEN ceil({0} / 1.94906280228E289D) + least(ceil({0} / 1.94906280228E289D), 512)"
    " ELSE 0L END"
)
"""A finite double's share of what a bigint holds: in units of 2^961 the greatest double has 2^63 - 2^10.

Up to 512 units more stand for the rounding of a sum near the end: where these do not overflow, no order of
adding up the doubles does. What is below 1e270 would have to come 10^30 times.
"""


class _Total(Measure):
    """State of Sum and Avg: the sum, the count of non-null values, and what decides on overflow.

    Overflow is decided by the sum of the positive and the sum of the negative values. Both only grow, so they
    overflow in every cut and order of the same rows or in none, and no signed sum can overflow before them.
    (The sum of `abs` would do, but Spark rounds `abs` and unary minus of a decimal to 34 digits.)

    Of doubles those two are sums of whole numbers (`_UNITS`), so that rounding has no say in it either. What
    is NaN or infinite is added up apart: alone it is the same in every order.
    """

    semantics = Semantics(
        equality="decimals exactly, doubles within 1e-9 of the sum of sizes",
        ties="-",
        null="left out",
        nan="NaN or both infinities make NaN, one infinity itself; -0.0 is 0.0",
        empty="NULL",
        overflow="NULL where the positive or the negative (finite) values alone leave the type",
    )

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        return None if is_decimal(type_) or type_ in FLOATS else f"{type_} is not a number"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        type_ = types[self.of]
        is_exact = is_decimal(type_)
        state = f"decimal(38,{scale(type_)})" if is_exact else "double"
        column = f"CAST({quote.name(self.of)} AS {state})"
        up, down, special, finite = (
            f"CAST(0 AS {state})",
            f"CAST(0 AS {state})",
            f"CAST(NULL AS {state})",
            column,
        )
        if is_exact and digits(type_) > SAFE_DIGITS:
            up, down = (
                f"try_sum(CASE WHEN {column} {sign} {up} THEN {column} ELSE {up} END)" for sign in "><"
            )
        if not is_exact:
            up, down = (f"try_sum({_UNITS.format(f'{sign}{column}')})" for sign in ("", "-"))
            special = f"sum(CASE WHEN NOT {is_finite(column)} THEN {column} END)"
            finite = f"CASE WHEN {is_finite(column)} THEN {column} END"
        over, past = f"({up} IS NULL OR {down} IS NULL)", _overflow(name)
        size = f"{name}__abs"
        parts = [
            _guarded(f"{name}__sum", f"try_sum({finite})", over, past, None if is_exact else size),
            Part(
                name=f"{name}__n",
                from_rows=f"count({quote.name(self.of)})",
                merge=f"sum({state_column(name, 'n')})",
            ),
            Part(name=f"{name}__overflow", from_rows=over, merge=past),
            _guarded(f"{name}__up", up, over, past),
            _guarded(f"{name}__down", down, over, past),
            Part(
                name=f"{name}__special", from_rows=special, merge=f"try_sum({state_column(name, 'special')})"
            ),
        ]
        if not is_exact:
            sizes = f"least(coalesce(sum(abs({finite})), CAST(0 AS DOUBLE)), {_GREATEST})"
            merged = f"least(sum({quote.name(size)}), {_GREATEST})"
            parts.append(Part(name=size, from_rows=sizes, merge=merged, scale=size))
        return tuple(parts)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return self.parts(name, {self.of: states[f"{name}__sum"]})  # a sum's type tells what its parts are

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...]:
        return self.parts(name, {self.of: "double" if scaled else "bigint"})


def _guarded(column: str, from_rows: str, over: str, past: str, scale: str | None = None) -> Part:
    """A sum that is NULL from the first overflow on."""
    return Part(
        name=column,
        from_rows=f"CASE WHEN NOT {over} THEN {from_rows} END",
        merge=f"CASE WHEN NOT {past} THEN try_sum({quote.name(column)}) END",
        scale=scale,
    )


def _overflow(name: str) -> str:
    sums = (f"try_sum({state_column(name, part)}) IS NULL" for part in ("up", "down"))
    return f"(bool_or({state_column(name, 'overflow')}) OR {' OR '.join(sums)})"


def _total(name: str) -> str:
    """The sum: what is not finite decides it, wherever there is any."""
    finite = f"CASE WHEN NOT {_overflow(name)} THEN try_sum({state_column(name, 'sum')}) END"
    return f"coalesce(try_sum({state_column(name, 'special')}), {finite})"


def _sizes(name: str) -> str:
    """The sum of the absolute values, or the greatest double: an infinite scale forgives nothing."""
    return f"least(sum({state_column(name, 'abs')}), {_GREATEST})"


@dataclass(frozen=True)
class Sum(_Total):
    """Exact sum as decimal(38, s), or double; NULL when there is nothing to sum, or on overflow."""

    kind = "sum"
    adds_up = True

    def value(self, name: str) -> str:
        return _total(name)

    def scale(self, name: str) -> str | None:
        return _sizes(name)


@dataclass(frozen=True)
class Avg(_Total):
    """Mean of the non-null values: decimal(38, max(6, s)) rounded half up, or double."""

    kind = "avg"

    def value(self, name: str) -> str:
        return f"try_divide({_total(name)}, sum({state_column(name, 'n')}))"

    def scale(self, name: str) -> str | None:
        return f"try_divide({_sizes(name)}, sum({state_column(name, 'n')}))"

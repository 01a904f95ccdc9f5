"""Owns the measures that add up: Sum, Avg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs import quote
from jobs.kinds.measures.measure import Measure, Part, state_column

SAFE_DIGITS = 19
"""Values of so many digits cannot overflow decimal(38) in fewer than 10^19 rows."""


class _Total(Measure):
    """State of Sum and Avg: the sum, the count of non-null values, and what decides on overflow.

    Overflow is decided by the sum of the positive and the sum of the negative values. Both only grow, so they
    overflow in every cut and order of the same rows or in none, and no signed sum can overflow before them.
    (The sum of `abs` would do, but Spark rounds `abs` and unary minus of a decimal to 34 digits.)
    """

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        return None if _is_decimal(type_) or type_ in ("float", "double") else f"{type_} is no number"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        type_ = types[self.of]
        state = f"decimal(38,{_scale(type_)})" if _is_decimal(type_) else "double"
        column, zero = f"CAST({quote.name(self.of)} AS {state})", f"CAST(0 AS {state})"
        up, down = zero, zero
        if _is_decimal(type_) and _digits(type_) > SAFE_DIGITS:
            up, down = (
                f"try_sum(CASE WHEN {column} {sign} {zero} THEN {column} ELSE {zero} END)" for sign in "><"
            )
        over, past = f"({up} IS NULL OR {down} IS NULL)", _overflow(name)
        size = f"{name}__abs"
        parts = [
            _guarded(f"{name}__sum", f"try_sum({column})", over, past, size if state == "double" else None),
            Part(
                name=f"{name}__n",
                from_rows=f"count({quote.name(self.of)})",
                merge=f"sum({state_column(name, 'n')})",
            ),
            Part(name=f"{name}__overflow", from_rows=over, merge=past),
            _guarded(f"{name}__up", up, over, past),
            _guarded(f"{name}__down", down, over, past),
        ]
        if state == "double":
            sizes = f"coalesce(sum(abs({column})), {zero})"
            parts.append(Part(name=size, from_rows=sizes, merge=f"sum({quote.name(size)})", scale=size))
        return tuple(parts)

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        return self.parts(name, {self.of: states[f"{name}__sum"]})  # a sum's type tells what its parts are


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


@dataclass(frozen=True)
class Sum(_Total):
    """Exact sum as decimal(38, s), or double; NULL when there is nothing to sum, or on overflow."""

    kind = "sum"

    def value(self, name: str) -> str:
        return f"CASE WHEN NOT {_overflow(name)} THEN try_sum({state_column(name, 'sum')}) END"

    def scale(self, name: str) -> str | None:
        return f"sum({state_column(name, 'abs')})"


@dataclass(frozen=True)
class Avg(_Total):
    """Mean of the non-null values: decimal(38, max(6, s)) rounded half up, or double."""

    kind = "avg"

    def value(self, name: str) -> str:
        count = f"sum({state_column(name, 'n')})"
        mean = f"try_divide(try_sum({state_column(name, 'sum')}), {count})"
        return f"CASE WHEN NOT {_overflow(name)} AND {count} > 0 THEN {mean} END"

    def scale(self, name: str) -> str | None:
        return f"try_divide(sum({state_column(name, 'abs')}), sum({state_column(name, 'n')}))"


def _is_decimal(type_: str) -> bool:
    return type_.startswith("decimal(") or type_ in ("tinyint", "smallint", "int", "bigint")


def _digits(type_: str) -> int:
    return int(type_[len("decimal(") :].split(",")[0]) if type_.startswith("decimal(") else 19


def _scale(type_: str) -> int:
    return int(type_.rstrip(")").split(",")[1]) if type_.startswith("decimal(") else 0

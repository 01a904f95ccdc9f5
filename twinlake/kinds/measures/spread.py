"""Owns the measures of spread: Variance, Stddev.

Exact numbers keep their sum and the sum of their squares, as whole numbers. Doubles keep (n, mean, m2) and
are merged by the formulas of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
computing sample variances" (1979): sums of squares would leave nothing of the spread of large values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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

_NOT_FINITE, _TOO_LARGE = 1, 2
_LIMIT = "3.196670515523576E147D"
"""2^490: the squares of smaller doubles add up to no more than a double, 2^43 of them."""
_SMALL_DIGITS = 18
"""Exact numbers of so many digits have a square in decimal(37)."""
_MOST_DECIMALS = 18
_NOTHING = "CAST(NULL AS DOUBLE)"
_TINY = "1E-300D"
"""Forgiven in any m2: below it squares of doubles lose digits."""
_SPLIT = "134217729D"
"""2^27 + 1 parts a double into 26 digits and the rest (Veltkamp): the sum of the first parts is exact where
the values are alike, so that the mean of equal values is their value."""
_CHAN = """aggregate(
  collect_list(CASE WHEN {m2} IS NOT NULL
    THEN struct(CAST({n} AS DOUBLE) AS n, {mean} AS mean, {m2} AS m2, {size} AS size) END),
  struct(0D AS n, 0D AS mean, 0D AS m2, 0D AS size),
  (a, b) -> struct(
    a.n + b.n AS n,
    a.mean + (b.mean - a.mean) * (b.n / (a.n + b.n)) AS mean,
    a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * (b.n / (a.n + b.n)) AS m2,
    a.size + (b.size - a.size) * (b.n / (a.n + b.n)) AS size),
  a -> struct(a.mean AS mean, a.m2 AS m2, a.size AS size, {scale} AS scale))"""


class _Spread(Measure):
    """State: `n`; `flags` of what was not finite or too large; `mean`, `m2` and their tolerances `size` and
    `scale` of doubles; `sum` and `squares` of exact numbers in units of 10^-`digits`. What belongs to the
    other sort of numbers is NULL, so that one view reads both."""

    semantics = Semantics(
        equality="exact numbers exactly; of doubles, the variance within 1e-9 of"
        " (m2 + 1e-5 |mean| sqrt(n m2)) / (n - 1)",
        ties="-",
        null="left out",
        nan="NaN or an infinity makes NaN; -0.0 is 0.0",
        empty="NULL, as for a single value",
        overflow="NULL where the squares of exact numbers, in units of their last digit, leave decimal(38),"
        " or a double is 2^490 (3.2e147) or more",
    )

    def refuses(self, types: Mapping[str, str]) -> str | None:
        type_ = types[self.of]
        if not (is_decimal(type_) or type_ in FLOATS):
            return f"{type_} is not a number"
        if scale(type_) > _MOST_DECIMALS:
            return f"{type_} has more than {_MOST_DECIMALS} decimals; cast it to fewer, or to double"
        return None

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        type_ = types[self.of]
        if is_decimal(type_):
            column = quote.name(self.of)
            return _parts_of_exact(name, column, _whole(column, type_), scale(type_))
        return _parts_of_doubles(name, f"CAST({quote.name(self.of)} AS DOUBLE)")

    def stored_parts(self, name: str, states: Mapping[str, str]) -> tuple[Part, ...]:
        is_exact = states[f"{name}__squares"] != "double"
        return _parts_of_exact(name, "0", "0", 0) if is_exact else _parts_of_doubles(name, "0D")

    def running(self, name: str, *, scaled: bool) -> tuple[Part, ...]:
        """Moments of doubles from their values, the means of single rows: to merge moments takes a list."""
        doubles = _parts_of_doubles(name, state_column(name, "mean"))
        moments = (replace(part, merge=part.from_rows) for part in doubles if part.scale is not None)
        n, flags = _sum(name, "n"), f"bit_or({state_column(name, 'flags')})"
        squares, sum_ = (f"try_sum({state_column(name, part)})" for part in ("squares", "sum"))
        decimals = f"max({state_column(name, 'digits')})"
        past = f"({decimals} IS NOT NULL AND {n} > 0 AND {squares} IS NULL)"
        merges = {
            "n": n, "flags": f"CASE WHEN {past} THEN {_TOO_LARGE} ELSE {flags} END",
            "sum": sum_, "squares": squares, "digits": decimals,
        }  # fmt: skip
        others = (Part(name=f"{name}__{of}", from_rows="", merge=sql) for of, sql in merges.items())
        return (*moments, *others)


def _parts_of_doubles(name: str, value: str) -> tuple[Part, ...]:
    finite = f"CASE WHEN abs({value}) < {_LIMIT} THEN {value} END"
    high = f"({_SPLIT} * {finite} - ({_SPLIT} * {finite} - {finite}))"
    count = f"count({finite})"
    flag = (
        f"CASE WHEN NOT {is_finite(value)} THEN {_NOT_FINITE}"
        f" WHEN NOT abs({value}) < {_LIMIT} THEN {_TOO_LARGE} ELSE 0 END"
    )
    flags, past = f"bit_or({flag})", f"bit_or({state_column(name, 'flags')})"
    mean = f"(try_divide(sum({high}), {count}) + try_divide(sum({finite} - {high}), {count}))"
    m2 = f"var_pop({finite}) * {count}"
    n, moments = _sum(name, "n"), _moments(name)
    known = f"{past} = 0 AND {n} > 0"

    def part(of: str, from_rows: str, scale: str | None) -> Part:
        return Part(
            name=f"{name}__{of}",
            from_rows=f"CASE WHEN {flags} = 0 THEN {from_rows} END",
            merge=f"CASE WHEN {known} THEN {moments}.{of} END",
            scale=None if scale is None else f"{name}__{scale}",
        )

    return (
        Part(name=f"{name}__n", from_rows=f"count({value})", merge=n),
        Part(name=f"{name}__flags", from_rows=flags, merge=past),
        part("mean", mean, "size"),
        part("m2", m2, "scale"),
        part("size", f"avg(abs({finite}))", "size"),
        # without one of its own it is not compared: the root in it makes much of small differences
        part("scale", _scale(count, mean, f"({m2})"), None),
        Part(name=f"{name}__sum", from_rows=_NOTHING, merge=_NOTHING),
        Part(name=f"{name}__squares", from_rows=_NOTHING, merge=_NOTHING),
        Part(name=f"{name}__digits", from_rows="CAST(NULL AS INT)", merge="CAST(NULL AS INT)"),
    )


def _parts_of_exact(name: str, value: str, whole: str, decimals: int) -> tuple[Part, ...]:
    square = f"CAST(try_multiply({whole}, {whole}) AS DECIMAL(38,0))"
    # as in totals: what decides only grows, so it overflows in every cut or in none
    over = f"(count({square}) < count({value}) OR count({value}) > 0 AND try_sum({square}) IS NULL)"
    n, squares = _sum(name, "n"), f"try_sum({state_column(name, 'squares')})"
    past = f"(bit_or({state_column(name, 'flags')}) <> 0 OR {n} > 0 AND {squares} IS NULL)"

    def flags(condition: str) -> str:
        return f"CASE WHEN {condition} THEN {_TOO_LARGE} ELSE 0 END"

    def part(of: str, from_rows: str) -> Part:
        merge = f"CASE WHEN NOT {past} THEN try_sum({state_column(name, of)}) END"
        return Part(name=f"{name}__{of}", from_rows=f"CASE WHEN NOT {over} THEN {from_rows} END", merge=merge)

    none = (Part(name=f"{name}__{of}", from_rows=_NOTHING, merge=_NOTHING) for of in _OF_DOUBLES)
    return (
        Part(name=f"{name}__n", from_rows=f"count({value})", merge=n),
        Part(name=f"{name}__flags", from_rows=flags(over), merge=flags(past)),
        *none,
        part("sum", f"try_sum(CAST({whole} AS DECIMAL(38,0)))"),
        part("squares", f"try_sum({square})"),
        Part(
            name=f"{name}__digits",
            from_rows=f"CAST({decimals} AS INT)",
            merge=f"max({state_column(name, 'digits')})",
        ),
    )


_OF_DOUBLES = ("mean", "m2", "size", "scale")


def _whole(column: str, type_: str) -> str:
    """SQL of an exact number in units of its last digit; NULL where that is beyond decimal(38)."""
    length = _SMALL_DIGITS if digits(type_) <= _SMALL_DIGITS else 38
    unit = f"CAST(1{'0' * scale(type_)} AS DECIMAL({scale(type_) + 1},0))"
    return f"try_cast(try_multiply({column}, {unit}) AS DECIMAL({length},0))"


def _sum(name: str, part: str) -> str:
    return f"sum({state_column(name, part)})"


def _moments(name: str) -> str:
    columns = {part: state_column(name, part) for part in ("n", "mean", "m2", "size")}
    return _CHAN.format(**columns, scale=_scale("a.n", "a.mean", "a.m2"))


def _scale(n: str, mean: str, m2: str) -> str:
    return f"{m2} + 1E-5D * abs({mean}) * sqrt({n} * {m2}) + {_TINY}"


def _variance(name: str) -> str:
    n, flags = _sum(name, "n"), f"bit_or({state_column(name, 'flags')})"
    is_double = f"max({state_column(name, 'digits')}) IS NULL"
    # squares that fit in each state may not in all of them together
    past = f"NOT {is_double} AND try_sum({state_column(name, 'squares')}) IS NULL"
    return (
        f"CASE WHEN {n} < 2 OR {flags} = {_TOO_LARGE} OR {past} THEN {_NOTHING}"
        f" WHEN {flags} <> 0 THEN CAST('NaN' AS DOUBLE)"
        f" ELSE if({is_double}, {_moments(name)}.m2, {_exact_m2(name)}) / ({n} - 1) END"
    )


def _exact_m2(name: str) -> str:
    """The sum of squares about the mean: whole numbers about the whole number next to it, then the rest.

    With q near sum/n and r = sum - q n: the sum of (x - q)^2 is squares - q (sum + r), and r^2 / n too much.
    """
    n = _sum(name, "n")
    total, squares = (
        f"CAST(try_sum({state_column(name, part)}) AS DECIMAL(38,0))" for part in ("sum", "squares")
    )
    near = f"CAST(round(try_divide({total}, {n})) AS DECIMAL(38,0))"
    rest = f"try_subtract({total}, try_multiply({near}, CAST({n} AS DECIMAL(20,0))))"
    whole = f"try_subtract({squares}, try_multiply({near}, try_add({total}, {rest})))"
    over = f"CAST({rest} AS DOUBLE) * CAST({rest} AS DOUBLE) / {n}"
    unit = f"pow(10D, 2 * max({state_column(name, 'digits')}))"
    return f"(greatest(CAST({whole} AS DOUBLE) - {over}, 0D) / {unit})"


@dataclass(frozen=True)
class Variance(_Spread):
    """Sample variance of the non-null values, a double; NULL for fewer than two."""

    kind = "variance"

    def value(self, name: str) -> str:
        return _variance(name)

    def scale(self, name: str) -> str | None:
        return f"try_divide({_moments(name)}.scale, {_sum(name, 'n')} - 1)"


@dataclass(frozen=True)
class Stddev(_Spread):
    """Sample standard deviation of the non-null values, a double; NULL for fewer than two."""

    kind = "stddev"

    def value(self, name: str) -> str:
        return f"sqrt({_variance(name)})"

    def scale(self, name: str) -> str | None:
        # that of the variance over the deviation: what the root makes of a difference
        n = _sum(name, "n")
        mean = f"abs({_moments(name)}.mean) * sqrt(try_divide({n}, {n} - 1))"
        is_exact = f"max({state_column(name, 'digits')}) IS NOT NULL"
        return f"CASE WHEN NOT {is_exact} THEN {self.value(name)} + 1E-5D * {mean} + 1E-145D END"

"""Owns Variance and Stddev: exact numbers by whole numbers, doubles from the smallest of their group on."""

from __future__ import annotations

from twinlake.witness.exact import digits, high, huge, is_beyond, joined, low, whole
from twinlake.witness.measured import Measured, Spec
from twinlake.witness.refused import Refused
from twinlake.witness.result import Rule
from twinlake.witness.types import DOUBLE

_LIMIT = 2.0**490
"""Doubles from here on have squares that may leave the doubles."""
_WHOLE_LIMIT = 10**19
"""Whole numbers from here on have squares of more than 38 digits."""
_NEAR = (
    "{{w}} IS NOT DISTINCT FROM {{s}}"
    " OR coalesce(isfinite({{w}}) AND isfinite({{s}}) AND abs({{w}} - {{s}}) <= {0}, false)"
)
_DOUBLES = Rule(_NEAR.format("1e-9 * {size}"), beside=("size",))
_EXACT = Rule(_NEAR.format("1e-12 * abs({w})"))
"""The value is a double that is made of whole numbers in a few steps, each of which rounds."""


def variance(spec: Spec) -> Measured:
    return _of_doubles(spec, is_root=False) if spec.type.is_floating else _of_exact(spec, is_root=False)


def deviation(spec: Spec) -> Measured:
    return _of_doubles(spec, is_root=True) if spec.type.is_floating else _of_exact(spec, is_root=True)


def _of_doubles(spec: Spec, *, is_root: bool) -> Measured:
    """Each value less the group's smallest: large values with a small spread keep their digits."""
    double, moved = f"CAST({spec.of} AS DOUBLE)", spec.part("moved")
    usable = f"isfinite({double}) AND abs({double}) < {_LIMIT!r}"
    n, found, mean = spec.part("n"), spec.part("found"), spec.part("mean")
    parts = {
        n: f"count({spec.of})",
        spec.part("odd"): f"count(*) FILTER (WHERE NOT isfinite({double}))",
        spec.part("large"): f"count(*) FILTER (WHERE isfinite({double}) AND abs({double}) >= {_LIMIT!r})",
        found: f"var_samp({moved})",
        mean: f"avg({double}) FILTER (WHERE {usable})",
    }
    value = (
        f"CASE WHEN {n} < 2 THEN NULL WHEN {spec.part('odd')} > 0 THEN CAST('NaN' AS DOUBLE)"
        f" WHEN {spec.part('large')} > 0 THEN NULL ELSE {_root(found, is_root)} END"
    )
    if is_root:
        size = f"sqrt({found}) + 1e-5 * abs({mean}) * sqrt({n} / ({n} - 1)) + 1e-145"
    else:
        m2 = f"{found} * ({n} - 1)"
        size = f"({m2} + 1e-5 * abs({mean}) * sqrt({n} * {m2}) + 1e-300) / ({n} - 1)"
    known = f"CASE WHEN {n} > 1 THEN {size} END"
    least = f"min({double}) FILTER (WHERE {usable})"
    return Measured(
        type=DOUBLE, parts=parts, value=value, rule=_DOUBLES, beside={spec.part("size"): known},
        shifted={moved: (f"CASE WHEN {usable} THEN {double} END", least)},
    )  # fmt: skip


def _of_exact(spec: Spec, *, is_root: bool) -> Measured:
    """With q the whole number next to the mean and r = sum - q n: the squares about q add up to
    squares - q (sum + r), those about the mean to r^2 / n less. NULL where squares have over 38 digits."""
    if not (spec.type.is_integer or spec.type.name == "decimal"):
        raise Refused(f"measure {spec.name}", f"a variance of {spec.type.spark}")
    value = whole(spec.of, spec.type)
    is_small = "true" if digits(spec.type) < 19 else f"abs({value}) < {huge(_WHOLE_LIMIT)}"
    small = f"CASE WHEN {is_small} THEN {value} END"
    n, sum_ = spec.part("n"), spec.part("sum")
    squares = (spec.part("squares_high"), spec.part("squares_low"))
    parts = {
        n: f"count({spec.of})",
        spec.part("small"): f"count({small})",
        sum_: f"sum({small})",
        squares[0]: high(f"({small} * {small})"),
        squares[1]: low(f"({small} * {small})"),
    }
    count = f"CAST({n} AS HUGEINT)"
    sign = f"CASE WHEN {sum_} < 0 THEN -1 ELSE 1 END"
    near = f"({sign} * ((2 * abs({sum_}) + {count}) // (2 * {count})))"
    rest = f"({sum_} - {near} * {count})"
    about = f"CAST({joined(*squares)} - {near} * ({sum_} + {rest}) AS DOUBLE)"
    unit = f"CAST('1e{2 * spec.type.scale}' AS DOUBLE)"
    m2 = f"greatest({about} - CAST({rest} AS DOUBLE) * CAST({rest} AS DOUBLE) / {n}, 0) / {unit}"
    found = _root(f"({m2} / ({n} - 1))", is_root)
    is_past = f"({spec.part('small')} < {n} OR {is_beyond(*squares)})"
    return Measured(
        type=DOUBLE, parts=parts, rule=_EXACT,
        value=f"CASE WHEN {n} < 2 OR {is_past} THEN NULL ELSE {found} END",
    )  # fmt: skip


def _root(sql: str, is_root: bool) -> str:
    return f"sqrt({sql})" if is_root else sql

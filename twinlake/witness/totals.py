"""Owns Sum and Avg: exact, or of doubles with what is not finite, or too large, decided apart."""

from __future__ import annotations

from twinlake.witness.exact import SAFE_DIGITS, digits, high, huge, is_beyond, joined, low, number, whole
from twinlake.witness.measured import Measured, Spec
from twinlake.witness.refused import Refused
from twinlake.witness.result import EXACTLY, Rule
from twinlake.witness.types import DOUBLE, decimal

GREATEST = 1.7976931348623157e308
_SMALLER = 2.0**-100
"""Times this, doubles add up to no infinity: what tells whether their sum is one."""
_UNSURE = 1e-6
"""So near the end of the doubles (of it) rounding decides whether a sum leaves them: NULL is right, and so is
the sum."""
_MOST_DIGITS = 38
_ROUNDED_ONCE = 20
"""Spark rounds a quotient to 38 decimals, then to those shown; with more of them that may be another one."""
_DOUBLES = Rule(
    "{w} IS NOT DISTINCT FROM {s} OR {unsure} AND ({s} IS NULL OR isfinite({s})"
    f" AND abs({{s}} * {_SMALLER!r} - {{small}}) <= 1e-9 * {{small_size}}) OR"
    " coalesce(isfinite({w}) AND isfinite({s}) AND isfinite({size})"
    " AND abs({w} - {s}) <= 1e-9 * {size}, false)",
    beside=("size", "unsure", "small", "small_size"),
)


def total(spec: Spec) -> Measured:
    """The sum; NULL of nothing, and where the positive or the negative values alone leave the type."""
    if spec.type.is_floating:
        return _of_doubles(spec, "1")
    parts, is_past, sum_ = _exact(spec)
    scale = _scale(spec)
    value = f"CASE WHEN {spec.part('n')} > 0 AND NOT {is_past} THEN {number(sum_, scale)} END"
    return Measured(type=decimal(_MOST_DIGITS, scale), parts=parts, value=value)


def average(spec: Spec) -> Measured:
    """The mean: decimal(38, max(6, s)) rounded half up, or a double."""
    n = spec.part("n")
    if spec.type.is_floating:
        return _of_doubles(spec, f"nullif({n}, 0)")
    parts, is_past, sum_ = _exact(spec)
    scale = _scale(spec)
    shown = max(6, scale)
    more, count = huge(10 ** (shown - scale)), f"CAST({n} AS HUGEINT)"
    whole_, rest = f"(abs({sum_}) // {count})", f"(abs({sum_}) % {count})"
    rounded = f"({whole_} * {more} + (2 * {rest} * {more} + {count}) // (2 * {count}))"
    signed = f"(CASE WHEN {sum_} < 0 THEN -1 ELSE 1 END * {rounded})"
    end = huge(10 ** (_MOST_DIGITS - (shown - scale)))
    value = (
        f"CASE WHEN {n} = 0 OR {is_past} THEN NULL WHEN {whole_} >= {end} THEN NULL"
        f" WHEN {rounded} >= {huge(10**_MOST_DIGITS)} THEN NULL ELSE {number(signed, shown)} END"
    )
    rule = EXACTLY
    if shown > _ROUNDED_ONCE:
        last = f"CAST('1e-{shown}' AS DECIMAL({_MOST_DIGITS},{shown}))"
        rule = Rule(f"{{w}} IS NOT DISTINCT FROM {{s}} OR coalesce(abs({{w}} - {{s}}) <= {last}, false)")
    return Measured(type=decimal(_MOST_DIGITS, shown), parts=parts, value=value, rule=rule)


def _scale(spec: Spec) -> int:
    if not (spec.type.is_integer or spec.type.name == "decimal"):
        raise Refused(f"measure {spec.name}", f"a sum of {spec.type.spark}")
    return spec.type.scale


def _exact(spec: Spec) -> tuple[dict[str, str], str, str]:
    """Aggregates; whether the sum is past its end; the sum in units of the last digit."""
    n, of = spec.part("n"), spec.of
    parts = {n: f"count({of})"}
    if digits(spec.type) <= SAFE_DIGITS:
        parts[spec.part("sum")] = f"sum({of})"
        sum_ = spec.part("sum") if spec.type.is_integer else whole(spec.part("sum"), spec.type)
        return parts, "false", sum_
    value = whole(of, spec.type)
    sides = {"up": f"greatest({value}, 0)", "down": f"least({value}, 0)", "sum": value}
    for name, side in sides.items():
        parts[spec.part(f"{name}_high")] = high(side)
        parts[spec.part(f"{name}_low")] = low(side)
    halves = {name: (spec.part(f"{name}_high"), spec.part(f"{name}_low")) for name in sides}
    is_past = f"({is_beyond(*halves['up'])} OR {is_beyond(*halves['down'])})"
    return parts, is_past, joined(*halves["sum"])


def _of_doubles(spec: Spec, over: str) -> Measured:
    """The sum over a number."""
    size, value = f"{spec.part('size')} / {over}", f"{_double(spec)} / {over}"
    double, n = f"CAST({spec.of} AS DOUBLE)", spec.part("n")
    finite = f"FILTER (WHERE isfinite({double}))"
    parts = {
        n: f"count({spec.of})",
        spec.part("nan"): f"count(*) FILTER (WHERE isnan({double}))",
        spec.part("above"): f"count(*) FILTER (WHERE isinf({double}) AND {double} > 0)",
        spec.part("below"): f"count(*) FILTER (WHERE isinf({double}) AND {double} < 0)",
        spec.part("sum"): f"fsum({double}) {finite}",
        spec.part("size"): f"fsum(abs({double})) {finite}",
        spec.part("up"): f"sum(greatest({double}, 0) * {_SMALLER!r}) {finite}",
        spec.part("down"): f"sum(least({double}, 0) * {_SMALLER!r}) {finite}",
    }
    end = GREATEST * _SMALLER
    ratio = f"(coalesce(greatest({spec.part('up')}, -{spec.part('down')}), 0) / {end!r})"
    beside = {
        spec.part("size"): f"least(coalesce({size}, 0), {GREATEST!r})",
        spec.part("unsure"): f"abs({ratio} - 1) < {_UNSURE!r} AND NOT {_is_odd(spec)}",
        spec.part("small"): f"coalesce(({spec.part('up')} + {spec.part('down')}) / {over}, 0)",
        spec.part("small_size"): f"coalesce(({spec.part('up')} - {spec.part('down')}) / {over}, 0)",
    }
    return Measured(type=DOUBLE, parts=parts, value=value, rule=_DOUBLES, beside=beside)


def _is_odd(spec: Spec) -> str:
    """Whether a value is not finite: those decide, whatever the others add up to."""
    nan, above, below = (spec.part(name) for name in ("nan", "above", "below"))
    return f"({nan} + {above} + {below} > 0)"


def _double(spec: Spec) -> str:
    nan, above, below = (spec.part(name) for name in ("nan", "above", "below"))
    end = GREATEST * _SMALLER
    return (
        f"(CASE WHEN {nan} > 0 OR ({above} > 0 AND {below} > 0) THEN CAST('NaN' AS DOUBLE)"
        f" WHEN {above} > 0 THEN CAST('Infinity' AS DOUBLE) WHEN {below} > 0 THEN CAST('-Infinity' AS DOUBLE)"
        f" WHEN greatest({spec.part('up')}, -{spec.part('down')}) > {end!r} THEN NULL"
        f" ELSE {spec.part('sum')} END)"
    )

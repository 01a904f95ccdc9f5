"""Owns intervals that are written out, added to times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from twinlake.witness.rules.coercion import to
from twinlake.witness.rules.term import Call, Scope, Term, cast
from twinlake.witness.rules.times import within_years
from twinlake.witness.types import BIGINT, DATE, INT, TIMESTAMP

_DAY_US = 86_400_000_000
_MONTHS = {"year": 12, "month": 1}
_US: Mapping[str, int] = {
    "week": 7 * _DAY_US, "day": _DAY_US, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000,
    "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Months, or microseconds; `of_days` where Spark adds it to a date as days."""

    months: int = 0
    us: int = 0
    of_days: bool = False


def read(node: exp.Expression, scope: Scope) -> Interval:
    """INTERVAL 1 DAY, INTERVAL '1.5' SECOND, and several of these; Refused for other forms."""
    if isinstance(node, exp.Paren):
        return read(node.this, scope)
    if isinstance(node, exp.Add):
        one, other = read(node.this, scope), read(node.expression, scope)
        if bool(one.months) != bool(other.months):
            raise scope.refused(node, "months and days in one interval are not listed")
        both = one.of_days and other.of_days
        return Interval(months=one.months + other.months, us=one.us + other.us, of_days=both)
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        raise scope.refused(node, "this form of an interval is not listed")
    return _single(node, scope)


def _single(node: exp.Expression, scope: Scope) -> Interval:
    value, unit = node.this, node.args["unit"].name.lower().removesuffix("s")
    negative = isinstance(value, exp.Neg)
    text = value.this.name if negative else value.name
    try:
        number = Decimal(text) * (-1 if negative else 1)
    except InvalidOperation:
        raise scope.refused(node, "this number of an interval is not listed") from None
    if unit in _MONTHS and number == int(number):
        return Interval(months=int(number) * _MONTHS[unit])
    us = number * _US.get(unit, 0)
    if unit not in _US or us != int(us) or (unit != "second" and number != int(number)):
        raise scope.refused(node, "this form of an interval is not listed")
    return Interval(us=int(us), of_days=unit in ("day", "week"))


def is_interval(node: exp.Expression) -> bool:
    """Whether this operand of + or - is an interval that is written out."""
    if isinstance(node, exp.Paren):
        return is_interval(node.this)
    if isinstance(node, exp.Add):
        return is_interval(node.this) and is_interval(node.expression)
    return isinstance(node, exp.Interval)


def moved(node: exp.Expression, scope: Scope) -> Term:
    """time + INTERVAL, INTERVAL + time, time - INTERVAL."""
    of_time, of_interval = node.this, node.expression
    if is_interval(of_time) and isinstance(node, exp.Add):
        of_time, of_interval = of_interval, of_time
    term, interval = scope.term(of_time), read(of_interval, scope)
    sign = -1 if isinstance(node, exp.Sub) else 1
    call = Call(name="+", terms=(term,), node=node, scope=scope)
    if term.type == DATE and (interval.of_days or interval.months):
        by = f"to_months({cast(str(sign * interval.months), INT)})" if interval.months else (
            cast(str(sign * interval.us // _DAY_US), INT)
        )  # fmt: skip
        return Term(sql=within_years(call, cast(f"({term.sql} + {by})", DATE), DATE), type=DATE)
    if term.type not in (DATE, TIMESTAMP):
        raise scope.refused(node, f"{term.type.spark} with an interval is not listed")
    if interval.months:
        by = f"to_months({cast(str(sign * interval.months), INT)})"
    else:
        by = f"to_microseconds({cast(str(sign * interval.us), BIGINT)})"
    return Term(sql=within_years(call, f"({to(term, TIMESTAMP).sql} + {by})", TIMESTAMP), type=TIMESTAMP)

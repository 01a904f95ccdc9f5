"""Owns decimals divided exactly: whole numbers of 38 digits, rounded half up as Spark rounds."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules.coercion import MAX_PRECISION, adjusted, decimal_of, to
from twinlake.witness.rules.term import Scope, Term, bind, cast
from twinlake.witness.types import DOUBLE, STRING, Type, decimal

_WIDEST = decimal(MAX_PRECISION, 0)


def divided(one: Term, other: Term, node: exp.Expression, scope: Scope) -> Term:
    """one / other. By zero it raises, as in Spark."""
    if not (one.type.is_number and other.type.is_number):
        raise scope.refused(node, f"{one.type.spark} / {other.type.spark} is not listed")
    if "decimal" not in (one.type.name, other.type.name) or one.type.is_floating or other.type.is_floating:
        made = bind(
            [to(one, DOUBLE), to(other, DOUBLE)],
            lambda left, right: (
                f"CASE WHEN {left} IS NOT NULL AND {right} = 0 THEN error('division by zero') "
                f"ELSE {left} / {right} END"
            ),
        )
        return Term(sql=f"({made})", type=DOUBLE)
    mine, its = decimal_of(one), decimal_of(other)
    scale = max(6, mine.scale + its.precision + 1)
    found = adjusted(mine.precision - mine.scale + its.scale + scale, scale)
    left, right = Term(sql=cast(one.sql, mine), type=mine), Term(sql=cast(other.sql, its), type=its)
    return Term(sql=quotient(left, right, found, node, scope), type=found)


def quotient(one: Term, other: Term, found: Type, node: exp.Expression, scope: Scope) -> str:
    """SQL of one / other, both decimals, as the decimal `found`; it raises where 38 digits are too few."""
    more = found.scale - one.type.scale + other.type.scale
    if more < 0 or more > MAX_PRECISION:
        raise scope.refused(node, f"{one.type.spark} / {other.type.spark} is not listed")
    if other.type.precision + found.scale > MAX_PRECISION:
        # Spark rounds at 39 digits first: with divisors as long as this, a second rounding may differ
        raise scope.refused(node, f"{one.type.spark} / {other.type.spark} is not listed: too many digits")
    above = f"(CAST({10**more} AS HUGEINT) * {unscaled(one)})"
    units = bind(
        [Term(sql=above, type=_WIDEST), Term(sql=unscaled(other), type=_WIDEST)],
        lambda top, bottom: (
            f"CASE WHEN {top} IS NOT NULL AND {bottom} = 0 THEN error('division by zero') "
            f"ELSE sign({top}) * sign({bottom}) * "
            f"((2 * abs({top}) + abs({bottom})) // (2 * abs({bottom}))) END"
        ),
    )
    return scaled(units, found)


def unscaled(term: Term) -> str:
    """The decimal in units of its last digit, a HUGEINT."""
    type_ = term.type
    if type_.scale == 0:
        return f"CAST({term.sql} AS HUGEINT)"
    if type_.precision + type_.scale > MAX_PRECISION:
        return f"CAST(replace({cast(term.sql, STRING)}, '.', '') AS HUGEINT)"
    wide = cast(term.sql, decimal(MAX_PRECISION, type_.scale))
    return f"CAST({wide} * CAST({10**type_.scale} AS {_WIDEST.duckdb}) AS HUGEINT)"


def scaled(units: str, found: Type) -> str:
    """So many units of the last digit as the decimal `found`; raises where they do not fit."""
    if found.scale == 0:
        return cast(units, found)
    unit = f"CAST('{'0.' + '0' * (found.scale - 1) + '1'}' AS {decimal(MAX_PRECISION, found.scale).duckdb})"
    return cast(f"({cast(f'({units})', _WIDEST)} * {unit})", found)

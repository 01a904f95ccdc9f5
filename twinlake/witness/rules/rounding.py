"""The family of roundings, and of arithmetic that is NULL where it cannot be done."""

from __future__ import annotations

from twinlake.witness.rules import doubles
from twinlake.witness.rules.arithmetic import computed
from twinlake.witness.rules.coercion import MAX_PRECISION, common, decimal_of, to
from twinlake.witness.rules.division import divided, unscaled
from twinlake.witness.rules.term import Call, Function, Term, bind, cast
from twinlake.witness.types import BIGINT, DOUBLE, decimal

_LONGEST = 18
_RANGES = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


def rounded(call: Call) -> Term:
    """Half away from zero, to so many digits after the point (none without a second operand)."""
    call.takes(1, 2)
    term = call.terms[0]
    digits = call.number(1) if len(call.terms) == 2 else 0
    if term.type.name == "decimal":
        return _rounded_decimal(term, digits)
    if term.type.is_integer:
        return term if digits >= 0 else _rounded_integer(term, -digits, call)
    if term.type != DOUBLE or not 0 <= digits < doubles.DIGITS:
        raise call.refused()
    return Term(sql=bind([term], lambda it: doubles.rounded(it, digits, call.guarded)), type=DOUBLE)


def _rounded_decimal(term: Term, digits: int) -> Term:
    """Spark has one more digit before the point, for 9.9 that becomes 10."""
    whole = term.type.precision - term.type.scale + 1
    if digits >= 0:
        scale = min(term.type.scale, digits)
        found = decimal(min(whole + scale, MAX_PRECISION), scale)
        return Term(sql=cast(term.sql, found), type=found)
    found = decimal(min(max(whole, 1 - digits), MAX_PRECISION), 0)
    step = 10 ** (term.type.scale - digits)
    if step >= 10**MAX_PRECISION:
        return Term(sql=f"(CASE WHEN {term.sql} IS NOT NULL THEN {cast('0', found)} END)", type=found)
    units = Term(sql=unscaled(term), type=found)
    return Term(sql=cast(_to_step(units, step, 10**-digits), found), type=found)


def _rounded_integer(term: Term, digits: int, call: Call) -> Term:
    if digits > _LONGEST:
        raise call.refused()
    wide = Term(sql=f"CAST({term.sql} AS HUGEINT)", type=BIGINT)
    return Term(sql=cast(_to_step(wide, 10**digits, 10**digits), term.type), type=term.type)


def _to_step(units: Term, step: int, times: int) -> str:
    """Whole numbers in steps of `step`, half away from zero, `times` as much."""
    half, wide = f"CAST({step // 2} AS HUGEINT)", f"CAST({step} AS HUGEINT)"
    return bind(
        [units],
        lambda it: (
            f"(({it} + CASE WHEN {it} < 0 THEN -{half} ELSE {half} END) // {wide} * CAST({times} AS HUGEINT))"
        ),
    )


def floor_or_ceil(call: Call) -> Term:
    call.takes(1)
    (term,) = call.terms
    name = "floor" if call.name == "floor" else "ceil"
    if term.type.is_integer:
        return to(term, BIGINT)
    if term.type.name == "decimal":
        whole = term.type.precision - term.type.scale + 1
        found = term.type if term.type.scale == 0 else decimal(min(whole, MAX_PRECISION), 0)
        return Term(sql=cast(f"{name}({term.sql})", found), type=found)
    if not term.type.is_floating:
        raise call.refused()
    sql = bind(
        [to(term, DOUBLE)],
        lambda it: call.guarded(
            f"NOT abs({it}) < 9e18", cast(f"{name}({it})", BIGINT), "a number that no bigint holds"
        ),
    )
    return Term(sql=f"({sql})", type=BIGINT)


def square_root(call: Call) -> Term:
    call.takes(1)
    (term,) = call.terms
    if not term.type.is_number:
        raise call.refused()
    sql = bind([to(term, DOUBLE)], lambda it: f"CASE WHEN {it} < 0 THEN 'nan'::DOUBLE ELSE sqrt({it}) END")
    return Term(sql=f"({sql})", type=DOUBLE)


def positive_modulo(call: Call) -> Term:
    """pmod of whole numbers."""
    call.takes(2)
    type_ = common(call.terms[0].type, call.terms[1].type)
    if type_ is None or not type_.is_integer:
        raise call.refused()
    sql = bind(
        [to(term, type_) for term in call.terms],
        lambda one, other: (
            f"CASE WHEN {one} % {other} < 0 THEN ({one} % {other} + {other}) % {other} "
            f"ELSE {one} % {other} END"
        ),
    )
    return Term(sql=cast(f"({sql})", type_), type=type_)


def tried(call: Call) -> Term:
    """try_add, try_subtract, try_multiply of whole numbers: NULL where the type does not hold the result."""
    call.takes(2)
    one, other = call.terms
    type_ = common(one.type, other.type)
    if type_ is None:
        raise call.refused()
    sign = {"try_add": "+", "try_subtract": "-", "try_multiply": "*"}[call.name]
    if type_ == DOUBLE and "decimal" not in call.types:
        return computed(sign, one, other, call.node, call.scope)
    if not type_.is_integer:
        raise call.refused()
    wide = Term(sql=f"(CAST({one.sql} AS HUGEINT) {sign} CAST({other.sql} AS HUGEINT))", type=BIGINT)
    bound = _RANGES[type_.name]
    sql = bind(
        [wide], lambda it: f"CASE WHEN {it} BETWEEN {-bound} AND {bound - 1} THEN {cast(it, type_)} END"
    )
    return Term(sql=f"({sql})", type=type_)


def tried_division(call: Call) -> Term:
    """NULL by zero."""
    call.takes(2)
    one, other = call.terms
    if not (one.type.is_number and other.type.is_number):
        raise call.refused()
    zero = Term(sql=f"CASE WHEN {other.sql} <> 0 THEN {other.sql} END", type=other.type)
    if other.type.is_integer and one.type.name == "decimal":
        its = decimal_of(other)
        zero = Term(sql=cast(zero.sql, its), type=its)
    return divided(one, zero, call.node, call.scope)


FUNCTIONS: dict[str, Function] = {
    "round": rounded, "floor": floor_or_ceil, "ceil": floor_or_ceil, "ceiling": floor_or_ceil,
    "sqrt": square_root, "pmod": positive_modulo,
    "try_add": tried, "try_subtract": tried, "try_multiply": tried, "try_divide": tried_division,
}  # fmt: skip

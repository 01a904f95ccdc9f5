"""The family of numbers: + - * / % div, with Spark's result types, and rounding."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules import literals
from twinlake.witness.rules.coercion import MAX_PRECISION, adjusted, common, decimal_of, to
from twinlake.witness.rules.division import divided
from twinlake.witness.rules.term import Call, Function, Rule, Scope, Term, bind, cast
from twinlake.witness.types import BIGINT, DOUBLE, Type, decimal

_SIGNS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%"}


def operation(node: exp.Expression, scope: Scope) -> Term:
    """+ - * and % of two numbers."""
    one, other = scope.term(node.this), scope.term(node.expression)
    return computed(_SIGNS[type(node)], one, other, node, scope)


def computed(sign: str, one: Term, other: Term, node: exp.Expression, scope: Scope) -> Term:
    if not (one.type.is_number and other.type.is_number):
        raise scope.refused(node, f"{one.type.spark} {sign} {other.type.spark} is not listed")
    type_ = common(one.type, other.type)
    if one.type.is_floating or other.type.is_floating:
        type_ = one.type if one.type == other.type else DOUBLE
        return Term(sql=f"({to(one, type_).sql} {sign} {to(other, type_).sql})", type=type_)
    if "decimal" not in (one.type.name, other.type.name) and type_ is not None:
        return Term(sql=f"({to(one, type_).sql} {sign} {to(other, type_).sql})", type=type_)
    return _decimals(sign, one, other)


def _decimals(sign: str, one: Term, other: Term) -> Term:
    """Exact in DuckDB's widest decimal, where it fits (else DuckDB raises), then rounded half up."""
    mine, its = decimal_of(one), decimal_of(other)
    scale = max(mine.scale, its.scale)
    whole = max(mine.precision - mine.scale, its.precision - its.scale)
    if sign == "*":
        found = adjusted(mine.precision + its.precision + 1, mine.scale + its.scale)
    elif sign == "%":
        least = min(mine.precision - mine.scale, its.precision - its.scale)
        found = adjusted(least + scale, scale)
    else:
        found = adjusted(whole + scale + 1, scale)
    if sign == "*":
        scales = (mine.scale, its.scale)
    else:
        scales = (scale, scale)
    left, right = (
        cast(cast(term.sql, type_), decimal(MAX_PRECISION, digits))
        for term, type_, digits in zip((one, other), (mine, its), scales, strict=True)
    )
    return Term(sql=cast(f"({left} {sign} {right})", found), type=found)


def division(node: exp.Expression, scope: Scope) -> Term:
    """/ of decimals is a decimal, of other numbers a double."""
    one, other = scope.term(node.this), scope.term(node.expression)
    return divided(one, other, node, scope)


def whole_division(node: exp.Expression, scope: Scope) -> Term:
    """DIV, cut towards zero, is a bigint."""
    one, other = scope.term(node.this), scope.term(node.expression)
    if not (one.type.is_integer and other.type.is_integer):
        raise scope.refused(node, f"{one.type.spark} DIV {other.type.spark} is not listed")
    return Term(sql=f"({cast(one.sql, BIGINT)} // {cast(other.sql, BIGINT)})", type=BIGINT)


def minus(node: exp.Expression, scope: Scope) -> Term:
    if (written := literals.negated(node, scope)) is not None:
        return written
    term = scope.term(node.this)
    if not term.type.is_number:
        raise scope.refused(node, f"- {term.type.spark} is not listed")
    return Term(sql=_negative(term.sql, term.type), type=term.type)


def _negative(sql: str, type_: Type) -> str:
    return f"(-{sql})" if type_.is_floating else cast(f"(-{sql})", type_)


def absolute(call: Call) -> Term:
    call.takes(1)
    (term,) = call.terms
    if not term.type.is_number:
        raise call.refused()
    return Term(sql=cast(f"abs({term.sql})", term.type), type=term.type)


def sign_of(call: Call) -> Term:
    call.takes(1)
    (term,) = call.terms
    if not term.type.is_number or term.type.name == "decimal":
        raise call.refused()
    made = bind([to(term, DOUBLE)], lambda it: f"CASE WHEN isnan({it}) THEN {it} ELSE sign({it}) END")
    return Term(sql=cast(made, DOUBLE), type=DOUBLE)


def modulo(call: Call) -> Term:
    call.takes(2)
    one, other = call.terms
    return computed("%", one, other, call.node, call.scope)


NODES: dict[type[exp.Expression], Rule] = {
    **dict.fromkeys(_SIGNS, operation), exp.Div: division, exp.IntDiv: whole_division, exp.Neg: minus,
}  # fmt: skip
FUNCTIONS: dict[str, Function] = {"abs": absolute, "sign": sign_of, "signum": sign_of, "mod": modulo}

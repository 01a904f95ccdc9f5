"""The family of numbers: + - * / % div, with Spark's result types, and rounding."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from twinlake.witness.refused import guarded
from twinlake.witness.rules import intervals, literals, times
from twinlake.witness.rules.coercion import MAX_PRECISION, adjusted, common, decimal_of, to
from twinlake.witness.rules.division import divided
from twinlake.witness.rules.term import Call, Function, Rule, Scope, Term, bind, cast
from twinlake.witness.types import BIGINT, DATE, DOUBLE, UP_TO_INT, decimal

_TURNED_DIGITS = 34
_SIGNS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%"}


def operation(node: exp.Expression, scope: Scope) -> Term:
    """+ - * and % of two numbers."""
    if intervals.is_interval(node.this) or intervals.is_interval(node.expression):
        return intervals.moved(node, scope)
    one, other = scope.term(node.this), scope.term(node.expression)
    if one.type == DATE and other.type.name in UP_TO_INT:
        name = "date_sub" if isinstance(node, exp.Sub) else "date_add"
        if isinstance(node, (exp.Add, exp.Sub)):
            return times.added_days(Call(name=name, terms=(one, other), node=node, scope=scope))
    return computed(_SIGNS[type(node)], one, other, node, scope)


def computed(sign: str, one: Term, other: Term, node: exp.Expression, scope: Scope) -> Term:
    if not (one.type.is_number and other.type.is_number):
        raise scope.refused(node, f"{one.type.spark} {sign} {other.type.spark} is not listed")
    type_ = common(one.type, other.type)
    if one.type.is_floating or other.type.is_floating:
        type_ = one.type if one.type == other.type else DOUBLE
        if sign == "%":
            return Term(sql=_floating_rest(to(one, type_), to(other, type_)), type=type_)
        return Term(sql=f"({to(one, type_).sql} {sign} {to(other, type_).sql})", type=type_)
    if "decimal" not in (one.type.name, other.type.name) and type_ is not None:
        return Term(sql=f"({to(one, type_).sql} {sign} {to(other, type_).sql})", type=type_)
    return _decimals(sign, one, other)


def _floating_rest(one: Term, other: Term) -> str:
    """By zero it raises, as in Spark."""
    made = bind(
        [one, other],
        lambda left, right: (
            f"CASE WHEN {left} IS NOT NULL AND {right} = 0 THEN error('division by zero') "
            f"ELSE {left} % {right} END"
        ),
    )
    return f"({made})"


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
    return Term(sql=_negatable(term, node, scope, lambda it: f"(-{it})"), type=term.type)


def _negatable(term: Term, node: exp.Expression, scope: Scope, make: Callable[[str], str]) -> str:
    """Spark keeps 34 digits of a decimal whose sign it turns."""
    if term.type.name != "decimal" or term.type.precision <= _TURNED_DIGITS:
        return cast(make(term.sql), term.type)
    most = f"CAST('{Decimal(f'1E{_TURNED_DIGITS - term.type.scale}'):f}' AS {term.type.duckdb})"
    return bind(
        [term],
        lambda it: guarded(
            f"abs({it}) >= {most}",
            cast(make(it), term.type),
            scope.text(node),
            "a decimal of more than 34 digits whose sign Spark turns",
        ),
    )


def absolute(call: Call) -> Term:
    call.takes(1)
    (term,) = call.terms
    if not term.type.is_number:
        raise call.refused()
    return Term(sql=_negatable(term, call.node, call.scope, lambda it: f"abs({it})"), type=term.type)


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


def bits(node: exp.Expression, scope: Scope) -> Term:
    """& | ^ of whole numbers. Where such signs meet others, the two grammars may bind otherwise."""
    if not all(isinstance(it, _ATOMS) for it in (node.this, node.expression)):
        raise scope.refused(node, "operands of & | ^ need parentheses")
    one, other = scope.term(node.this), scope.term(node.expression)
    type_ = common(one.type, other.type)
    if type_ is None or not type_.is_integer:
        raise scope.refused(node, f"{one.type.spark} and {other.type.spark} have no bits")
    left, right = to(one, type_).sql, to(other, type_).sql
    name = _BITS[type(node)]
    sql = f"xor({left}, {right})" if name == "xor" else f"({left} {name} {right})"
    return Term(sql=cast(sql, type_), type=type_)


def inverted(node: exp.Expression, scope: Scope) -> Term:
    term = scope.term(node.this)
    if not isinstance(node.this, _ATOMS) or not term.type.is_integer:
        raise scope.refused(node, f"~ {term.type.spark} is not listed")
    return Term(sql=cast(f"(~{term.sql})", term.type), type=term.type)


_ATOMS = (exp.Paren, exp.Column, exp.Literal, exp.Anonymous, exp.TryCast)
_BITS: dict[type[exp.Expression], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "xor"}
NODES: dict[type[exp.Expression], Rule] = {
    **dict.fromkeys(_BITS, bits), exp.BitwiseNot: inverted, **dict.fromkeys(_SIGNS, operation),
    exp.Div: division, exp.IntDiv: whole_division, exp.Neg: minus,
}  # fmt: skip
FUNCTIONS: dict[str, Function] = {"abs": absolute, "sign": sign_of, "signum": sign_of, "mod": modulo}

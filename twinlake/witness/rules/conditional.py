"""The family of choices: CASE, IF, coalesce, nullif, greatest, least."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules.coercion import common_of, is_widened_exactly, to
from twinlake.witness.rules.logic import comparison, condition, unified
from twinlake.witness.rules.term import Call, Function, Rule, Scope, Term, bind
from twinlake.witness.types import BOOLEAN, SCALARS


def case(node: exp.Expression, scope: Scope) -> Term:
    """Without an operand each WHEN is a condition, with one it is compared with it."""
    branches = node.args["ifs"]
    conditions = []
    for branch in branches:
        if node.this is None:
            conditions.append(condition(branch.this, scope).sql)
        else:
            conditions.append(
                comparison(exp.EQ(this=node.this.copy(), expression=branch.this.copy()), scope).sql
            )
    values = [scope.term(branch.args["true"]) for branch in branches]
    default = node.args.get("default")
    if default is not None:
        values.append(scope.term(default))
    values = unified(node, scope, values)
    whens = " ".join(f"WHEN {one} THEN {it.sql}" for one, it in zip(conditions, values, strict=False))
    otherwise = f" ELSE {values[-1].sql}" if default is not None else ""
    return Term(sql=f"(CASE {whens}{otherwise} END)", type=values[0].type)


def if_(node: exp.Expression, scope: Scope) -> Term:
    when = condition(node.this, scope)
    otherwise = node.args.get("false")
    values = [scope.term(node.args["true"]), *([scope.term(otherwise)] if otherwise is not None else [])]
    values = unified(node, scope, values)
    rest = f" ELSE {values[1].sql}" if otherwise is not None else ""
    return Term(sql=f"(CASE WHEN {when.sql} THEN {values[0].sql}{rest} END)", type=values[0].type)


def coalesce(call: Call) -> Term:
    terms = unified(call.node, call.scope, list(call.terms))
    return Term(sql=f"coalesce({', '.join(term.sql for term in terms)})", type=terms[0].type)


def if_null(call: Call) -> Term:
    call.takes(2)
    return coalesce(call)


def null_if(call: Call) -> Term:
    """NULL where both are equal; else the first, in its own type."""
    call.takes(2)
    one, other = call.node.expressions
    equal = comparison(exp.EQ(this=one.copy(), expression=other.copy()), call.scope)
    first = call.terms[0]
    return Term(sql=f"(CASE WHEN {equal.sql} THEN NULL ELSE {first.sql} END)", type=first.type)


def if_not_null(call: Call) -> Term:
    """nvl2: the second where the first is not NULL, else the third."""
    call.takes(3)
    terms = unified(call.node, call.scope, list(call.terms[1:]))
    first = call.terms[0].sql
    sql = f"(CASE WHEN {first} IS NOT NULL THEN {terms[0].sql} ELSE {terms[1].sql} END)"
    return Term(sql=sql, type=terms[0].type)


def extreme(call: Call) -> Term:
    """greatest and least pass over NULL in both engines; NaN is the greatest number."""
    type_ = common_of(call.terms)
    if len(call.terms) < 2 or type_ is None or type_.name not in SCALARS:
        raise call.refused()
    if not all(is_widened_exactly(term.type, type_) for term in call.terms):
        raise call.refused()
    listed = ", ".join(to(term, type_).sql for term in call.terms)
    return Term(sql=f"{call.name}({listed})", type=type_)


def is_null(call: Call) -> Term:
    call.takes(1)
    word = "IS NULL" if call.name == "isnull" else "IS NOT NULL"
    return Term(sql=f"({call.terms[0].sql} {word})", type=BOOLEAN)


def is_nan(call: Call) -> Term:
    """False for NULL."""
    call.takes(1)
    if not call.terms[0].type.is_floating:
        raise call.refused()
    return Term(sql=f"coalesce(isnan({call.terms[0].sql}), false)", type=BOOLEAN)


def nan_or(call: Call) -> Term:
    """nanvl: the second where the first is NaN."""
    call.takes(2)
    if call.types not in (("double", "double"), ("float", "float")):
        raise call.refused()
    one, other = call.terms
    sql = bind([one], lambda it: f"CASE WHEN isnan({it}) THEN {other.sql} ELSE {it} END")
    return Term(sql=f"({sql})", type=one.type)


NODES: dict[type[exp.Expression], Rule] = {exp.Case: case, exp.If: if_}
FUNCTIONS: dict[str, Function] = {
    "coalesce": coalesce, "ifnull": if_null, "nvl": if_null, "nvl2": if_not_null, "nullif": null_if,
    "greatest": extreme, "least": extreme, "isnull": is_null, "isnotnull": is_null, "isnan": is_nan,
    "nanvl": nan_or,
}  # fmt: skip

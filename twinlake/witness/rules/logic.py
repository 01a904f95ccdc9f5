"""The family of conditions: AND, OR, NOT, comparisons, IN, BETWEEN, IS, LIKE."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules import literals
from twinlake.witness.rules.coercion import common_of, compared, is_widened_exactly, to
from twinlake.witness.rules.term import Rule, Scope, Term, bind
from twinlake.witness.types import BOOLEAN, DATE, SCALARS, TIMESTAMP, Type, text_literal

_SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip
_COMPARED = {*SCALARS, "binary", "timestamp_ntz", "void"}
_LOOSE = (*_SIGNS, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.And, exp.Or)
"""Beside a comparison without parentheses Spark's and sqlglot's grammars may bind otherwise."""


def condition(node: exp.Expression, scope: Scope) -> Term:
    """The operand as a condition; Refused for another type than boolean."""
    term = scope.term(node)
    if term.type.name not in ("boolean", "void"):
        raise scope.refused(node, f"it is {term.type.spark}, and a condition is boolean")
    return to(term, BOOLEAN)


def connected(node: exp.Expression, scope: Scope) -> Term:
    one, other = condition(node.this, scope), condition(node.expression, scope)
    word = "AND" if isinstance(node, exp.And) else "OR"
    return Term(sql=f"({one.sql} {word} {other.sql})", type=BOOLEAN)


def negation(node: exp.Expression, scope: Scope) -> Term:
    return Term(sql=f"(NOT {condition(node.this, scope).sql})", type=BOOLEAN)


def comparison(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node.this, _LOOSE) or isinstance(node.expression, _LOOSE):
        raise scope.refused(node, "conditions in a comparison need parentheses")
    one, other = _same(node, scope, scope.term(node.this), scope.term(node.expression))
    return Term(sql=f"({one.sql} {_SIGNS[type(node)]} {other.sql})", type=BOOLEAN)


def _same(node: exp.Expression, scope: Scope, one: Term, other: Term) -> tuple[Term, Term]:
    """Both in the type in which Spark compares them."""
    one, other = _promoted(one, other.type, node, scope), _promoted(other, one.type, node, scope)
    type_ = compared(one, other)
    if type_ is None or type_.name not in _COMPARED:
        raise scope.refused(node, f"comparing {one.type.spark} and {other.type.spark} is not listed")
    return to(one, type_), to(other, type_)


def _promoted(term: Term, beside: Type, node: exp.Expression, scope: Scope) -> Term:
    """A text that is written out beside a time is read as one."""
    if isinstance(term.literal, str) and beside in (DATE, TIMESTAMP):
        return literals.time(term.literal, beside, node, scope)
    return term


def membership(node: exp.Expression, scope: Scope) -> Term:
    if node.args.get("query") or node.args.get("field") or node.args.get("unnest"):
        raise scope.refused(node, "IN with anything but written operands is not listed")
    if isinstance(node.this, _LOOSE):
        raise scope.refused(node, "conditions before IN need parentheses")
    first = scope.term(node.this)
    items = [_promoted(scope.term(item), first.type, node, scope) for item in node.expressions]
    type_ = common_of([first, *items])
    if type_ is None or type_.name not in _COMPARED:
        shown = ", ".join(sorted({item.type.spark for item in items}))
        raise scope.refused(node, f"{first.type.spark} IN ({shown}) is not listed")
    listed = ", ".join(to(item, type_).sql for item in items)
    return Term(sql=f"({to(first, type_).sql} IN ({listed}))", type=BOOLEAN)


def between(node: exp.Expression, scope: Scope) -> Term:
    if node.args.get("symmetric") or isinstance(node.this, _LOOSE):
        raise scope.refused(node, "this BETWEEN is not listed")
    value = scope.term(node.this)
    low, value_low = _same(node, scope, scope.term(node.args["low"]), value)
    high, value_high = _same(node, scope, scope.term(node.args["high"]), value)
    if value_low == value_high == value:
        made = bind([value], lambda it: f"({it} >= {low.sql} AND {it} <= {high.sql})")
    else:
        made = f"({value_low.sql} >= {low.sql} AND {value_high.sql} <= {high.sql})"
    return Term(sql=made, type=BOOLEAN)


def is_(node: exp.Expression, scope: Scope) -> Term:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        return Term(sql=f"({scope.term(node.this).sql} IS NULL)", type=BOOLEAN)
    if isinstance(wanted, exp.Boolean):
        word = "TRUE" if wanted.this else "FALSE"
        return Term(sql=f"({condition(node.this, scope).sql} IS {word})", type=BOOLEAN)
    raise scope.refused(node, "this IS is not listed")


def like(node: exp.Expression, scope: Scope) -> Term:
    """LIKE with a pattern that is written out. The escape is a backslash, or the one that is named."""
    pattern, escape = node.expression, "\\"
    if isinstance(node.parent, exp.Escape):
        escape = node.parent.expression.this
    value = scope.term(node.this)
    written = scope.term(pattern).literal if isinstance(pattern, (exp.Literal, exp.RawString)) else None
    if value.type.name != "string" or not isinstance(written, str) or len(escape) != 1:
        raise scope.refused(node, "LIKE takes a text and a pattern that is written out")
    after = written
    while (at := after.find(escape)) >= 0:
        if after[at + 1 : at + 2] not in ("%", "_", escape):
            raise scope.refused(node, "this escape in a pattern is not listed")
        after = after[at + 2 :]
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    sql = f"({value.sql} {word} {text_literal(written)} ESCAPE {text_literal(escape)})"
    return Term(sql=sql, type=BOOLEAN)


def escaped(node: exp.Expression, scope: Scope) -> Term:
    if not isinstance(node.this, exp.Like) or not isinstance(node.expression, exp.Literal):
        raise scope.refused(node, "this ESCAPE is not listed")
    return like(node.this, scope)


def unified(node: exp.Expression, scope: Scope, terms: list[Term]) -> list[Term]:
    """The terms in the one type that Spark gives them; Refused where it is not listed."""
    type_ = common_of(terms)
    if type_ is None or not all(is_widened_exactly(term.type, type_) for term in terms):
        shown = ", ".join(term.type.spark for term in terms)
        raise scope.refused(node, f"{shown} have no common type that is listed")
    return [to(term, type_) for term in terms]


NODES: dict[type[exp.Expression], Rule] = {
    **dict.fromkeys(_SIGNS, comparison),
    exp.And: connected, exp.Or: connected, exp.Not: negation, exp.In: membership, exp.Between: between,
    exp.Is: is_, exp.Like: like, exp.Escape: escaped,
}  # fmt: skip

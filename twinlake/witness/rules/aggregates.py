"""The family of aggregates, over the groups of a SELECT and over windows. NULL is left out."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from twinlake.witness.rules.coercion import MAX_PRECISION
from twinlake.witness.rules.division import quotient
from twinlake.witness.rules.term import Call, Term, cast
from twinlake.witness.types import BIGINT, BOOLEAN, DOUBLE, SCALARS, Type, decimal

Aggregate = Callable[[Call, str, bool], Term]
"""Of a call, what follows it (FILTER, OVER), and whether it is over distinct values."""
_MORE_DIGITS, _MORE_OF_MEAN = 10, 4
_COUNT = decimal(18, 0)
"""Of rows that are divided by; beyond it DuckDB raises."""
_EXACT = 2**53


def is_approximate(call: Call) -> bool:
    """Whether the last digits follow the order in which the rows come: sums and means of doubles."""
    return call.name in ("sum", "avg", "mean") and any(term.type.is_floating for term in call.terms)


def count(call: Call, tail: str, distinct: bool) -> Term:
    if len(call.terms) != 1 and not _is_star(call):
        raise call.refused("count takes one operand here")
    if distinct and call.types[0] not in SCALARS:
        raise call.refused()
    what = "*" if _is_star(call) else ("DISTINCT " if distinct else "") + call.terms[0].sql
    return Term(sql=f"count({what}){tail}", type=BIGINT)


def _is_star(call: Call) -> bool:
    return len(call.node.expressions) == 1 and isinstance(call.node.expressions[0], exp.Star)


def total(call: Call, tail: str, distinct: bool) -> Term:
    """A bigint, a decimal of ten digits more, or a double. What does not fit raises, as in Spark."""
    call.takes(1)
    (term,) = call.terms
    word = "DISTINCT " if distinct else ""
    if term.type.is_integer:
        return Term(sql=cast(f"sum({word}{term.sql}){tail}", BIGINT), type=BIGINT)
    if term.type.name == "decimal":
        found = _total_type(term.type)
        return Term(sql=cast(_wide_total(term, word, tail), found), type=found)
    if not term.type.is_floating or distinct:
        raise call.refused()
    return Term(sql=f"sum({cast(term.sql, DOUBLE)}){tail}", type=DOUBLE)


def _total_type(type_: Type) -> Type:
    return decimal(min(type_.precision + _MORE_DIGITS, MAX_PRECISION), type_.scale)


def _wide_total(term: Term, word: str, tail: str) -> str:
    return f"sum({word}{cast(term.sql, decimal(MAX_PRECISION, term.type.scale))}){tail}"


def mean(call: Call, tail: str, distinct: bool) -> Term:
    """Of decimals a decimal of four digits more after the point, rounded half up; else a double."""
    call.takes(1)
    (term,) = call.terms
    if distinct:
        raise call.refused()
    counted = f"count({term.sql}){tail}"
    if term.type.name == "decimal":
        found = decimal(
            min(term.type.precision + _MORE_OF_MEAN, MAX_PRECISION),
            min(term.type.scale + _MORE_OF_MEAN, MAX_PRECISION),
        )
        summed = _total_type(term.type)
        above = Term(sql=cast(_wide_total(term, "", tail), summed), type=summed)
        below = Term(sql=cast(f"nullif({counted}, 0)", _COUNT), type=_COUNT)
        return Term(sql=quotient(above, below, found, call.node, call.scope), type=found)
    if term.type.is_integer:
        # Spark adds doubles: exact as long as no sum of some of them can leave what a double holds
        sizes = f"sum(abs(CAST({term.sql} AS HUGEINT))){tail}"
        value = f"CAST(sum({term.sql}){tail} AS DOUBLE) / {counted}"
        guarded = call.guarded(
            f"{sizes} >= {_EXACT}", f"CASE WHEN {counted} > 0 THEN {value} END", "a long sum"
        )
        return Term(sql=f"({guarded})", type=DOUBLE)
    if not term.type.is_floating:
        raise call.refused()
    return Term(sql=f"avg({cast(term.sql, DOUBLE)}){tail}", type=DOUBLE)


def extreme(call: Call, tail: str, distinct: bool) -> Term:
    """min and max: NaN is the greatest number."""
    call.takes(1)
    (term,) = call.terms
    if term.type.name not in SCALARS:
        raise call.refused()
    return Term(sql=f"{call.name}({term.sql}){tail}", type=term.type)


def count_if(call: Call, tail: str, distinct: bool) -> Term:
    call.takes(1)
    if call.types[0] != "boolean" or distinct:
        raise call.refused()
    return Term(sql=f"count(CASE WHEN {call.terms[0].sql} THEN 1 END){tail}", type=BIGINT)


def whether(call: Call, tail: str, distinct: bool) -> Term:
    """bool_and and every, bool_or."""
    call.takes(1)
    if call.types[0] != "boolean" or distinct:
        raise call.refused()
    name = "bool_and" if call.name in ("bool_and", "every") else "bool_or"
    return Term(sql=f"{name}({call.terms[0].sql}){tail}", type=BOOLEAN)


AGGREGATES: dict[str, Aggregate] = {
    "count": count, "sum": total, "avg": mean, "mean": mean, "min": extreme, "max": extreme,
    "count_if": count_if, "bool_and": whether, "every": whether, "bool_or": whether,
}  # fmt: skip

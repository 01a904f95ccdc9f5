"""Owns Spark's implicit types (ANSI mode): what two operands become, and the SQL that makes them that."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from twinlake.witness.rules.term import Term, cast
from twinlake.witness.types import DOUBLE, INTEGERS, TIMESTAMP, Type, array, decimal, struct

MAX_PRECISION = 38
_LEAST_SCALE = 6
"""Digits after the point that Spark keeps where a decimal's own do not fit."""
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_EXACT_DIGITS = 15
"""Decimals of so many digits are whole multiples that a double holds exactly."""


def decimal_of(term: Term) -> Type:
    """The decimal that Spark makes of a whole number: a written one has the digits it has."""
    if term.type.name == "decimal":
        return term.type
    if isinstance(term.literal, int):
        return decimal(len(str(abs(term.literal))), 0)
    return decimal(_DIGITS[term.type.name], 0)


def adjusted(precision: int, scale: int) -> Type:
    """A result's decimal: one that does not fit loses digits after the point, but for six."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _LEAST_SCALE)))


def wider_decimal(one: Type, other: Type) -> Type | None:
    """The decimal that holds both; None where none does."""
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def common(one: Type, other: Type) -> Type | None:
    """The type that both become where they are compared or meet in one column; None: not listed."""
    if one == other:
        return one
    if "void" in (one.name, other.name):
        return other if one.name == "void" else one
    if one.is_number and other.is_number:
        return _common_number(one, other)
    if {one.name, other.name} == {"date", "timestamp"}:
        return TIMESTAMP
    if one.name == other.name == "array":
        element = common(one.element, other.element)
        return None if element is None else array(element)
    if one.name == other.name == "struct" and len(one.fields) == len(other.fields):
        return _common_struct(one, other)
    return None


def _common_struct(one: Type, other: Type) -> Type | None:
    found: list[tuple[str, Type]] = []
    for (name, mine), (theirs, its) in zip(one.fields, other.fields, strict=True):
        type_ = common(mine, its) if name == theirs else None
        if type_ is None:
            return None
        found.append((name, type_))
    return struct(*found)


def _common_number(one: Type, other: Type) -> Type | None:
    names = {one.name, other.name}
    if names <= set(INTEGERS):
        return max(one, other, key=lambda it: INTEGERS.index(it.name))
    if one.is_floating or other.is_floating:
        return DOUBLE  # with a float, too: a whole number or a decimal does not fit into one
    return wider_decimal(
        *(it if it.name == "decimal" else decimal(_DIGITS[it.name], 0) for it in (one, other))
    )


def common_of(terms: Sequence[Term]) -> Type | None:
    """The type that all become: of the columns of CASE, coalesce, IN, greatest."""

    found: Type | None = terms[0].type if terms else None
    for term in terms[1:]:
        found = None if found is None else common(found, term.type)
    return found


def compared(one: Term, other: Term) -> Type | None:
    """The type in which two operands are compared: a written number beside a decimal is a small one."""
    if "decimal" in (one.type.name, other.type.name) and not (one.type.is_floating or other.type.is_floating):
        if one.type.is_number and other.type.is_number:
            return wider_decimal(decimal_of(one), decimal_of(other))
    return common(one.type, other.type)


def to(term: Term, type_: Type) -> Term:
    """The operand as a value of a type that `common` has named for it."""
    if term.type == type_:
        return term
    return Term(sql=_widened(term.sql, term.type, type_), type=type_)


def _widened(sql: str, given: Type, wanted: Type) -> str:
    if given.name == "decimal" and wanted.is_floating:
        return decimal_to_double(sql, given)
    return cast(sql, wanted)


def decimal_to_double(sql: str, given: Type) -> str:
    """The double that is nearest to a decimal, as Java finds it; DuckDB divides, which rounds twice."""
    if given.precision <= _EXACT_DIGITS:
        return cast(sql, DOUBLE)
    return cast(cast(sql, Type(name="string")), DOUBLE)


def is_widened_exactly(given: Type, wanted: Type) -> bool:
    """Whether `to` may be asked for these, nested ones too: each part is cast by DuckDB as by Spark."""
    if given == wanted or given.name == "void":
        return True
    if given.is_nested:
        pairs = zip(given.fields, wanted.fields, strict=True)
        return all(
            is_widened_exactly(mine, its) and not (mine.name == "decimal" and its.is_floating)
            for (_, mine), (_, its) in pairs
        )
    return True


def literal_type(value: int | Decimal) -> Type:
    """The decimal of a number that is written out."""
    sign, digits, exponent = Decimal(value).as_tuple()
    del sign
    scale = max(-int(exponent), 0)
    return decimal(max(len(digits) + max(int(exponent), 0), scale, 1), scale)

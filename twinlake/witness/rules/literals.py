"""The family of what is written out: numbers, texts, times, NULL."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from twinlake.witness.rules.coercion import MAX_PRECISION, literal_type
from twinlake.witness.rules.term import Scope, Term, cast
from twinlake.witness.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
    text_literal,
)

_INT, _BIGINT = 2**31, 2**63
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z?")
_PLAIN_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")


def literal(node: exp.Expression, scope: Scope) -> Term:
    if node.is_string:
        return string(node.this)
    return number(node.this, node, scope)


def raw_string(node: exp.Expression, scope: Scope) -> Term:
    return string(node.this)


def string(value: str) -> Term:
    return Term(sql=text_literal(value), type=STRING, literal=value)


def number(text: str, node: exp.Expression, scope: Scope, negative: bool = False) -> Term:
    """What Spark makes of the digits: an int, a bigint or a decimal, and with an exponent a double."""
    sign = "-" if negative else ""
    if "e" in text.lower():
        _refuse_infinite(text, node, scope)
        return Term(sql=f"CAST('{sign}{text}' AS DOUBLE)", type=DOUBLE)
    if not _PLAIN_NUMBER.fullmatch(text):
        raise scope.refused(node, "this number is not listed")
    if "." not in text:
        value = int(f"{sign}{text}")
        if -_INT <= value < _INT:
            return whole(value, INT)
        if -_BIGINT <= value < _BIGINT:
            return whole(value, BIGINT)
    return written_decimal(Decimal(f"{sign}{text}"), node, scope)


def whole(value: int, type_: Type) -> Term:
    return Term(sql=f"CAST({value} AS {type_.duckdb})", type=type_, literal=value)


def written_decimal(value: Decimal, node: exp.Expression, scope: Scope) -> Term:
    type_ = literal_type(value)
    if type_.precision > MAX_PRECISION:
        raise scope.refused(node, "this number has more than 38 digits")
    return Term(sql=f"CAST('{value:f}' AS {type_.duckdb})", type=type_, literal=value)


def boolean(node: exp.Expression, scope: Scope) -> Term:
    return Term(sql="true" if node.this else "false", type=BOOLEAN)


def null(node: exp.Expression, scope: Scope) -> Term:
    return Term(sql="NULL", type=VOID)


def hex_string(node: exp.Expression, scope: Scope) -> Term:
    if not re.fullmatch(r"([0-9A-Fa-f]{2})*", node.this):
        raise scope.refused(node, "this binary is not listed")
    return Term(sql=f"from_hex('{node.this}')", type=BINARY)


def adjacent(node: exp.Expression, scope: Scope) -> Term:
    """'a' 'b' is one text; sqlglot has no other use for its Concat here."""
    parts = [one.this for one in node.expressions if isinstance(one, exp.Literal) and one.is_string]
    if len(parts) != len(node.expressions):
        raise scope.refused(node, "this concatenation is not listed")
    return string("".join(parts))


def negated(node: exp.Expression, scope: Scope) -> Term | None:
    """-5 is a number that is written out; None for other operands."""
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(inner.this, node, scope, negative=True)
    return None


def time(text: str, type_: Type, node: exp.Expression, scope: Scope) -> Term:
    """DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00.5': UTC, of the years 1 to 9999."""
    form = _DATE if type_ == DATE else _TIME
    if type_ == TIMESTAMP and _DATE.fullmatch(text):
        text += " 00:00:00"
    try:
        if not form.fullmatch(text):
            raise ValueError
        (date if type_ == DATE else datetime).fromisoformat(text)
    except ValueError:
        raise scope.refused(node, f"this form of a {type_.name} is not listed") from None
    plain = text.removesuffix("Z").replace("T", " ")
    return Term(sql=cast(f"'{plain}'", type_), type=type_)


def typed_number(text: str, type_: Type, node: exp.Expression, scope: Scope) -> Term:
    """5L, 5S, 5Y, 1.5D, 1.5F, 1.5BD."""
    if type_.is_integer:
        if int(text) >> _BITS[type_.name]:
            raise scope.refused(node, f"{text} is no {type_.name}")
        return whole(int(text), type_)
    if type_.name == "decimal":
        if not _PLAIN_NUMBER.fullmatch(text):
            raise scope.refused(node, "this number is not listed")
        return written_decimal(Decimal(text), node, scope)
    _refuse_infinite(text, node, scope)
    return Term(sql=f"CAST('{text}' AS {type_.duckdb})", type=type_)


def _refuse_infinite(text: str, node: exp.Expression, scope: Scope) -> None:
    """Spark refuses digits beyond the range of a double."""
    if math.isinf(float(text)):
        raise scope.refused(node, "this number is beyond the range of a double")


NODES = {
    exp.Literal: literal, exp.RawString: raw_string, exp.Boolean: boolean, exp.Null: null,
    exp.HexString: hex_string, exp.Concat: adjacent,
}  # fmt: skip

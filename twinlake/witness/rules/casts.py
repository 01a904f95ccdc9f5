"""The family of casts that are written out; reading.py has those of texts."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from twinlake.witness.refused import guarded
from twinlake.witness.rules import doubles, literals
from twinlake.witness.rules.coercion import MAX_PRECISION, decimal_to_double
from twinlake.witness.rules.reading import read
from twinlake.witness.rules.term import Call, Function, Guard, Rule, Scope, Term, bind, cast
from twinlake.witness.text import cell
from twinlake.witness.types import (
    BIGINT,
    DATE,
    FLOATING,
    INTEGERS,
    STRING,
    TIMESTAMP,
    Type,
    array,
    decimal,
    mapping,
    simple,
    struct,
)

_NAMES = {
    exp.DataType.Type.BOOLEAN: "boolean", exp.DataType.Type.TINYINT: "tinyint",
    exp.DataType.Type.SMALLINT: "smallint", exp.DataType.Type.INT: "int", exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.FLOAT: "float", exp.DataType.Type.DOUBLE: "double", exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.BINARY: "binary", exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp", exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
}  # fmt: skip
_FUNCTIONS = ("boolean", *INTEGERS, *FLOATING, "string", "date", "timestamp")
SECOND_US = 1_000_000


def typed(node: exp.Expression, scope: Scope) -> Type:
    """The type that CAST names; Refused for one that is not listed."""
    kind = node.this
    inner = node.expressions
    if kind in _NAMES and not inner:
        return simple(_NAMES[kind])
    if kind == exp.DataType.Type.DECIMAL:
        digits = [int(one.name) for one in inner]
        precision, scale = (*digits, *(10, 0)[len(digits) :])[:2]
        if 0 <= scale <= precision <= MAX_PRECISION and precision:
            return decimal(precision, scale)
    if kind == exp.DataType.Type.ARRAY and len(inner) == 1:
        return array(typed(inner[0], scope))
    if kind == exp.DataType.Type.MAP and len(inner) == 2:
        return mapping(typed(inner[0], scope), typed(inner[1], scope))
    if kind == exp.DataType.Type.STRUCT and all(isinstance(one, exp.ColumnDef) for one in inner):
        return struct(*((one.this.name, typed(one.args["kind"], scope)) for one in inner))
    raise scope.refused(node, "a cast to this type is not listed")


def cast_(node: exp.Expression, scope: Scope) -> Term:
    """CAST, ::, TRY_CAST, and the forms of literals that sqlglot reads as casts."""
    type_ = typed(node.args["to"], scope)
    if node.args.get("format") or node.args.get("default"):
        raise scope.refused(node, "this cast is not listed")
    written = _literal(node, type_, scope)
    if written is not None:
        return written
    return converted(scope.term(node.this), type_, node, scope, try_=bool(node.args.get("safe")))


def _literal(node: exp.Expression, type_: Type, scope: Scope) -> Term | None:
    """5L, 1.5BD, DATE '2026-01-31'. Spark gives them digits of their own, which CAST(5 AS BIGINT) has not: of
    these sqlglot has other arguments."""
    inner = node.this
    if not isinstance(inner, exp.Literal) or "safe" in node.args:
        return None
    if type_ in (DATE, TIMESTAMP) and inner.is_string:
        return literals.time(inner.this, type_, node, scope)
    return literals.typed_number(inner.this, type_, node, scope) if type_.is_number else None


def converted(term: Term, type_: Type, node: exp.Expression, scope: Scope, try_: bool = False) -> Term:
    """The value as another type, as Spark casts it in ANSI mode; where it cannot be it raises, or is NULL."""
    given, wanted = term.type.name, type_.name
    if term.type == type_ or given == "void":
        return Term(sql=cast(term.sql, type_), type=type_)
    if given == "string":
        return Term(sql=read(term, type_, node, scope, try_), type=type_)
    rule = _RULES.get((given, wanted))
    # Spark's optimizer leaves a double away that a number only becomes on its way to a wide decimal
    is_on_its_way = (given, wanted) == ("double", "decimal") and term.sql.endswith("AS DOUBLE)")
    if rule is None or is_on_its_way or (try_ and not _never_raises(term.type, type_)):
        name = "TRY_CAST" if try_ else "CAST"
        raise scope.refused(node, f"{name}({term.type.spark} AS {type_.spark}) is not listed")

    def guard(condition: str, sql: str, why: str) -> str:
        return guarded(condition, sql, scope.text(node), why)

    return Term(sql=rule(term, type_, guard), type=type_)


def _never_raises(given: Type, wanted: Type) -> bool:
    return wanted.name in ("string", "boolean") or (given.name, wanted.name) == ("date", "timestamp")


def _plain(term: Term, type_: Type, guard: Guard) -> str:
    return cast(term.sql, type_)


def _decimal_to_int(term: Term, type_: Type, guard: Guard) -> str:
    return cast(f"trunc({cast(term.sql, decimal(38, term.type.scale))})", type_)


def _floating_to_int(term: Term, type_: Type, guard: Guard) -> str:
    return cast(f"trunc({term.sql})", type_)


def _decimal_to_double(term: Term, type_: Type, guard: Guard) -> str:
    return decimal_to_double(term.sql, term.type)


def _decimal_to_boolean(term: Term, type_: Type, guard: Guard) -> str:
    return f"({term.sql} <> 0)"


def _decimal_to_string(term: Term, type_: Type, guard: Guard) -> str:
    """DuckDB leaves the 0 before a point away where no digit may stand there."""
    if term.type.precision > term.type.scale:
        return cast(term.sql, STRING)
    return f"replace(replace('x' || {cast(term.sql, STRING)}, 'x-.', '-0.'), 'x.', '0.')"


def _boolean_to_decimal(term: Term, type_: Type, guard: Guard) -> str:
    return cast(cast(term.sql, simple("int")), type_)


def _time_to_int(term: Term, type_: Type, guard: Guard) -> str:
    return rounded_down(f"epoch_us({term.sql})", SECOND_US)


def rounded_down(us: str, unit: int) -> str:
    """Microseconds in whole units, the lower one before 1970, too."""
    if unit == 1:
        return us
    return f"({bind([Term(sql=us, type=BIGINT)], lambda it: f'{cell(it, unit)} // {unit}')})"


def _floating_to_decimal(term: Term, type_: Type, guard: Guard) -> str:
    return bind([term], lambda it: doubles.to_decimal(it, type_, guard))


_RULES: dict[tuple[str, str], Callable[[Term, Type, Guard], str]] = {
    **{(one, other): _plain for one in INTEGERS for other in (*INTEGERS, "double", "decimal", "string")},
    # of a longer number Spark's optimizer leaves the float away where it becomes a double
    ("tinyint", "float"): _plain,
    ("smallint", "float"): _plain,
    **{(one, "boolean"): _plain for one in INTEGERS},
    **{("boolean", other): _plain for other in (*INTEGERS, "double", "float", "string")},
    ("boolean", "decimal"): _boolean_to_decimal,
    **{("decimal", other): _decimal_to_int for other in INTEGERS},
    ("decimal", "decimal"): _plain,
    ("decimal", "double"): _decimal_to_double,
    ("decimal", "boolean"): _decimal_to_boolean,
    ("decimal", "string"): _decimal_to_string,
    **{(one, other): _floating_to_int for one in ("float", "double") for other in INTEGERS},
    ("double", "decimal"): _floating_to_decimal,
    ("float", "double"): _plain,
    ("double", "float"): _plain,
    ("date", "timestamp"): _plain,
    ("timestamp", "date"): _plain,
    ("date", "string"): _plain,
    ("timestamp", "string"): _plain,
    ("timestamp", "bigint"): _time_to_int,
}


def _named(name: str) -> Function:
    def rule(call: Call) -> Term:
        call.takes(1)
        return converted(call.terms[0], simple(name), call.node, call.scope)

    return rule


NODES: dict[type[exp.Expression], Rule] = {exp.Cast: cast_, exp.TryCast: cast_}
FUNCTIONS: dict[str, Function] = {name: _named(name) for name in _FUNCTIONS}

"""Owns the casts of texts: the plain forms that both engines read alike; a guard raises for every other."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from twinlake.witness.refused import guarded
from twinlake.witness.rules.term import Scope, Term, bind, cast
from twinlake.witness.types import Type, text_literal

_WHY = "a text that is not of the plain form"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


@dataclass(frozen=True, kw_only=True)
class _Form:
    """The texts that both engines read alike, and those that surely neither reads."""

    plain: str
    """A regular expression of the whole text, spaces at both ends left away."""
    wrong: str
    """Another: with TRY_CAST they are NULL."""


_WHOLE = _Form(plain=r"[+-]?[0-9]{1,30}", wrong=r"[ -~]*")
_POINT = _Form(plain=r"[+-]?[0-9]{1,60}(\.[0-9]{1,60})?", wrong=r"[ -~]*[!-*,/:-DF-df-~][ -~]*|")
_FLOATING = _Form(plain=r"[+-]?[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?", wrong=r"")
_TIMES = {
    "date": _Form(plain=_DAY, wrong=r"[ -/:-~]*"),
    "timestamp": _Form(plain=rf"{_DAY}([ T]{_HOUR}Z?)?", wrong=r"[ -/:-~]*"),
}


def read(term: Term, type_: Type, node: exp.Expression, scope: Scope, try_: bool) -> str:
    """A text as another type; of one that is not plain, it raises (`try_`: NULL where that is sure)."""
    text = scope.text(node)
    if type_.name == "binary":
        return f"encode({term.sql})"
    if type_.name == "boolean":
        return bind([term], lambda it: _boolean(it, text, try_))
    form = _form(type_)
    if form is None:
        raise scope.refused(node, f"CAST({term.type.spark} AS {type_.spark}) is not listed")
    return bind([term], lambda it: _formed(it, form, type_, text, try_))


def _form(type_: Type) -> _Form | None:
    if type_.is_integer:
        return _WHOLE
    if type_.is_floating:
        return _FLOATING
    return _POINT if type_.name == "decimal" else _TIMES.get(type_.name)


def _formed(it: str, form: _Form, type_: Type, text: str, try_: bool) -> str:
    trimmed = f"trim({it}, ' ')"
    if type_.name in _TIMES:
        converted = f"replace(rtrim({trimmed}, 'Z'), 'T', ' ')"
        # the year 0 is one of Spark's, and another of DuckDB's
        plain = f"(regexp_full_match({trimmed}, {_pattern(form.plain)}) AND {trimmed} NOT LIKE '0000%')"
    else:
        converted = trimmed
        plain = f"regexp_full_match({trimmed}, {_pattern(form.plain)})"
    value = f"TRY_{cast(converted, type_)}" if try_ else cast(converted, type_)
    rest = guarded(f"{it} IS NOT NULL", "NULL", text, _WHY)
    wrong = f"WHEN regexp_full_match({trimmed}, {_pattern(form.wrong)}) THEN NULL " if try_ else ""
    return f"CASE WHEN {plain} THEN {value} {wrong}ELSE {rest} END"


def _boolean(it: str, text: str, try_: bool) -> str:
    small = f"lower(trim({it}, ' '))"
    rest = guarded(f"{it} IS NOT NULL", "NULL", text, _WHY)
    wrong = f"WHEN regexp_full_match({it}, '[ -~]*') THEN NULL " if try_ else ""
    return (
        f"CASE WHEN {small} IN {_TRUE} THEN true WHEN {small} IN {_FALSE} THEN false {wrong}ELSE {rest} END"
    )


def _pattern(regular: str) -> str:
    return text_literal(regular)

"""Owns a translated expression, and how a rule names its operands more than once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from twinlake.witness.refused import Refused, guarded
from twinlake.witness.types import INT, Type

_REPEATABLE = 160
"""Characters of SQL up to which an operand is written twice; DuckDB computes equal ones once."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """DuckDB SQL with Spark's type of it. `sql` may stand wherever an operand may."""

    sql: str
    type: Type
    literal: int | Decimal | str | None = None
    """Its value where it is written out: Spark gives a number that is written the smallest decimal."""


class Scope(Protocol):
    """What a rule may ask while an expression is translated."""

    def term(self, node: exp.Expression) -> Term:
        """The translated operand; Refused."""

    def text(self, node: exp.Expression) -> str:
        """What the user wrote, for messages."""

    def refused(self, node: exp.Expression, why: str) -> Refused:
        """The refusal of this node."""


Rule = Callable[[exp.Expression, Scope], Term]
"""For a class of node. Refused where the types of its operands are not listed."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function, for its rule. `name` is in small letters."""

    name: str
    terms: tuple[Term, ...]
    node: exp.Expression
    scope: Scope

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the operands' types."""
        return tuple(term.type.name for term in self.terms)

    def takes(self, *counts: int) -> None:
        """Refused with another number of operands than these."""
        if len(self.terms) not in counts:
            raise self.refused(f"{self.name} with {len(self.terms)} operands is not listed")

    def refused(self, why: str | None = None) -> Refused:
        shown = ", ".join(term.type.spark for term in self.terms)
        return self.scope.refused(self.node, why or f"{self.name}({shown}) is not listed")

    def guarded(self, condition: str, sql: str, why: str) -> str:
        """The SQL, with a guard that raises for rows that meet the condition."""
        return guarded(condition, sql, self.scope.text(self.node), why)

    def number(self, index: int) -> int:
        """The operand as a whole number that is written out; Refused where it is none."""
        found = self.terms[index].literal
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.refused(f"operand {index + 1} of {self.name} has to be a number that is written out")
        return found

    def string(self, index: int) -> str:
        """The operand as a text that is written out; Refused where it is none."""
        found = self.terms[index].literal
        if not isinstance(found, str):
            raise self.refused(f"operand {index + 1} of {self.name} has to be a text that is written out")
        return found


Guard = Callable[[str, str, str], str]
"""Of a condition, SQL and why: the SQL, which raises for rows that meet the condition."""
Function = Callable[[Call], Term]
"""The rule of a function's name."""


def bind(terms: Sequence[Term], make: Callable[..., str]) -> str:
    """`make` of the operands' SQL, each of which it may name several times; it is computed once."""
    long = [index for index, term in enumerate(terms) if len(term.sql) > _REPEATABLE]
    names = [term.sql for term in terms]
    for index in long:
        names[index] = variable(terms[index].sql)
    made = make(*names)
    for index in reversed(long):
        made = f"list_transform([{terms[index].sql}], lambda {names[index]}: {made})[1]"
    return made


def variable(sql: str) -> str:
    """A name for this SQL's value, and for no other: nothing takes another's place in SQL that is nested."""
    return f"_let_{hashlib.sha256(sql.encode()).hexdigest()[:12]}"


def int_of(**functions: str) -> Function:
    """The rule of a function of one operand that shows an int: by the operand's type, DuckDB's function."""

    def rule(call: Call) -> Term:
        call.takes(1)
        name = functions.get(call.types[0])
        if name is None:
            raise call.refused()
        return Term(sql=cast(f"{name}({call.terms[0].sql})", INT), type=INT)

    return rule


def cast(sql: str, type_: Type) -> str:
    return f"CAST({sql} AS {type_.duckdb})"


def by_name(*families: Mapping[str, Function]) -> dict[str, Function]:
    """All functions of these families; a name may be in one of them."""
    found: dict[str, Function] = {}
    for family in families:
        if twice := found.keys() & family.keys():
            raise ValueError(f"two rules for {sorted(twice)}")
        found |= family
    return found

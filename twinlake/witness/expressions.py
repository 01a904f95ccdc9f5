"""Owns the translation of one Spark expression, as definitions have them, into DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from twinlake.base.errors import near
from twinlake.witness.refused import Refused, UnknownField
from twinlake.witness.rules import (
    arithmetic,
    casts,
    conditional,
    literals,
    logic,
    nested,
    rounding,
    texts,
    times,
    zones,
)
from twinlake.witness.rules.parser import parse, spark_text
from twinlake.witness.rules.term import Call, Function, Rule, Term, by_name
from twinlake.witness.types import Type, identifier, text_literal

NODES: dict[type[exp.Expression], Rule] = {
    **literals.NODES, **casts.NODES, **logic.NODES, **arithmetic.NODES, **conditional.NODES,
    **nested.NODES, **texts.NODES,
}  # fmt: skip
FUNCTIONS: dict[str, Function] = by_name(
    casts.FUNCTIONS, arithmetic.FUNCTIONS, rounding.FUNCTIONS, conditional.FUNCTIONS, nested.FUNCTIONS,
    texts.FUNCTIONS, times.FUNCTIONS, zones.FUNCTIONS,
)  # fmt: skip
"""The allow-list: a node or a function that no family lists is refused."""


@dataclass(frozen=True, kw_only=True)
class Translated:
    """DuckDB SQL over the same columns, quoted, and Spark's type of its value. For rows of which nobody knows
    whether both engines agree it raises what `refused.raised` reads."""

    sql: str
    type: Type


def translate(text: str, columns: Mapping[str, Type]) -> Translated:
    """What a Spark expression is in DuckDB. `columns` are the names that it may use, in any case, with their
    types; a field of a struct is `name.field`.

    Refused where it has a node, or operands of types, that are not listed.
    """
    tree = parse(text)
    term = Translation(columns).term(tree)
    return Translated(sql=term.sql, type=term.type)


class Translation:
    """One expression under way: the columns that it sees. It is the rules' `Scope`."""

    def __init__(self, columns: Mapping[str, Type]) -> None:
        self._columns = {name.lower(): (name, type_) for name, type_ in columns.items()}
        if len(self._columns) != len(columns):
            raise Refused(", ".join(columns), "columns' names differ by case alone")

    def term(self, node: exp.Expression) -> Term:
        if isinstance(node, exp.Paren):
            return self.term(node.this)
        if isinstance(node, exp.Column):
            return self.column([part.name for part in node.parts], node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return self.field(self.term(node.this), node.expression.name, node)
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        rule = NODES.get(type(node))
        if rule is None:
            raise self.refused(node, f"{type(node).__name__} is not listed")
        return rule(node, self)

    def _call(self, node: exp.Anonymous) -> Term:
        name = str(node.this).lower()
        rule = FUNCTIONS.get(name)
        if rule is None:
            raise self.refused(node, f"the function {name} is not listed")
        terms = tuple(self.term(operand) for operand in node.expressions)
        return rule(Call(name=name, terms=terms, node=node, scope=self))

    def column(self, parts: list[str], node: exp.Expression) -> Term:
        """A column, or a field of one."""
        found = self._columns.get(parts[0].lower())
        if found is None:
            raise self.refused(node, f"there is no column {parts[0]}")
        name, type_ = found
        term = Term(sql=identifier(name), type=type_)
        for part in parts[1:]:
            term = self.field(term, part, node)
        return term

    def field(self, term: Term, name: str, node: exp.Expression) -> Term:
        """A field of a struct; of a NULL it is NULL."""
        found = term.type.field(name)
        if found is None and term.type.name == "struct" and name.lower() not in _small(term.type):
            known = near(name, (own for own, _ in term.type.fields))
            raise UnknownField(spark_text(node), name, f"there is no field {name}{known}")
        if found is None:
            raise self.refused(node, f"{term.type.spark} has no one field {name}")
        own, type_ = found
        return Term(sql=f"struct_extract({term.sql}, {text_literal(own)})", type=type_)

    def text(self, node: exp.Expression) -> str:
        return spark_text(node)

    def refused(self, node: exp.Expression, why: str) -> Refused:
        return Refused(spark_text(node), why)


def _small(type_: Type) -> set[str]:
    return {name.lower() for name, _ in type_.fields}

"""Owns what the expressions of a SELECT see: columns of relations, aggregates, windows, subqueries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from twinlake.witness.expressions import Translation
from twinlake.witness.rules import windows
from twinlake.witness.rules.aggregates import AGGREGATES, is_approximate
from twinlake.witness.rules.coercion import common, to
from twinlake.witness.rules.logic import condition
from twinlake.witness.rules.term import Call, Term
from twinlake.witness.types import BOOLEAN, Type, identifier


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a relation: its name, its SQL, and whether its last digits follow the order of rows."""

    name: str
    sql: str
    type: Type
    approximate: bool = False
    size: str = ""
    """Of one that is approximate, SQL of what it may be off by in a share; "" where nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What stands in FROM: `alias` is how its columns are qualified, "" where they cannot be."""

    alias: str
    columns: tuple[Column, ...]

    def named(self, name: str) -> list[Column]:
        return [column for column in self.columns if column.name.lower() == name.lower()]


@dataclass(frozen=True, kw_only=True)
class Query:
    """A translated query."""

    sql: str
    columns: tuple[Column, ...]
    sized: str = ""
    """The same with the sizes of columns beside them, of a plain SELECT."""


class SelectScope(Translation):
    """The expressions of one SELECT. `query` translates a subquery, which sees nothing of this one."""

    def __init__(
        self,
        relations: Sequence[Relation],
        query: Callable[[exp.Expression], Query],
        aliases: Mapping[str, exp.Expression] | None = None,
    ) -> None:
        super().__init__({})
        self._relations = relations
        self._query = query
        self._select_aliases = aliases or {}
        self.approximate = False
        """Whether what was translated since this was set to False has sums of doubles in it."""

    def term(self, node: exp.Expression) -> Term:
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter):
            return self._filtered(node, "")
        if isinstance(node, exp.Subquery):
            return self._scalar(node)
        if isinstance(node, exp.Exists):
            return Term(sql=f"EXISTS ({self._query(node.this).sql})", type=BOOLEAN)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._in_query(node)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES:
            return self._aggregate(node, "")
        return super().term(node)

    def relation_columns(self, alias: str | None, node: exp.Expression) -> list[Column]:
        """What `*`, or `alias.*`, stands for."""
        found = [it for it in self._relations if alias is None or it.alias.lower() == alias.lower()]
        if alias is not None and any(not it.alias for it in self._relations):
            raise self.refused(node, "beside USING or a query without a name, * needs to stand for all")
        if not found or (alias is not None and len(found) != 1):
            raise self.refused(node, f"there is no relation {alias}")
        return [column for relation in found for column in relation.columns]

    def column(self, parts: list[str], node: exp.Expression) -> Term:
        found, rest = self._resolved(parts)
        if len(found) > 1:
            raise self.refused(node, f"{'.'.join(parts)} may be several columns")
        if not found:
            alias = self._select_aliases.get(parts[0].lower())
            if alias is not None and len(parts) == 1:
                return self.term(alias)
            raise self.refused(node, f"there is no column {'.'.join(parts)}")
        self.approximate = self.approximate or found[0].approximate
        term = Term(sql=found[0].sql, type=found[0].type)
        for part in rest:
            term = self.field(term, part, node)
        return term

    def has(self, name: str) -> bool:
        """Whether a relation has a column of this name."""
        return bool(self._resolved([name])[0])

    def _resolved(self, parts: list[str]) -> tuple[list[Column], list[str]]:
        if len(parts) > 1:
            qualified = [
                column
                for relation in self._relations
                if relation.alias and relation.alias.lower() == parts[0].lower()
                for column in relation.named(parts[1])
            ]
            if qualified:
                return qualified, parts[2:]
        plain = [column for relation in self._relations for column in relation.named(parts[0])]
        return plain, parts[1:]

    def _call_of(self, node: exp.Expression) -> tuple[Call, bool]:
        """The call, and whether it is over distinct values."""
        operands, distinct = node.expressions, False
        if len(operands) == 1 and isinstance(operands[0], exp.Distinct):
            operands, distinct = operands[0].expressions, True
        is_star = len(operands) == 1 and isinstance(operands[0], exp.Star)
        if is_star and str(node.this).lower() != "count":
            raise self.refused(node, "* stands for no operand here")
        terms = () if is_star else tuple(self.term(operand) for operand in operands)
        return Call(name=str(node.this).lower(), terms=terms, node=node, scope=self), distinct

    def _aggregate(self, node: exp.Expression, tail: str, window: windows.Over | None = None) -> Term:
        call, distinct = self._call_of(node)
        self.approximate = self.approximate or is_approximate(call)
        if distinct and window is not None:
            raise self.refused(node, "distinct values of a window are not listed")
        term = AGGREGATES[call.name](call, tail, distinct)
        return term if window is None else windows.ties_guarded(call, term, window)

    def _filtered(self, node: exp.Expression, tail: str, window: windows.Over | None = None) -> Term:
        inner = node.this
        if not isinstance(inner, exp.Anonymous) or str(inner.this).lower() not in AGGREGATES:
            raise self.refused(node, "FILTER after this is not listed")
        when = condition(node.expression.this, self)
        return self._aggregate(inner, f" FILTER (WHERE {when.sql}){tail}", window)

    def _window(self, node: exp.Expression) -> Term:
        before, self.approximate = self.approximate, False
        window, inner = windows.over(node, self), node.this
        if self.approximate:
            raise self.refused(
                node, "it is ordered by a sum of doubles, whose last digits follow the rows' order"
            )
        self.approximate = before
        if isinstance(inner, exp.Filter):
            return self._filtered(inner, window.sql, window)
        name = str(inner.this).lower() if isinstance(inner, exp.Anonymous) else ""
        if name in AGGREGATES:
            return self._aggregate(inner, window.sql, window)
        if name in windows.RANKS:
            return windows.placed(self._call_of(inner)[0], window)
        if name in windows.SHIFTS:
            return windows.shifted(self._call_of(inner)[0], window)
        if name in windows.ENDS:
            return windows.at_the_end(self._call_of(inner)[0], window)
        raise self.refused(node, "this function over a window is not listed")

    def _scalar(self, node: exp.Expression) -> Term:
        query = self._query(node.this)
        if len(query.columns) != 1:
            raise self.refused(node, "a query in an expression shows one column")
        self.approximate = self.approximate or query.columns[0].approximate
        return Term(sql=f"({query.sql})", type=query.columns[0].type)

    def _in_query(self, node: exp.Expression) -> Term:
        query, value = self._query(node.args["query"].this), self.term(node.this)
        if len(query.columns) != 1 or query.columns[0].approximate:
            raise self.refused(node, "IN of such a query is not listed")
        (column,) = query.columns
        type_ = common(value.type, column.type)
        if type_ is None or type_.is_nested or type_ != column.type:
            raise self.refused(node, f"{value.type.spark} IN {column.type.spark} is not listed")
        return Term(sql=f"({to(value, type_).sql} IN ({query.sql}))", type=BOOLEAN)


def column_of(alias: str, name: str, type_: Type, approximate: bool = False) -> Column:
    """A column of the relation that the SQL calls `alias`."""
    return Column(
        name=name, sql=f"{identifier(alias)}.{identifier(name)}", type=type_, approximate=approximate
    )

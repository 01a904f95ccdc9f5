"""Owns the translation of a SELECT over other tables, as a Derived has it, into DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from twinlake.witness.refused import Refused
from twinlake.witness.result import SIZE, part_of
from twinlake.witness.rules.coercion import common, is_widened_exactly, to
from twinlake.witness.rules.logic import condition
from twinlake.witness.rules.parser import parse, spark_text
from twinlake.witness.rules.term import Term
from twinlake.witness.scopes import Column, Query, Relation, SelectScope, column_of
from twinlake.witness.sizes import size_of
from twinlake.witness.types import Type, identifier

_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "with_", "hint"}
_OF_TABLES = {"this", "alias"}
_JOINS = {
    "": "JOIN", "INNER": "JOIN", "LEFT": "LEFT JOIN", "LEFT OUTER": "LEFT JOIN", "RIGHT": "RIGHT JOIN",
    "RIGHT OUTER": "RIGHT JOIN", "FULL": "FULL JOIN", "FULL OUTER": "FULL JOIN", "CROSS": "CROSS JOIN",
    "LEFT SEMI": "SEMI JOIN", "SEMI": "SEMI JOIN", "LEFT ANTI": "ANTI JOIN", "ANTI": "ANTI JOIN",
}  # fmt: skip
_SUMMED = (
    exp.Column, exp.Identifier, exp.Paren, exp.Alias, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg,
    exp.Literal, exp.Anonymous, exp.Window, exp.Filter, exp.Subquery, exp.TryCast, exp.DataType,
    exp.Order, exp.Ordered, exp.WindowSpec,
)  # fmt: skip
_SUMMED_BY = ("sum", "avg", "mean", "coalesce", "ifnull", "nvl", "double", "count")
_OF_ORDER = "the last digits of a sum of doubles follow the order of its rows"


@dataclass(frozen=True, kw_only=True)
class TranslatedSelect:
    """DuckDB SQL over relations of the same names, its columns with Spark's types, in order, and those whose
    last digits follow the order of rows, because they are sums of doubles."""

    sql: str
    columns: dict[str, Type]
    approximate: frozenset[str]
    sized: frozenset[str] = frozenset()
    """Those of them beside which is a column with their size (`sizes.py`), by `result.part_of`."""


def translate_select(text: str, tables: Mapping[str, Mapping[str, Type]]) -> TranslatedSelect:
    """What a SELECT of Spark is in DuckDB. `tables` are the relations that it may name, with their columns.

    Refused where it has what is not listed: LIMIT, named windows, correlated subqueries and more.
    """
    relations = {
        name.lower(): Query(
            sql=f"SELECT * FROM {identifier(name)}",
            columns=tuple(column_of(name, column, type_) for column, type_ in columns.items()),
        )
        for name, columns in tables.items()
    }
    query = _Queries(relations).query(parse(text))
    names = [column.name for column in query.columns]
    if len({name.lower() for name in names}) != len(names):
        raise Refused(text, "two columns have one name")
    sized = frozenset(column.name for column in query.columns if column.size and query.sized)
    return TranslatedSelect(
        sql=query.sized if sized else query.sql,
        sized=sized,
        columns={column.name: column.type for column in query.columns},
        approximate=frozenset(column.name for column in query.columns if column.approximate),
    )


class _Queries:
    """Queries that see the same tables, by name in small letters; those of WITH are among them."""

    def __init__(self, tables: Mapping[str, Query]) -> None:
        self._tables = dict(tables)
        self._unnamed = 0

    def query(self, node: exp.Expression) -> Query:
        inner = _Queries(self._tables)
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise _refused(node, "a query that asks itself is not listed")
            for one in with_.expressions:
                if one.alias.lower() in inner._tables.keys() - self._tables.keys():
                    raise _refused(one, "two queries of one WITH have this name")
                inner._tables[one.alias.lower()] = inner._renamed(inner.query(one.this), one)
        if isinstance(node, exp.Subquery) and not _others(node, {"this", "with_"}):
            return inner.query(node.this)
        if isinstance(node, exp.Union):
            return inner._union(node)
        if isinstance(node, exp.Select):
            return inner._select(node)
        raise _refused(node, f"{type(node).__name__} is not listed as a query")

    def _renamed(self, query: Query, node: exp.Expression) -> Query:
        """With the column names that follow an alias, if any do."""
        alias = node.args.get("alias")
        names = [column.name for column in alias.args.get("columns") or ()] if alias else []
        if not names:
            return query
        if len(names) != len(query.columns):
            raise _refused(node, "the names of its columns are of another number")
        listed = ", ".join(identifier(name) for name in names)
        renamed = tuple(replace(it, name=name) for it, name in zip(query.columns, names, strict=True))
        return Query(sql=f"SELECT * FROM ({query.sql}) AS _named({listed})", columns=renamed)

    def _union(self, node: exp.Expression) -> Query:
        if _others(node, {"this", "expression", "distinct", "order", "with_"}):
            raise _refused(node, "this part of a UNION is not listed")
        one, other = self.query(node.this), self.query(node.expression)
        distinct = bool(node.args.get("distinct"))
        if len(one.columns) != len(other.columns):
            raise _refused(node, "its sides have other columns")
        _refuse_order(node, len(one.columns))
        types = []
        for mine, its in zip(one.columns, other.columns, strict=True):
            type_ = common(mine.type, its.type)
            if type_ is None or not all(is_widened_exactly(it.type, type_) for it in (mine, its)):
                raise _refused(node, f"{mine.type.spark} and {its.type.spark} in one column are not listed")
            if distinct and (mine.approximate or its.approximate):
                raise _refused(node, _OF_ORDER)
            types.append(type_)
        word = "UNION" if distinct else "UNION ALL"
        sides = " ".join((_cast_side(one, types), word, _cast_side(other, types)))
        columns = tuple(
            replace(mine, type=type_, approximate=mine.approximate or its.approximate)
            for mine, its, type_ in zip(one.columns, other.columns, types, strict=True)
        )
        return Query(sql=sides, columns=columns)

    def _select(self, node: exp.Expression) -> Query:
        if others := _others(node, _PARTS):
            raise _refused(node, f"{min(others).strip('_').upper()} is not listed")
        _refuse_order(node, len(node.expressions))
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise _refused(node, "DISTINCT ON is not listed")
        source, relations = self._from(node)
        aliases = {
            one.alias.lower(): one.this
            for one in node.expressions
            if isinstance(one, exp.Alias) and one.alias
        }
        scope = SelectScope(relations, self.query)
        items = [column for one in node.expressions for column in self._item(one, scope)]
        if not items or (distinct is not None and any(column.approximate for column in items)):
            raise _refused(node, _OF_ORDER if items else "it shows no column")
        sql = "SELECT " + ("DISTINCT " if distinct is not None else "")
        sql += ", ".join(f"{column.sql} AS {identifier(column.name)}" for column in items)
        rest = source
        if where := node.args.get("where"):
            rest += f" WHERE {_met(where.this, scope).sql}"
        if group := node.args.get("group"):
            rest += f" GROUP BY {', '.join(self._groups(group, node, scope, aliases))}"
        if having := node.args.get("having"):
            named = SelectScope(relations, self.query, aliases)
            for one in having.find_all(exp.Column):
                shown = aliases.get(one.name.lower())
                if len(one.parts) == 1 and shown not in (None, one) and scope.has(one.name):
                    raise _refused(having, f"{one.name} is a column and another value's name")
            rest += f" HAVING {_met(having.this, named).sql}"
        beside = "".join(f", {it.size} AS {identifier(part_of(it.name, SIZE))}" for it in items if it.size)
        return Query(sql=f"{sql}{rest}", columns=tuple(items), sized=f"{sql}{beside}{rest}")

    def _item(self, node: exp.Expression, scope: SelectScope) -> list[Column]:
        if isinstance(node, exp.Star) and not _others(node, set()):
            return scope.relation_columns(None, node)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return scope.relation_columns(node.table, node)
        inner = node.this if isinstance(node, exp.Alias) else node
        scope.approximate = False
        term = scope.term(inner)
        if scope.approximate:
            _refuse_but_sums(inner, node)
        self._unnamed += 1
        name = node.alias_or_name or f"_unnamed_{self._unnamed}"
        approximate = scope.approximate
        size = _size(inner, scope) if approximate else ""
        return [Column(name=name, sql=term.sql, type=term.type, approximate=approximate, size=size)]

    def _groups(
        self,
        group: exp.Expression,
        node: exp.Expression,
        scope: SelectScope,
        aliases: Mapping[str, exp.Expression],
    ) -> list[str]:
        """Columns, expressions, the number of an item, and the alias of one where no column has the name."""
        if _others(group, {"expressions"}):
            raise _refused(group, "this GROUP BY is not listed")
        found = []
        for one in group.expressions:
            inner = one
            if isinstance(one, (exp.Literal, exp.Neg)):
                item = node.expressions[_place(one, len(node.expressions)) - 1]
                inner = item.this if isinstance(item, exp.Alias) else item
            elif isinstance(one, exp.Column) and len(one.parts) == 1 and not scope.has(one.name):
                inner = aliases.get(one.name.lower(), one)
            scope.approximate = False
            found.append(scope.term(inner).sql)
            if scope.approximate:
                raise _refused(group, _OF_ORDER)
        return found

    def _from(self, node: exp.Expression) -> tuple[str, list[Relation]]:
        first = node.args.get("from_")
        if first is None:
            return "", []
        sql, relation = self._source(first.this)
        relations, text = [relation], f" FROM {sql}"
        for join in node.args.get("joins") or ():
            sql, relation = self._source(join.this)
            text, relations = self._joined(join, text, relations, sql, relation)
        return text, relations

    def _source(self, node: exp.Expression) -> tuple[str, Relation]:
        if isinstance(node, exp.Table) and not _others(node, _OF_TABLES):
            query = self._tables.get(node.name.lower())
            if query is None:
                raise _refused(node, f"there is no table {node.name}" if node.name else "it is no table")
            query, alias = self._renamed(query, node), node.alias or node.name
        elif isinstance(node, exp.Subquery) and not _others(node, {"this", "alias"}):
            query, alias = self._renamed(self.query(node.this), node), node.alias
        else:
            raise _refused(node, "this is not listed after FROM")
        self._unnamed += 1
        own = alias or f"_from_{self._unnamed}"
        columns = tuple(column_of(own, it.name, it.type, it.approximate) for it in query.columns)
        return f"({query.sql}) AS {identifier(own)}", Relation(alias=alias, columns=columns)

    def _joined(
        self, join: exp.Expression, text: str, relations: list[Relation], sql: str, relation: Relation
    ) -> tuple[str, list[Relation]]:
        if _others(join, {"this", "side", "kind", "on", "using"}):
            raise _refused(join, "this JOIN is not listed")
        words = " ".join(filter(None, (str(join.args.get(name) or "").upper() for name in ("side", "kind"))))
        kind = _JOINS.get(words)
        on, using = join.args.get("on"), join.args.get("using")
        if kind is None or (kind == "CROSS JOIN" and (on or using)):
            raise _refused(join, "this JOIN is not listed")
        both = [*relations, relation]
        if using:
            return self._joined_using(join, kind, text, relations, sql, relation)
        if on is None:
            if kind not in ("JOIN", "CROSS JOIN"):
                raise _refused(join, "a JOIN without ON is not listed")
            return f"{text} CROSS JOIN {sql}", both
        scope = SelectScope(both, self.query)
        met = _met(on, scope).sql
        kept = relations if kind in ("SEMI JOIN", "ANTI JOIN") else both
        return f"{text} {kind} {sql} ON {met}", kept

    def _joined_using(
        self,
        join: exp.Expression,
        kind: str,
        text: str,
        relations: list[Relation],
        sql: str,
        relation: Relation,
    ) -> tuple[str, list[Relation]]:
        """The columns of USING come first, once, and have no qualifier of their own."""
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            raise _refused(join, "this JOIN is not listed with USING")
        met, shared, names = [], [], set()
        for one in join.args["using"]:
            mine = [it for left in relations for it in left.named(one.name)]
            its = relation.named(one.name)
            if len(mine) != 1 or len(its) != 1 or mine[0].type != its[0].type or mine[0].approximate:
                raise _refused(join, f"{one.name} is not one column of each side, of one type")
            met.append(f"{mine[0].sql} = {its[0].sql}")
            value = {"RIGHT JOIN": its[0].sql, "FULL JOIN": f"coalesce({mine[0].sql}, {its[0].sql})"}
            shared.append(replace(mine[0], sql=value.get(kind, mine[0].sql)))
            names.add(one.name.lower())
        rest = [
            replace(it, columns=tuple(c for c in it.columns if c.name.lower() not in names))
            for it in (*relations, relation)
        ]
        condition_ = " AND ".join(met)
        return f"{text} {kind} {sql} ON {condition_}", [Relation(alias="", columns=tuple(shared)), *rest]


def _cast_side(query: Query, types: list[Type]) -> str:
    if [column.type for column in query.columns] == types:
        return f"({query.sql})"
    names = (identifier(column.name) for column in query.columns)
    shown = ", ".join(
        f"{to(Term(sql=name, type=column.type), type_).sql} AS {name}"
        for name, column, type_ in zip(names, query.columns, types, strict=True)
    )
    return f"(SELECT {shown} FROM ({query.sql}))"


def _place(node: exp.Expression, items: int) -> int:
    """The item, counted from 1, that a number in GROUP BY or ORDER BY means."""
    if not node.name.isdecimal() or isinstance(node, exp.Neg) or not 1 <= int(node.name) <= items:
        raise _refused(node, f"it is none of the numbers 1 to {items} of what is shown")
    return int(node.name)


def _refuse_order(node: exp.Expression, items: int) -> None:
    """Rows of a table have no order; what Spark would refuse is refused all the same."""
    order = node.args.get("order")
    for one in order.expressions if order else ():
        by = one.this if isinstance(one, exp.Ordered) else one
        if isinstance(by, (exp.Literal, exp.Neg)):
            _place(by, items)
        elif not isinstance(by, exp.Column):
            raise _refused(one, "this ORDER BY is not listed")


def _met(node: exp.Expression, scope: SelectScope) -> Term:
    """The condition; Refused where a sum of doubles decides it."""
    scope.approximate = False
    term = condition(node, scope)
    if scope.approximate:
        raise _refused(node, _OF_ORDER)
    return term


def _size(node: exp.Expression, scope: SelectScope) -> str:
    def holds(one: exp.Expression) -> bool:
        scope.approximate = False
        scope.term(one)
        return scope.approximate

    try:
        size = size_of(node, holds)
        return "" if size is None else scope.term(size).sql
    except Refused:
        return ""


def _refuse_but_sums(node: exp.Expression, shown: exp.Expression) -> None:
    """A sum of doubles may be added up and multiplied, not compared, cut or ordered by."""
    for one in node.find_all(exp.Expression):
        is_other = isinstance(one, exp.Anonymous) and str(one.this).lower() not in _SUMMED_BY
        is_cut = isinstance(one, exp.DataType) and one.this != exp.DataType.Type.DOUBLE
        if not isinstance(one, _SUMMED) or is_other or is_cut:
            raise _refused(shown, _OF_ORDER)


def _others(node: exp.Expression, listed: set[str]) -> set[str]:
    """The arguments of a node that are set and not listed."""
    return {
        name for name, value in node.args.items() if value not in (None, False, []) and name not in listed
    }


def _refused(node: exp.Expression, why: str) -> Refused:
    return Refused(spark_text(node), why)

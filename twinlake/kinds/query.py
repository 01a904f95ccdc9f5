"""Owns the refusal of a whole query that a definition gives: what it reads, and what could differ by run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds.row_local import SPECIAL_LITERAL, first_line, full_name, impure, is_a, simple_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
_LEAVES = {"OneRowRelation", "UnresolvedInlineTable", "LocalRelation", "ResolvedInlineTable"}
_ROW_MAKERS = {
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "range",
}  # fmt: skip
_OTHERS = {
    "Sample": "TABLESAMPLE draws other rows every time",
    "ScriptTransformation": "TRANSFORM runs a program",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(...) may name any table: write the name itself",
    "RelationTimeTravel": "a table is read as its release has it, at no other time",
}
_UNORDERED = {
    "First": "order it in a window, or use max_by(..., struct(...))",
    "Last": "order it in a window, or use max_by(..., struct(...))",
    "AnyValue": "use min or max",
    "Mode": "count the values, and order them by count and value",
    "CollectList": "write sort_array(collect_list(...))",
    "CollectSet": "write sort_array(collect_set(...))",
    "ListAgg": "write listagg(...) WITHIN GROUP (ORDER BY ...)",
}
"""Aggregates whose value depends on the order of rows, which no query has by itself."""
_BY_CHANCE = {
    "ApproximatePercentile": "use percentile(...), or a Quantile in an Aggregate",
    "ApproxTopK": "count the items, and order them by count and item",
    "ApproxTopKAccumulate": "count the items",
    "ApproxTopKCombine": "count the items",
    "HistogramNumeric": "group by cells of the value",
    "HllSketchAgg": "use theta_sketch_agg(...), or approx_count_distinct(...)",
    "HllUnionAgg": "use theta_union_agg(...)",
}
"""Aggregates whose value depends on how rows were cut and merged, whatever order is given."""
_KLL = "KllSketchAgg"
_SORTING = {"SortArray", "ArraySort"}
"""Under these an order is given; under a window, too, where that has one."""
_SUBQUERIES = {"ScalarSubquery", "Exists", "ListQuery", "InSubquery", "LateralSubquery"}
_LIMITS = {"GlobalLimit", "Offset"}


def refused_text(sql: str, reads: Collection[str], spark: SparkSession) -> Iterator[str]:
    """Why the text is not a single query over these tables alone; nothing where it is one."""
    from pyspark.errors import ParseException

    if SPECIAL_LITERAL.search(sql):
        yield "it is not deterministic: a literal depends on when it runs"
        return
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parsed = parser.parsePlan(sql)
        # a query stands in brackets, a command or a second statement does not; nor does `;` at its end
        parser.parsePlan(f"SELECT * FROM {quote.expression(sql)} AS whole")
    except ParseException as error:
        yield f"it is not one SELECT: {first_line(error)}"
        return
    nodes = list(_plans(parsed, spark))
    own = {alias for node in nodes for alias in _aliases(node)}
    yield from dict.fromkeys(
        why for node in nodes if (why := _refused_node(node, reads, own, spark)) is not None
    )


def refused_plan(query: DataFrame) -> Iterator[str]:
    """Why the analysed query could show something else over the same rows; nothing where it could not."""
    spark = query.sparkSession
    found: list[str] = []
    for node in _plans(query._jdf.queryExecution().analyzed(), spark):
        for expression in _each(node.expressions()):
            found += _impurities(expression, spark)
        if simple_name(node) in _LIMITS and not _is_sorted(node):
            found.append("it is not deterministic: LIMIT and OFFSET need an ORDER BY that ends in a key")
    yield from dict.fromkeys(found)


def _refused_node(node: Any, reads: Collection[str], own: Collection[str], spark: SparkSession) -> str | None:
    kind = simple_name(node)
    if kind in ("UnresolvedRelation", "UnresolvedTableValuedFunction"):
        parts = node.multipartIdentifier() if kind == "UnresolvedRelation" else node.name()
        name = ".".join(_each(parts))
        if kind == "UnresolvedTableValuedFunction":
            return None if name.lower() in _ROW_MAKERS else f"{name}(...) is not a table that it may read"
        if kind == "UnresolvedRelation" and node.isStreaming():
            return f"STREAM {name} is not a table that it may read"
        if parts.size() == 1 and name.lower() in {*own, *(read.lower() for read in reads)}:
            return None
        return f"it reads {name}, which is not one of its reads: {', '.join(reads)}"
    if kind in _OTHERS:
        return _OTHERS[kind]
    if node.children().isEmpty() and kind not in _LEAVES:
        return f"{kind} is not allowed in a definition: it reads its tables and nothing else"
    whys = (why for one in _each(node.expressions()) for why in _impurities(one, spark))
    return next(whys, None)


def _impurities(node: Any, spark: SparkSession, *, is_ordered: bool = False) -> Iterator[str]:
    """What in an expression tree, parsed or analysed, could differ by run or would not run everywhere."""
    full = full_name(node)
    if why := impure(node, spark, full):
        yield why
        return
    kind = simple_name(node, full)
    if kind in _UNORDERED and not is_ordered and not (kind == "ListAgg" and node.orderingFilled()):
        yield f"it is not deterministic: {node.prettyName()}() takes rows as they come; {_UNORDERED[kind]}"
    elif kind in _BY_CHANCE or kind.startswith(_KLL):
        remedy = _BY_CHANCE.get(kind, "use a Quantile in an Aggregate")
        yield f"it is not deterministic: {node.prettyName()}() follows how rows were cut; {remedy}"
    elif kind not in {*_UNORDERED, *_SUBQUERIES} and node.resolved() and _is_impure_itself(node):
        yield f"it is not deterministic: {node.prettyName()}() may find another value each time"
    through = is_ordered and kind == "AggregateExpression"
    sorts = kind in _SORTING or (kind == "WindowExpression" and not node.windowSpec().orderSpec().isEmpty())
    for child in _each(node.children()):
        yield from _impurities(child, spark, is_ordered=through or sorts)


def _is_impure_itself(node: Any) -> bool:
    """Whether it is the node, and none of its children, that is not deterministic."""
    return not node.deterministic() and all(child.deterministic() for child in _each(node.children()))


def _is_sorted(limit: Any) -> bool:
    below = limit
    while simple_name(below) in ("GlobalLimit", "LocalLimit", "Offset", "Project"):
        below = below.child()
    return simple_name(below) == "Sort"


def _plans(plan: Any, spark: SparkSession) -> Iterator[Any]:
    """Every node of the plan, those of common table expressions and of subqueries included."""
    yield plan
    if simple_name(plan) == "UnresolvedWith":
        for relation in _each(plan.cteRelations()):
            yield from _plans(relation._2(), spark)
    for child in _each(plan.children()):
        yield from _plans(child, spark)
    for expression in _each(plan.expressions()):
        for node in _tree(expression):
            if is_a(node, _SUBQUERY):
                yield from _plans(node.plan(), spark)


def _aliases(node: Any) -> Iterator[str]:
    if simple_name(node) == "UnresolvedWith":
        for relation in _each(node.cteRelations()):
            yield str(relation._1()).lower()


def _tree(expression: Any) -> Iterator[Any]:
    yield expression
    for child in _each(expression.children()):
        yield from _tree(child)


def _each(sequence: Any) -> Iterator[Any]:
    for index in range(sequence.size()):
        yield sequence.apply(index)

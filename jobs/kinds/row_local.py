"""Owns the refusal of definitions that are not row-local, not deterministic, or not typed."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.errors import DefinitionError
from jobs.kinds.fingerprint import empty_rows, nothing
from jobs.kinds.state import merge, partial
from jobs.kinds.table import Aggregate, Events, Latest, Table
from jobs.kinds.view import view_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.topics.topic import Topic

_CATALYST = "org.apache.spark.sql.catalyst."
_NODES = {
    _CATALYST + "expressions.aggregate.AggregateExpression": "an aggregate",
    _CATALYST + "expressions.aggregate.AggregateFunction": "an aggregate",
    _CATALYST + "expressions.WindowExpression": "a window function",
    _CATALYST + "expressions.UnresolvedWindowExpression": "a window function",
    _CATALYST + "expressions.WindowFunction": "a window function",
    _CATALYST + "expressions.PlanExpression": "a subquery",
    _CATALYST + "expressions.InSubquery": "a subquery",
    _CATALYST + "analysis.UnresolvedStar": "a star",
    _CATALYST + "expressions.Generator": "a generator (only `explode` may make rows)",
    _CATALYST + "expressions.UserDefinedExpression": "a user-defined function",
    _CATALYST + "expressions.CallMethodViaReflection": "a call into Java",
    _CATALYST + "expressions.Alias": "an alias (the column's name is given already)",
    _CATALYST + "analysis.MultiAlias": "an alias (the column's name is given already)",
}
_NOT_LOCAL = "may not be in a row-local step: it must depend on one row only"
_OF_THE_MOMENT = {
    "CurrentDate", "CurrentTime", "CurrentTimestamp", "CurrentTimestampLike", "Now", "LocalTimestamp",
    "CurrentTimeZone", "CurrentUser", "SessionUser", "User", "CurrentCatalog", "CurrentDatabase",
    "CurrentSchema",
    "InputFileName", "InputFileBlockStart", "InputFileBlockLength", "SparkVersion", "CurrentBatchTimestamp",
}  # fmt: skip
_GROUPS = {
    "agg_funcs": "an aggregate",
    "window_funcs": "a window function",
    "generator_funcs": "a generator (only the table's `explode` may make rows)",
}
_SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_SPECIAL_LITERAL = re.compile(
    r"\b(date|time|timestamp\w*)\s*['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE
)
_REFLECTION = {"java_method", "reflect", "try_reflect"}
_WINDOWS = {"window", "session_window", "window_time"}
_MOMENT_NAMES = {
    "now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp",
    "current_timezone",
    "current_user", "session_user", "user", "current_catalog", "current_database", "current_schema",
    "input_file_name", "input_file_block_start", "input_file_block_length", "version",
}  # fmt: skip


def analyse(table: Table, topic: Topic, spark: SparkSession) -> None:
    """Raise the first problem of the definition, if it has any."""
    for problem in problems(table, topic, spark):
        raise problem


def output_columns(table: Table, topic: Topic, spark: SparkSession) -> list[tuple[str, str]]:
    """(name, Spark type) of the view's columns."""
    rows = empty_rows(topic, spark)
    relation = nothing(rows.dtypes if isinstance(table, Events) else partial(table, rows).dtypes)
    late_after = topic.contract.late_after
    return spark.sql(view_sql(table, relation, "CAST(NULL AS TIMESTAMP)", late_after=late_after)).dtypes


def problems(table: Table, topic: Topic, spark: SparkSession) -> Iterator[DefinitionError]:
    """Everything that keeps the definition from running alike anywhere, each with its line."""
    rows = empty_rows(topic, spark)
    if isinstance(table, Aggregate) and table.explode:
        if table.explode.name.lower() in (name.lower() for name in rows.columns):
            yield table.error(
                f"explode name {table.explode.name!r} is a column of topic {topic.name} already"
            )
            return
        found = list(_problems(table, "explode", table.explode.array, rows))
        yield from found
        if found:
            return
        from pyspark.sql import functions as F

        kind = rows.selectExpr(table.explode.array).dtypes[0][1]
        if not kind.startswith("array<"):
            yield _at(table, table.explode.array, f"explode: {kind} is no array")
            return
        rows = rows.select("*", F.explode(F.expr(table.explode.array)).alias(table.explode.name))
    found = []
    if table.where is not None:
        found += _problems(table, "where", table.where, rows, boolean=True)
    for name, sql in table.columns.items():
        found += _problems(table, f"column {name}", sql, rows)
    yield from found
    if found:
        return
    from pyspark.sql import functions as F

    stepped = rows.select(*(F.expr(sql).alias(name) for name, sql in table.columns.items()))
    yield from _typed(table, stepped)


def _typed(table: Table, stepped: DataFrame) -> Iterator[DefinitionError]:
    types = dict(stepped.dtypes)
    wrong = [
        _at(table, table.columns[n], f"column {n}: it has no type; cast it")
        for n in types
        if types[n] == "void"
    ]
    if isinstance(table, Latest) and table.delete_when is not None:
        wrong += _problems(table, "delete_when", table.delete_when, stepped, boolean=True)
    if isinstance(table, (Aggregate, Latest)):
        for name in (*table.keys, *(table.order if isinstance(table, Latest) else ())):
            if types[name].startswith(("map<", "variant")):
                wrong.append(
                    _at(table, table.columns[name], f"column {name}: {types[name]} cannot be a key or order")
                )
    if isinstance(table, Latest):
        for name in table.values:
            if "map<" in types[name] or "variant" in types[name]:
                wrong.append(
                    _at(table, table.columns[name], f"column {name}: {types[name]} cannot be a value")
                )
    if isinstance(table, Aggregate):
        if table.window and types[table.window.on] != "timestamp":
            why = f"the window is on {table.window.on}, which is {types[table.window.on]}, not timestamp"
            wrong.append(_at(table, table.window.on, why))
        for name, measure in table.measures.items():
            why_not = measure.refuses(types[measure.of]) if measure.of is not None else None
            if why_not:
                wrong.append(_at(table, name, f"measure {name} ({measure.kind} of {measure.of}): {why_not}"))
    yield from wrong
    if not wrong:
        yield from _compiled(table, stepped)


def _compiled(table: Table, stepped: DataFrame) -> Iterator[DefinitionError]:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    if isinstance(table, Events):
        return
    coordinate = {"_epoch": "int", "_partition": "int", "_offset": "bigint", "_timestamp": "timestamp"}
    rows = stepped.withColumns({name: F.lit(None).cast(type_) for name, type_ in coordinate.items()})
    local = _local(table)
    try:
        state = partial(local, rows)
        merge(local, state)
        stepped.sparkSession.sql(view_sql(local, nothing(state.dtypes), "CAST(NULL AS TIMESTAMP)"))
    except PySparkException as error:
        yield table.error(f"it does not compile: {_first_line(error)}")


def _local(table: Table) -> Table:
    """The same table over rows to which the row-local steps have been applied."""
    from dataclasses import replace

    names = {name: f"`{name}`" for name in table.columns}
    if isinstance(table, Aggregate):
        return replace(table, where=None, columns=names, explode=None)
    return replace(table, where=None, columns=names)


def _problems(
    table: Table, what: str, sql: str, rows: DataFrame, *, boolean: bool = False
) -> list[DefinitionError]:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    logging.getLogger(
        "SQLQueryContextLogger"
    ).disabled = True  # prints what is raised a second time, at length
    if _SPECIAL_LITERAL.search(sql):
        return [_at(table, sql, f"{what}: it is not deterministic: the literal depends on when it runs")]
    try:
        parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
        why = next((why for node in _nodes(parsed) if (why := _refusal(node, spark))), None)
        if why is None:
            shown = rows.select(F.expr(sql).alias("it"))
            inner = shown._jdf.queryExecution().analyzed().expressions().apply(0)
            if inner.getClass().getSimpleName() == "Alias":
                inner = inner.child()
            why = next((why for node in _nodes(inner) if (why := _refusal(node, spark))), None)
            if why is None and not inner.deterministic():
                why = "it is not deterministic: the batch layer would not find the same value again"
            if why is None and boolean and shown.dtypes[0][1] != "boolean":
                why = f"it is {shown.dtypes[0][1]}, not a condition"
    except PySparkException as error:
        why = _first_line(error)
    except Exception as error:  # py4j passes on what the parser throws, without a common class
        if "ParseException" not in str(error) and "AnalysisException" not in str(error):
            raise
        why = _first_line(error)
    return [_at(table, sql, f"{what}: {why}")] if why else []


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))


def _refusal(node: Any, spark: SparkSession) -> str | None:
    """Why this node of an expression tree may not be in a row-local step, if so."""
    from py4j.java_gateway import is_instance_of

    kind = node.getClass().getSimpleName()
    gateway = spark.sparkContext._gateway
    if kind == "UnresolvedFunction":
        return _function_refusal(node, spark)
    if kind in _OF_THE_MOMENT:
        return f"it is not deterministic: {kind} depends on when or where it runs"
    if kind == "UnresolvedAttribute" and node.name().lower() in _MOMENT_NAMES:
        return None  # a column may have such a name; the analysed tree tells
    for name, words in _NODES.items():
        if is_instance_of(gateway, node, name):
            return f"{words} {_NOT_LOCAL}"
    return _special_moment(node) if kind == "Cast" else None


def _special_moment(cast: Any) -> str | None:
    """Spark reads the texts 'now', 'today' and so on as moments of the run, wherever they are cast."""
    child = cast.child()
    if not child.resolved():
        return None  # the analysed tree tells
    if cast.dataType().simpleString() not in ("date", "timestamp", "timestamp_ntz", "time"):
        return None
    if child.dataType().simpleString() != "string" or not child.foldable():
        return None
    is_literal = child.getClass().getSimpleName() == "Literal"
    if is_literal and not _SPECIAL.match(str(child.toString())):
        return None
    return f"it is not deterministic: {child.toString()} is read as a moment that depends on when it runs"


def _function_refusal(node: Any, spark: SparkSession) -> str | None:
    parts = node.nameParts()
    name = ".".join(parts.apply(index) for index in range(parts.size())).lower()
    if name in _MOMENT_NAMES:
        return f"it is not deterministic: {name}() depends on when or where it runs"
    if name in _REFLECTION:
        return f"{name}() calls into Java, which no definition may"
    if name in _WINDOWS:
        return f"{name}() is not row-local; use the table's `window`"
    jvm: Any = spark._jvm
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    if parts.size() != 1 or not registry.functionExists(identifier):
        return f"{name}() is no built-in function of Spark: it would not exist everywhere"
    group = registry.lookupFunction(identifier).get().getGroup()
    if group in _GROUPS:
        return f"{name}() is {_GROUPS[group]}, which {_NOT_LOCAL}"
    if node.isDistinct() or node.filter().isDefined():
        return f"{name}() is used as an aggregate, which is not row-local"
    return None


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    for prefix in (
        "org.apache.spark.sql.catalyst.parser.ParseException:",
        "org.apache.spark.sql.AnalysisException:",
    ):
        if prefix in text:
            text = text.split(prefix, 1)[1].strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return re.split(r" SQLSTATE: \w+|; line \d+ pos|\(line \d+, pos", lines[0])[0].strip()


def _at(table: Table, text: str, why: str) -> DefinitionError:
    """The error at the line of the definition's file where this text is written."""
    return table.error_at(_line(table, text), why)


def _line(table: Table, text: str) -> int:
    if table.place is None:
        return 0
    try:
        tree = ast.parse(Path(table.place.file).read_text())
    except (OSError, SyntaxError):
        return table.place.line
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == table.place.line
    ]
    for call in calls:
        for node in ast.walk(call):
            if isinstance(node, ast.Constant) and node.value == text:
                return node.lineno
    return table.place.line

"""Owns the refusal of expressions that are not row-local, not deterministic, or not parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twinlake.kinds import functions
from twinlake.kinds.expression import Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.kind import Kind

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
    _CATALYST + "expressions.Alias": "an alias (the column's name is given already)",
    _CATALYST + "analysis.MultiAlias": "an alias (the column's name is given already)",
}
_FUNCTION = _CATALYST + "analysis.UnresolvedFunction"
_FOREIGN = {
    _CATALYST + "expressions.UserDefinedExpression": "a user-defined function",
    _CATALYST + "expressions.CallMethodViaReflection": "a call into Java",
}
_OF_THE_MOMENT = {
    "CurrentDate", "CurrentTime", "CurrentTimestamp", "CurrentTimestampLike", "Now", "LocalTimestamp",
    "CurrentTimeZone", "CurrentUser", "SessionUser", "User", "CurrentCatalog", "CurrentDatabase",
    "CurrentSchema",
    "InputFileName", "InputFileBlockStart", "InputFileBlockLength", "SparkVersion", "CurrentBatchTimestamp",
}  # fmt: skip
SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
SPECIAL_LITERAL = re.compile(
    r"\b(date|time|timestamp\w*)\s*['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE
)
OF_THE_RUN = "it is not deterministic: the literal depends on when it runs"
"""What is wrong with it."""


def refused(kind: Kind, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
    """A problem, with its line, for each expression that is refused; nothing after the first bad stage."""
    for stage in kind.stages(rows):
        found = [
            kind.error_at_text(expression.sql, f"{expression.what}: {why}")
            for expression in stage.expressions
            if (why := why_refused(expression, stage.rows)) is not None
        ]
        yield from found
        if found:
            return


def why_refused(expression: Expression, rows: DataFrame) -> str | None:
    """Why the expression may not run over these rows, None where it may."""
    from pyspark.errors import PySparkException

    if SPECIAL_LITERAL.search(expression.sql):
        return OF_THE_RUN
    try:
        return _why(expression, rows)
    except PySparkException as error:
        return first_line(error)
    except Exception as error:  # py4j passes on what the parser throws, without a common class
        if not any(one in str(error) for one in ("ParseException", "AnalysisException", "SparkException")):
            raise
        return first_line(error)


def _why(expression: Expression, rows: DataFrame) -> str | None:
    spark = rows.sparkSession
    parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(expression.sql)
    if why := next((why for node in _nodes(parsed) if (why := _refusal(node, spark))), None):
        return why
    inner, type_ = analysed(expression, rows)
    if why := next((why for node in _nodes(inner) if (why := _refusal(node, spark))), None):
        return why
    if not inner.deterministic():
        return "it is not deterministic: the batch layer would not find the same value again"
    return mistyped(expression, type_)


def mistyped(expression: Expression, type_: str) -> str | None:
    """Why a value of this type, in Spark's text, is none that the expression may have, if so."""
    if expression.type == "boolean" and type_ != "boolean":
        return f"it is {type_}, not a condition"
    if expression.type == "array" and not type_.startswith("array<"):
        return f"{type_} is not an array"
    return None


def analysed(expression: Expression, rows: DataFrame) -> tuple[Any, str]:
    """What Spark makes of the expression over these rows: the resolved tree, and its type."""
    from pyspark.sql import functions as F

    shown = rows.select(F.expr(expression.sql).alias("it"))
    inner = shown._jdf.queryExecution().analyzed().expressions().apply(0)
    if simple_name(inner) == "Alias":
        inner = inner.child()
    return inner, shown.dtypes[0][1]


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))


def _refusal(node: Any, spark: SparkSession) -> str | None:
    """Why this node of an expression tree may not be in a row-local step, if so."""
    full = full_name(node)
    if why := impure(node, spark, full):
        return why
    if full == _FUNCTION:
        return _function_refusal(node, spark)
    found = next((words for name, words in _NODES.items() if is_a(node, name, full)), None)
    return found and f"{found} {functions.NOT_LOCAL}"


def impure(node: Any, spark: SparkSession, full: str | None = None) -> str | None:
    """Why this node, parsed or analysed, may be in no expression of a definition, wherever it stands.

    `full` is the name of its class where it is known.
    """
    full = full or full_name(node)
    kind = simple_name(node, full)
    if kind == "UnresolvedFunction":
        return _foreign(node, spark)
    if kind in _OF_THE_MOMENT:
        return f"it is not deterministic: {kind} depends on when or where it runs"
    for name, words in _FOREIGN.items():
        if is_a(node, name, full):
            return f"{words} may be in no definition: it would not run alike everywhere"
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
    is_literal = simple_name(child) == "Literal"
    if is_literal and not SPECIAL.match(str(child.toString())):
        return None
    return f"it is not deterministic: {child.toString()} is read as a time that depends on when it runs"


def _function_refusal(node: Any, spark: SparkSession) -> str | None:
    """Why this call of a built-in function is not row-local, if so."""
    name = _name(node)
    if why := functions.not_local(name, str(_built_in(name, spark).get().getGroup())):
        return why
    if node.isDistinct() or node.filter().isDefined():
        return f"{name}() is used as an aggregate, which is not row-local"
    return None


def _foreign(node: Any, spark: SparkSession) -> str | None:
    """Why this function may be called in no definition, if so."""
    name = _name(node)
    if why := functions.foreign(name):
        return why
    if node.nameParts().size() != 1 or not _built_in(name, spark).isDefined():
        return f"{name}() is not a built-in function of Spark: it would not exist everywhere"
    return None


def _name(function: Any) -> str:
    parts = function.nameParts()
    return ".".join(parts.apply(index) for index in range(parts.size())).lower()


def _built_in(name: str, spark: SparkSession) -> Any:
    """What Spark itself tells of the function: a Scala option."""
    jvm: Any = spark._jvm
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    return registry.lookupFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


def first_line(error: Exception) -> str:
    """What Spark says is wrong, without its plans and places."""
    text = str(error).strip()
    for prefix in (
        "org.apache.spark.sql.catalyst.parser.ParseException:",
        "org.apache.spark.sql.AnalysisException:",
        "org.apache.spark.SparkException:",
    ):
        if prefix in text:
            text = text.split(prefix, 1)[1].strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return re.split(r" SQLSTATE: \w+|; line \d+ pos|\(line \d+, pos", lines[0])[0].strip()


# what the JVM was once asked about a class is known of all its nodes: a definition has hundreds of nodes of a
# few dozen classes, and each question is a call into another process
_simple_names: dict[str, str] = {}
_instances: dict[tuple[str, str], bool] = {}


def full_name(node: Any) -> str:
    """The name of its class with the package."""
    return str(node.getClass().getName())


def simple_name(node: Any, full: str | None = None) -> str:
    """The name of its class alone; `full` is the one with the package where it is known."""
    full = full or full_name(node)
    found = _simple_names.get(full)
    if found is None:
        found = _simple_names[full] = str(node.getClass().getSimpleName())
    return found


def is_a(node: Any, of: str, full: str | None = None) -> bool:
    """Whether it is an instance of the class or trait `of`; `full` is its own class's name where known."""
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    key = full or full_name(node), of
    found = _instances.get(key)
    if found is None:
        gateway = SparkContext._active_spark_context._gateway  # type: ignore[union-attr]
        found = _instances[key] = bool(is_instance_of(gateway, node, of))
    return found

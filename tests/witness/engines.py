"""Owns what each engine makes of expressions over the hostile rows: a value per row, or that it raises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.witness.database import connect
from twinlake.witness.expressions import translate
from twinlake.witness.types import Type, identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAISED = "raised"
_AT_ONCE = 40
"""Expressions in one job of Spark."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """What an engine makes of an expression: its type as Spark writes it, and each row's value or RAISED."""

    type: str
    values: Sequence[Any]


class BySpark:
    """Evaluates in the session of the tests; a row that raises does not end the others."""

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self._spark = spark
        spark.conf.set(
            "spark.sql.subexpressionElimination.enabled", "false"
        )  # it would raise outside of `try`
        self._rows = spark.read.parquet(str(file)).coalesce(1)

    def close(self) -> None:
        self._spark.conf.unset("spark.sql.subexpressionElimination.enabled")

    def columns(self, expressions: Sequence[str]) -> dict[str, Column | str]:
        """By expression, its column, or why Spark refuses it."""
        found: dict[str, Column | str] = {}
        for at in range(0, len(expressions), _AT_ONCE):
            found |= self._some(expressions[at : at + _AT_ONCE])
        return found

    def _some(self, expressions: Sequence[str]) -> dict[str, Column | str]:
        types = {one: self._type(one) for one in expressions}
        fine = [one for one, type_ in types.items() if not type_.startswith("!")]
        found: dict[str, Column | str] = {one: types[one] for one in expressions if one not in fine}
        if fine:
            found |= self._evaluated({one: types[one] for one in fine})
        return found

    def _evaluated(self, types: dict[str, str]) -> dict[str, Column | str]:
        """Some are refused only when they are planned: each is then asked for alone."""
        from pyspark.errors import PySparkException

        names = {one: str(at) for at, one in enumerate(types)}
        try:
            rows = self._rows.select("row", *(self._tried(one, name) for one, name in names.items()))
            table = rows.toArrow().sort_by("row")
        except PySparkException as error:
            if len(types) == 1:
                return dict.fromkeys(types, f"! {str(error).splitlines()[0]}")
            alone = (self._evaluated({one: type_}) for one, type_ in types.items())
            return {one: column for found in alone for one, column in found.items()}
        return {
            one: Column(type=types[one], values=_values(table.column(name))) for one, name in names.items()
        }

    def _type(self, expression: str) -> str:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F

        try:
            shown: DataFrame = self._rows.select(F.expr(expression).alias("v"))
            return shown.schema["v"].dataType.simpleString()
        except PySparkException as error:
            return f"! {str(error).splitlines()[0]}"

    def _tried(self, expression: str, name: str) -> Any:
        """NULL where it raises, else a struct of the value; by the CASE Arrow sees that it may be NULL."""
        from pyspark.sql.classic.column import Column as SparkColumn

        jvm: Any = self._spark._jvm
        parser = self._spark._jsparkSession.sessionState().sqlParser()
        inner = parser.parseExpression(f"named_struct('v', CASE WHEN row >= 0 THEN {expression} END)")
        tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(inner)
        return SparkColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried)).alias(name)


class ByDuckDB:
    """Evaluates what the witness makes of the expressions, over the same file."""

    def __init__(self, file: Path, types: Mapping[str, str]) -> None:
        self._types = {name: Type.parse(text) for name, text in types.items()}
        self._connection = connect(memory_mb=2048)
        # it would compute what `try` holds outside of it
        self._connection.execute("SET disabled_optimizers = 'common_subexpressions'")
        columns = ", ".join(
            f"CAST({identifier(name)} AS {type_.duckdb}) AS {identifier(name)}"
            for name, type_ in self._types.items()
        )
        self._connection.execute(
            f"CREATE TABLE hostile AS SELECT row, {columns} FROM read_parquet('{file}') ORDER BY row"
        )

    def column(self, expression: str) -> Column:
        """Refused where a part of it is not listed."""
        translated = translate(expression, self._types)
        table = self._connection.sql(
            f"SELECT row, TRY(struct_pack(v := {_tryable(translated.sql)})) AS v FROM hostile ORDER BY row"
        ).to_arrow_table()
        return Column(type=translated.type.spark, values=_values(table.column("v")))


def _tryable(sql: str) -> str:
    """DuckDB's TRY takes no `error`; this raises as well, and has no type either."""
    return re.sub(r"error\('(?:[^']|'')*'\)", "([NULL])[CAST('x' || row AS INTEGER)]", sql)


def _values(tried: pa.ChunkedArray) -> list[Any]:
    """Times as whole numbers: Spark's have a zone and DuckDB's none, and Python lacks some of the years."""
    array = tried.combine_chunks()
    inner = array.field("v")
    if pa.types.is_date32(inner.type):
        inner = inner.cast(pa.int32())
    elif pa.types.is_timestamp(inner.type):
        inner = inner.cast(pa.int64())
    fine = array.is_valid().to_pylist()
    return [value if is_fine else RAISED for value, is_fine in zip(inner.to_pylist(), fine, strict=True)]


def same(one: Any, other: Any) -> bool:
    """Whether two values are one: NaN is, 0.0 is -0.0, and a number is no text."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return same(list(one), list(other))
    return (type(one) is type(other) and bool(one == other)) or _instants(one) == _instants(other) is not None


def _instants(value: Any) -> Any:
    """A point in time by its microseconds; Spark's have a zone, DuckDB's are UTC without."""
    from datetime import datetime

    return value.replace(tzinfo=None) if isinstance(value, datetime) else None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`equal`, `guard` (some rows raise in DuckDB alone, the others are equal), or what is wrong."""

    name: str
    example: str = ""


def compare(spark: Column, duckdb: Column, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """What the two engines' columns are to each other; `rows` are named in the example."""
    if spark.type != duckdb.type:
        return Verdict(name="another type", example=f"Spark {spark.type}, witness {duckdb.type}")
    pairs = list(zip(spark.values, duckdb.values, rows, strict=True))
    for one, other, row in pairs:
        if one is RAISED and other is not RAISED:
            return Verdict(name="raises in Spark alone", example=f"{row}: {other!r}")
        if RAISED not in (one, other) and not same(one, other):
            return Verdict(name="differs", example=f"{row}: Spark {one!r}, witness {other!r}")
    if all(one is None or one is RAISED for one, _, _ in pairs):
        return Verdict(name="shows nothing")
    return Verdict(
        name="guard" if any(it is RAISED and one is not RAISED for one, it, _ in pairs) else "equal"
    )

"""What a row-local step may not hold, and that each refusal names the line."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project import OURS
from twinlake.base.errors import DefinitionError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.analysis import analyse, problems
from twinlake.kinds.events import Events
from twinlake.kinds.expression import Expression
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.row_local import why_refused
from twinlake.topics.change_data import DATABASES, place
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders", OURS)
TOPICS = {ORDERS.name: ORDERS}
TABLE = Aggregate(name="t", inputs=("orders",), columns={"k": "region"}, keys=("k",), measures={"n": Count()})

REFUSED = {
    "sum(amount)": "an aggregate",
    "count(DISTINCT amount)": "an aggregate",
    "max(amount) FILTER (WHERE true)": "an aggregate",
    "row_number() OVER (ORDER BY amount)": "a window function",
    "lag(amount) OVER (ORDER BY amount)": "a window function",
    "(SELECT 1)": "a subquery",
    "exists(SELECT 1)": "a subquery",
    "amount IN (SELECT 1)": "a subquery",
    "explode(array(1))": "a generator",
    "stack(2, 1, 2)": "a generator",
    "window(ordered_at, '1 minute')": "row-local",
    "rand()": "not deterministic",
    "uuid()": "not deterministic",
    "shuffle(array(1, 2))": "not deterministic",
    "monotonically_increasing_id()": "not deterministic",
    "now()": "not deterministic",
    "current_date": "not deterministic",
    "current_timestamp": "not deterministic",
    "unix_timestamp()": "not deterministic",
    "current_user()": "not deterministic",
    "input_file_name()": "not deterministic",
    "timestamp 'now'": "not deterministic",
    "date'today'": "not deterministic",
    "CAST('now' AS TIMESTAMP)": "not deterministic",
    "ordered_at > ' Yesterday'": "not deterministic",
    "CAST(concat('to', 'day') AS DATE)": "not deterministic",
    "java_method('java.lang.System', 'exit', 1)": "calls into Java",
    "reflect('java.lang.System', 'exit', 1)": "calls into Java",
    "try_reflect('java.lang.System', 'exit', 1)": "calls into Java",
    "no_such_function(amount)": "not a built-in function",
    "spark_catalog.default.f(1)": "not a built-in function",
    "amount AS other": "an alias",
    "*": "a star",
    "no_such_column": "cannot be resolved",
    "amount +": "yntax error",
    "1) , (2": "yntax error",
    "1 FROM x --": "yntax error",
    "array(amount) > 1": "mismatch",
    "NULL": "no type",
    "300Y": "INVALID_NUMERIC_LITERAL_RANGE",
    "9999999999999999999L": "INVALID_NUMERIC_LITERAL_RANGE",
    "1e400": "INVALID_NUMERIC_LITERAL_RANGE",
    "/*+ BROADCAST(a) */ region": "yntax error",
    "region COLLATE NOPE": "COLLATION_INVALID_NAME",
}
ALLOWED = [
    "upper(region)",
    "amount * 2 -- twice",
    "CASE WHEN status = 'now' THEN 'a' ELSE 'b' END",
    "transform(array(1, 2), x -> x + 1)[0]",
    "aggregate(array(1, 2), 0, (a, b) -> a + b)",
    "ordered_at > '2026-01-01'",
    "date_trunc('hour', ordered_at)",
    "sha2(event_id, 256)",
]


def _why(table: Aggregate | Latest, spark: SparkSession) -> list[str]:
    return [problem.why_text for problem in problems(table, TOPICS, spark)]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_row_local_is_refused(spark: SparkSession, sql: str) -> None:
    found = _why(replace(TABLE, columns={"k": sql}), spark)

    assert len(found) == 1 and REFUSED[sql] in found[0], found


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_is_row_local_is_allowed(spark: SparkSession, sql: str) -> None:
    assert _why(replace(TABLE, columns={"k": sql}), spark) == []


@pytest.mark.parametrize("where", ["true", "true -- always"])
def test_a_name_alone_is_a_condition(spark: SparkSession, where: str) -> None:
    table = Events(name="t", inputs=("orders",), columns={"k": "region"}, where=where)

    assert [problem.why_text for problem in problems(table, TOPICS, spark)] == []


@pytest.mark.parametrize("database", DATABASES)
def test_the_place_in_a_database_s_log_is_row_local(spark: SparkSession, database: str) -> None:
    rows = spark.sql("SELECT named_struct('lsn', 1L, 'file', 'binlog.000001', 'pos', 4L, 'row', 0) AS source")

    assert [why_refused(Expression(what="it", sql=sql), rows) for sql in place(database)] == [None, None]


def test_a_refusal_names_file_and_line_of_the_expression(spark: SparkSession) -> None:
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    table = Aggregate(
        name="t",
        inputs=("orders",),
        columns={
            "k": "region",
            "bad": "rand() * 17",
        },
        keys=("k",),
        measures={"n": Count()},
    )

    with pytest.raises(DefinitionError) as caught:
        analyse(table, TOPICS, spark)

    assert Path(caught.value.file).name == Path(__file__).name
    assert caught.value.line == line + 6


def test_a_stored_definition_has_no_file_and_is_refused_all_the_same(spark: SparkSession) -> None:
    table = Aggregate.from_json({**TABLE.to_json(), "columns": [["k", "rand()"]]})

    with pytest.raises(DefinitionError, match="stored definition"):
        analyse(table, TOPICS, spark)


def test_a_delete_condition_is_held_to_the_same_rules(spark: SparkSession) -> None:
    table = Latest(
        name="t", inputs=("orders",), columns={"k": "region", "at": "ordered_at"}, keys=("k",), order=("at",),
        delete_when="rand() > 0.5", values=("at",),
    )  # fmt: skip

    assert ["not deterministic" in why for why in _why(table, spark)] == [True]

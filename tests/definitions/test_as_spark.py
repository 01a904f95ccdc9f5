"""What is said without Spark is what Spark says: functions, types of expressions, columns of views."""

from __future__ import annotations

import random
import re
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.definitions.forms import FORMS, QUERIES
from tests.definitions.test_without_spark import NO_SQL, ORDERS, TAKEN, typed
from tests.longer import some
from tests.project import EXAMPLES, OURS, SOURCES, TABLES, example_of
from tests.witness import hostile_values
from tests.witness.test_matrix import EVALUATED, REFUSED
from twinlake.definitions import syntax
from twinlake.definitions.typed_rows import Misspelt, TypedRows
from twinlake.definitions.without_spark import Typist
from twinlake.kinds import functions
from twinlake.kinds.analysis import columns
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.expression import Expression
from twinlake.kinds.row_local import analysed, why_refused
from twinlake.topics.topic import load_topic
from twinlake.witness.refused import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = sorted({*(text for _, text in EVALUATED), *REFUSED})


def test_the_listed_functions_are_those_of_spark(spark: SparkSession) -> None:
    registry: Any = spark._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()  # type: ignore[union-attr]
    listed = registry.listFunction()
    found = {}
    for number in range(listed.size()):
        one = listed.apply(number)
        found[str(one.funcName())] = str(registry.lookupFunction(one).get().getGroup())

    assert found == functions.known()


@pytest.mark.parametrize("drawn", [40, pytest.param(len(EXPRESSIONS), marks=pytest.mark.faults)])
def test_what_is_typed_is_row_local_to_spark_and_of_the_same_type(
    spark: SparkSession, seed: int, drawn: int
) -> None:
    rows = TypedRows.of(hostile_values.TYPES.items())
    shown = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in hostile_values.TYPES.items())
    empty = spark.sql(f"SELECT {shown} WHERE false")
    wrong = {}
    for sql in random.Random(seed).sample(EXPRESSIONS, drawn):
        with suppress(Refused, Misspelt):
            mine = rows.type_of(sql).spark
            expression = Expression(what="it", sql=sql)
            theirs = why_refused(expression, empty) or analysed(expression, empty)[1]
            if mine != theirs:
                wrong[sql] = (mine, theirs)

    assert wrong == {}


def test_nothing_that_spark_takes_is_misspelt(spark: SparkSession) -> None:
    rows = TypedRows.of(hostile_values.TYPES.items())
    shown = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in hostile_values.TYPES.items())
    empty = spark.sql(f"SELECT {shown} WHERE false")
    wrong = {}
    for sql in EXPRESSIONS:
        try:
            rows.type_of(sql)
        except Misspelt as error:
            if why_refused(Expression(what="it", sql=sql), empty) is None:
                wrong[sql] = error.why_text
        except Refused:
            pass

    assert wrong == {}


def test_what_must_not_be_wrong_is_taken_by_spark(spark: SparkSession) -> None:
    shown = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in ORDERS.columns)
    empty = spark.sql(f"SELECT {shown} WHERE false")

    refused = {sql: why_refused(Expression(what="it", sql=sql), empty) for sql in TAKEN}

    assert {sql: why for sql, why in refused.items() if why} == {}


def test_what_is_no_sql_without_spark_is_none_to_spark(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    refused, wrong = list[str](), dict[str, str]()
    for parse, texts, why_wrong in (
        (parser.parseExpression, FORMS, syntax.why_no_expression),
        (parser.parsePlan, QUERIES, syntax.why_no_query),
    ):
        for sql in texts:
            try:
                parse(sql)
            except Exception:  # py4j passes on what the parser throws, without a common class
                refused.append(sql)
                continue
            if why := why_wrong(sql):
                wrong[sql] = why

    assert wrong == {} and len(refused) < 0.05 * (len(FORMS) + len(QUERIES))


@pytest.mark.parametrize("sql", NO_SQL)
def test_what_is_called_no_sql_is_none_to_spark(spark: SparkSession, sql: str) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()

    assert syntax.why_no_expression(sql)
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        parser.parseExpression(sql)


@pytest.mark.faults
def test_no_example_of_spark_s_own_docs_is_called_no_sql(spark: SparkSession) -> None:
    examples = list[str]()
    for name in functions.known():
        with suppress(PySparkException):  # of an operator that is written otherwise
            lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
            text = "\n".join(one[0] for one in lines)
            examples += (one.split("\n")[0] for one in re.findall(r"> (SELECT .*?);\s*$", text, re.M | re.S))

    assert len(examples) > 1000
    assert {sql: why for sql in examples if (why := syntax.why_no_query(sql))} == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_columns_of_this_project_s_views_are_spark_s(spark: SparkSession, table: Any) -> None:
    topics = {name: load_topic(name, OURS) for name in table.inputs}

    assert list(typed(table).columns or ()) == columns(table, topics, spark)


@pytest.mark.parametrize("example", some(EXAMPLES, 3))
def test_the_columns_of_an_example_s_views_are_spark_s(spark: SparkSession, example: str) -> None:
    topics = {name: load_topic(name, example_of(example)) for name in SOURCES[example]}
    known = {}
    with closing(Typist(topics=topics)) as typist:
        for table in ordered(EXAMPLES[example]):
            known[table.name] = table
            found = typist.typed(table)
            assert (found.wrong, found.left) == ((), ())
            assert list(found.columns or ()) == columns(table, topics, spark, known)

"""Rows that Python has become a relation with the same values, and no task of it runs Python."""

from __future__ import annotations

from decimal import Decimal
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from twinlake.batch.sampled import local_rows

EVERY_TYPE = """
    SELECT 1 AS whole, CAST(NULL AS bigint) AS nothing, CAST('1.50' AS decimal(38, 2)) AS price,
           X'00FF' AS bytes, TIMESTAMP '1969-12-31 23:59:59.999999Z' AS at, DATE '2026-01-31' AS day,
           'a\u00fc' AS text, double('NaN') AS number, true AS flag,
           array(named_struct('x', 1, 'y', 'z'), NULL) AS list, map('a', decimal(1.25)) AS prices,
           named_struct('at', TIMESTAMP '2026-01-31 12:00:00Z') AS inner
    UNION ALL SELECT 2, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, array(), map(), NULL
"""


def test_a_relation_of_collected_rows_has_their_values_and_types(spark: SparkSession) -> None:
    asked = spark.sql(EVERY_TYPE)
    rows = asked.collect()

    found = local_rows(spark, rows, asked.schema)

    assert found.dtypes == asked.dtypes
    assert [repr(row) for row in found.orderBy("whole").collect()] == [repr(row) for row in rows]
    assert rows[0]["price"] == Decimal("1.50")


def test_executors_need_no_python_for_it(spark: SparkSession) -> None:
    schema = spark.range(0).schema

    def plan(rows: DataFrame) -> str:
        return str(rows._jdf.queryExecution().executedPlan().toString()) + lineage(rows)

    def lineage(rows: DataFrame) -> str:
        return str(rows._jdf.queryExecution().toRdd().toDebugString())

    assert "Python" in plan(spark.createDataFrame([(1,)], schema)), "this test would see nothing"
    assert "Python" not in plan(local_rows(spark, [(1,)], schema))
    assert local_rows(spark, [(1,)], schema).where(f"'{uuid4().hex}' <> ''").collect()[0]["id"] == 1

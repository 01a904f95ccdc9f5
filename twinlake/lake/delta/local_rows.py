"""Rows that Python has, as a relation: part of the plan itself, so that executors need no Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def local_rows(spark: SparkSession, rows: Sequence[Sequence[object]], schema: StructType) -> DataFrame:
    """At least one row, with the values in the order of the schema's columns, as Spark has collected them.

    Of a list `createDataFrame` makes tasks that run Python; of Arrow it does not.
    """
    from pyspark.sql.conversion import LocalDataToArrowConversion

    nullable = schema.toNullable()
    table = LocalDataToArrowConversion.convert([tuple(row) for row in rows], nullable, False)
    return spark.createDataFrame(table, nullable)

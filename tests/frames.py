"""Relations of rows that a test has made up, by Arrow: from tuples Spark starts Python workers each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], ddl: str) -> DataFrame:
    """The rows as a relation of these columns, such as "`id` bigint, `at` timestamp"."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    typed = to_arrow_schema(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, typed, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=typed), schema)

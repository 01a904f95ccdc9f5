"""Sampled: whether a view's rows depend, as its `by` promises, on input rows with equal values alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from twinlake.base import quote
from twinlake.difference.diff import Diff, Side, diff
from twinlake.difference.pinned import only, side
from twinlake.lake.catalog.certificates import SHOWN
from twinlake.lake.catalog.maintained_version import LogView
from twinlake.lake.catalog.version import Pin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SAMPLES = 8
"""Values of `by` at most, and at most half of those that there are: what depends on the others is to show."""


def sampled(view: LogView, pin: Pin, shown: Side) -> Diff | None:
    """What the view shows for some values of its `by` against the view over rows with these values alone.

    `shown` is all that it shows at the pin. A table without these columns is read whole. None where nothing
    is promised, or nothing can be said: no `by`, states instead of views, fewer than two values.
    """
    from pyspark.sql import functions as F

    by = view.definition.by
    if not by or view.definition.reads_states:
        return None
    values = shown.rows.select(*by).distinct()
    wanted = min(SAMPLES, values.count() // 2)
    if not wanted:
        return None
    drawn = values.orderBy(F.xxhash64(*map(quote.name, by)), *map(quote.name, by)).limit(wanted).collect()
    relation = f"sampled_{uuid4().hex}"
    local_rows(view.spark, drawn, values.schema).createOrReplaceTempView(relation)
    try:
        sample = view.spark.table(relation)
        alone = only(side(replace(view, among=relation), pin), sample)
        return diff(only(shown, sample), alone, view.definition.view_keys, shown=SHOWN)
    finally:
        view.spark.catalog.dropTempView(relation)


def local_rows(spark: SparkSession, rows: Sequence[Sequence[object]], schema: StructType) -> DataFrame:
    """At least one row, with the values in the order of the schema's columns, as Spark has collected them.

    Of a list `createDataFrame` makes tasks that run Python; of Arrow it does not.
    """
    from pyspark.sql.conversion import LocalDataToArrowConversion

    nullable = schema.toNullable()
    table = LocalDataToArrowConversion.convert([tuple(row) for row in rows], nullable, False)
    return spark.createDataFrame(table, nullable)

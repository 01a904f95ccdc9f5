"""Prepared plans: to plan a small batch costs Spark more than to compute it, so a plan is made once for all.

The rows come from a slot (`java/twinlake/lake/Slots`) and go to a file, both as Arrow, never through py4j.
Nothing that changes from batch to batch may stand in such a plan.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_BYTES = 1 << 30
"""A prepared plan computes no more; as much as Spark's driver takes of other plans."""
SMALL_BYTES = 4 << 20
"""A larger result of `small` is left to Spark's tasks."""
_TURNS = threading.BoundedSemaphore(max(2, os.cpu_count() or 2))
"""More plans at once would only share the cores, and each holds its rows in memory."""


class TooLargeError(Exception):
    """What was to be computed in memory has more bytes than it may have."""


class ArrowFile:
    """Rows in a file that goes when nobody has this object any more; for prepared plans of `spark`'s JVM."""

    def __init__(self, spark: SparkSession, rows: pa.Table) -> None:
        self.path = _scratch(spark)
        weakref.finalize(self, self.path.unlink, missing_ok=True)
        with pa.OSFile(str(self.path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)


class PreparedPlan:
    """What `build` makes of a relation with the columns of `schema`; it may have no exchange in it.

    It is computed in the calling thread: what Spark's scheduler adds costs more than a small batch, and a
    rebuild may hold all slots.
    """

    def __init__(
        self,
        spark: SparkSession,
        schema: StructType,
        build: Callable[[DataFrame], DataFrame],
        turns: AbstractContextManager[Any] = _TURNS,
    ) -> None:
        """`turns` are shared by all plans that wait for each other."""
        from pyspark.sql import DataFrame

        self._spark = spark
        self._slot = uuid4().hex
        self._lock = threading.Lock()
        self._turns = turns
        session: Any = spark._jsparkSession
        java: Any = spark._jvm
        self._slots = java.twinlake.lake.Slots
        columns = session.parseDataType(schema.json())
        source = DataFrame(self._slots.relation(session, self._slot, columns), spark)
        # one partition, and Spark knows it: nothing has to be exchanged to group
        self._plan = java.twinlake.lake.PreparedPlan.of(build(source.coalesce(1))._jdf)

    def run(self, rows: ArrowFile | DataFrame, share: int = 0, shares: int = 1) -> pa.Table:
        """The result over these rows, which have the schema's columns in its order; a relation's plan is one
        without a shuffle. Of a relation it is that over one share of its partitions, in their order. One run
        at a time."""
        with self._lock, self._turns:
            if isinstance(rows, ArrowFile):
                self._slots.fill(self._slot, str(rows.path))
            else:
                self._slots.fill(self._slot, rows._jdf, share, shares)
            try:
                return _computed(self._spark, self._run)
            finally:
                self._slots.empty(self._slot)

    def _run(self, file: str) -> None:
        if not self._plan.run(file, MOST_BYTES):
            raise TooLargeError(f"more than {MOST_BYTES:,} bytes")


class Newest:
    """The plan that was made last; made again when what it is made for has changed."""

    def __init__(self) -> None:
        self._made_for: object = None
        self._plan: PreparedPlan | None = None

    def plan(self, made_for: object, make: Callable[[], PreparedPlan]) -> PreparedPlan:
        if self._plan is None or made_for != self._made_for:
            self._plan, self._made_for = make(), made_for
        return self._plan


def computed(rows: DataFrame) -> pa.Table:
    """A relation that is needed once. `toArrow` refuses null structs with fields declared as not null."""
    java: Any = rows.sparkSession._jvm
    return _computed(rows.sparkSession, lambda file: java.twinlake.lake.PreparedPlan.once(rows._jdf, file))


def small(rows: DataFrame) -> pa.Table | None:
    """A relation with a small result that is needed once, computed in this thread, without the scheduler and
    without a file. None, before anything is computed, where it has more partitions than one, or a shuffle.

    TooLargeError where it has more bytes; `rows` is used up by then, and has to be planned again
    (`rows.select("*")`) for Spark's tasks.

    `twinlake.spark.session.cancel` with one of this thread's job tags ends it, as it ends Spark's tasks.
    """
    java: Any = rows.sparkSession._jvm
    found = java.twinlake.lake.PreparedPlan.small(rows._jdf, SMALL_BYTES)
    if found is None:
        return None
    if not found:
        raise TooLargeError(f"more than {SMALL_BYTES:,} bytes")
    with pa.ipc.open_stream(found) as stream:
        return stream.read_all()


def _computed(spark: SparkSession, run: Callable[[str], None]) -> pa.Table:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    result = _scratch(spark)
    try:
        run(str(result))
        with pa.OSFile(str(result)) as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()
    except (Py4JJavaError, PySparkException) as error:
        if "spark.driver.maxResultSize" in str(error):
            raise TooLargeError(str(error)[:300]) from error
        raise
    finally:
        result.unlink(missing_ok=True)


def _scratch(spark: SparkSession) -> Path:
    """A file's name in Spark's own scratch folder."""
    return scratch_folder(spark) / f"{uuid4().hex}.arrow"

"""Spool: a statement's rows while they wait for their reader, small ones in memory, others in files.

Spark's tasks write the files, each an Arrow stream in the scratch folder, so that no memory holds the rows as
a whole. Bytes are limited and counted, of each result and of all of a pool (`java/twinlake/lake/Spool`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base.errors import UsageError
from twinlake.base.files import full_disk
from twinlake.spark.prepared_plan import TooLargeError, small
from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

MOST_FIELDS = 2_000
"""Columns, or fields inside them: for each of them every task holds some 50 kB outside the heap."""
TOO_LARGE, FULL, NO_ROOM = "Spool$TooLarge", "Spool$Full", "Spool$NoRoom"
"""Java's names of what it raises: a result, all of its pool, or its disk has no room for more."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bytes of a result, of all results of its pool, and what its disk has to keep free meanwhile."""

    pool: str
    most: int
    most_in_all: int
    kept_free: int = 0


@dataclass(frozen=True, kw_only=True)
class Spooled:
    """All rows of a statement: a small `table`, or files of which the first has none."""

    columns: list[dict[str, str]]
    table: pa.Table | None
    files: tuple[Path, ...]
    _release: Callable[[], None]

    def release(self) -> None:
        """Deletes the files, and gives back what they were counted for."""
        self.delete()
        self._release()

    def delete(self) -> None:
        for file in self.files:
            file.unlink(missing_ok=True)


class Spool:
    """Computes statements into memory or files."""

    def __init__(self, spark: SparkSession, bounds: Bounds) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.lake.Spool
        self._folder = scratch_folder(spark)
        self._pool = bounds.pool
        self._bounds = self._java.Bounds(bounds.pool, bounds.most, bounds.most_in_all, bounds.kept_free)

    @property
    def bytes_held(self) -> int:
        """Of the pool."""
        held: int = self._java.inAll(self._pool)
        return held

    def of(self, frame: DataFrame) -> Spooled:
        """The rows, to be released. An error names TOO_LARGE, FULL or NO_ROOM; FullDiskError."""
        columns = [{"name": name, "type": type_} for name, type_ in frame.dtypes]
        _refuse_unknown(columns)
        _refuse_many(_fields(frame.schema))
        name = self._name()
        try:
            table, files = self._computed(frame, name)
        except BaseException as error:
            for path in self._folder.glob(f"{Path(name).name}-*"):
                path.unlink(missing_ok=True)
            self._java.release(name)
            if full := full_disk(self._folder, error=error):
                raise full from error
            raise
        return Spooled(
            columns=columns, table=table, files=files, _release=lambda: self._java.release(name)
        )  # fmt: skip

    def hold(self, bytes_: int) -> Callable[[], None]:
        """Counts so many bytes in memory, until what is returned is called; errors as of `of`."""
        name = self._name()
        try:
            self._java.hold(name, bytes_, self._bounds)
        except BaseException:
            self._java.release(name)
            raise
        return lambda: self._java.release(name)

    def _name(self) -> str:
        return str(self._folder / f"{self._pool}-{uuid4().hex}")

    def _computed(self, frame: DataFrame, name: str) -> tuple[pa.Table | None, tuple[Path, ...]]:
        """A small result in this thread, others by Spark's tasks."""
        try:
            found = small(frame)
        except TooLargeError:
            # planned again: a sort that was begun in this thread cannot be sent to tasks
            found, frame = None, frame.select("*")
        if found is not None:
            self._java.hold(name, found.nbytes, self._bounds)
            return found, ()
        count = self._java.write(frame._jdf, name, self._bounds)
        names = [f"{name}-schema", *(f"{name}-{number}" for number in range(count))]
        return None, tuple(path for path in map(Path, names) if path.exists())


def _refuse_unknown(columns: list[dict[str, str]]) -> None:
    """Arrow for Python does not know intervals of years and months."""
    for column in columns:
        if "interval year" in column["type"] or "interval month" in column["type"]:
            raise UsageError(
                "the query failed", f"{column['name']} is {column['type']}, which cannot be shown",
                "select it as text: cast(... AS string)",
            )  # fmt: skip


def _refuse_many(fields: int) -> None:
    if fields > MOST_FIELDS:
        why = f"its answer has {fields:,} columns and fields, and at most {MOST_FIELDS:,} are sent over HTTP"
        raise UsageError("the query was refused", why, "select fewer of them, or use JDBC")


def _fields(type_: DataType) -> int:
    """Of a type with all that is inside it."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, StructType):
        return sum(_fields(one.dataType) for one in type_.fields)
    if isinstance(type_, ArrayType):
        return _fields(type_.elementType)
    if isinstance(type_, MapType):
        return _fields(type_.keyType) + _fields(type_.valueType)
    return 1

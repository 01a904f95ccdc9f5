"""The valid rows of the newest batch of a log, in memory: what versions take their next step from."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Union

import pyarrow as pa
import pyarrow.compute as pc

from jobs.lake.kept_plan import ArrowFile
from jobs.lake.log import EVENT, Log
from jobs.topics.verdict import VALID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FROM_LOG = ("epoch", "partition", "offset", "timestamp", "schema_id", "ingested_at")


class FreshRows:
    """Of a batch whose rows (all the log's columns) are at hand as `rows`."""

    def __init__(self, log: Log, rows: pa.Table) -> None:
        self._log = log
        self._rows = rows
        self._file: ArrowFile | None = None
        self._lock = threading.Lock()

    @property
    def file(self) -> ArrowFile:
        """The columns of `schema`; written once, by whoever asks first."""
        with self._lock:
            if self._file is None:
                self._file = self._written()
            return self._file

    def _written(self) -> ArrowFile:
        chosen = pc.equal(self._rows.column("verdict"), VALID)
        valid = self._rows.select([*FROM_LOG, EVENT]).filter(chosen).combine_chunks()
        names = [field.name for field in self._log.topic.newest.fields]
        fields = [pc.struct_field(valid.column(EVENT), name).combine_chunks() for name in names]
        event = pa.StructArray.from_arrays(fields, names)
        rows = pa.table([*(valid.column(name) for name in FROM_LOG), event], [*FROM_LOG, EVENT])
        return ArrowFile(self._log.spark, rows)


NewRows = Union["DataFrame", FreshRows]
"""The rows of a new batch as definitions read them; one too large for memory is read from its files."""


def schema(log: Log) -> StructType:
    """The columns of a log's fresh rows."""
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(log.ddl)
    return StructType([columns[name] for name in (*FROM_LOG, EVENT)])

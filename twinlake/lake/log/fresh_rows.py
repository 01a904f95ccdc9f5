"""The rows of the newest batch of a log: what versions take their next step from."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.lake.log.log import EVENT, Log, ddl
from twinlake.spark.prepared_plan import ArrowFile
from twinlake.topics import record_key
from twinlake.topics.contract import DELETE
from twinlake.topics.spark_type import is_record
from twinlake.topics.verdict import VALID

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FROM_LOG = ("epoch", "partition", "offset", "timestamp", "schema_id", "ingested_at")


class FreshRows:
    """Of a batch whose rows (all of them, with all the log's columns) are in memory as `rows`."""

    def __init__(self, log: Log, rows: pa.Table) -> None:
        self._log = log
        self._rows = rows
        self._files: dict[tuple[tuple[str, str], ...], ArrowFile] = {}
        self._lock = threading.Lock()

    def file(self, read: Mapping[str, str]) -> ArrowFile:
        """The columns of `schema`; written once, by whoever asks first.

        `read` is the log's by the plan that they are for: it may have gained fields since the batch.
        """
        with self._lock:
            key = tuple(read.items())
            found = self._files.get(key)
            if found is None:
                found = self._files[key] = self._written(read)
            return found

    def _written(self, read: Mapping[str, str]) -> ArrowFile:
        chosen = pc.equal(self._rows.column("verdict"), VALID)
        from_log = _from_log(self._log)
        valid = self._rows.select([*from_log, EVENT]).filter(chosen).combine_chunks()
        events = valid.column(EVENT)
        fields = [
            _with_gained(pc.struct_field(events, name).combine_chunks(), type_)
            if events.type.get_field_index(name) >= 0
            else pa.nulls(len(events), _arrow_type(type_))
            for name, type_ in read.items()
        ]
        deletes = self._log.topic.contract.null_values == DELETE
        gone = events.is_null().combine_chunks() if deletes else None
        event = pa.StructArray.from_arrays(fields, list(read), mask=gone)
        rows = pa.table([*(valid.column(name) for name in from_log), event], [*from_log, EVENT])
        return ArrowFile(self._log.spark, rows)


@dataclass(frozen=True)
class FreshFiles:
    """Of a batch too large for memory: its data files (paths below the log's table).

    Each version reads them through its own log, by the schema that it was made with.
    """

    files: tuple[str, ...]


NewRows = FreshRows | FreshFiles
"""The rows of a new batch, in memory or in its files."""


def schema(log: Log, read: Mapping[str, str]) -> StructType:
    """The columns of a log's fresh rows, with these fields (and their Spark types) in `event`."""
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(ddl(read))
    return StructType([columns[name] for name in (*_from_log(log), EVENT)])


def _with_gained(values: pa.Array, type_: str) -> pa.Array:
    """The values with the fields that their records have gained since, all NULL."""
    return _grown(values, _arrow_type(type_)) if is_record(type_) else values


def _grown(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(type_) or values.type == type_:
        return values
    fields = [
        _grown(pc.struct_field(values, one.name), one.type)
        if values.type.get_field_index(one.name) >= 0
        else pa.nulls(len(values), one.type)
        for one in type_
    ]
    return pa.StructArray.from_arrays(fields, [one.name for one in type_], mask=values.is_null())


@cache
def _arrow_type(type_: str) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructType

    return to_arrow_type(StructType.fromDDL(f"it {type_}")["it"].dataType)


def _from_log(log: Log) -> tuple[str, ...]:
    return (*FROM_LOG, *record_key.log_columns(log.topic.contract))

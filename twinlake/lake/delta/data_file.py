"""One data file of a Delta table, and what Delta's log says of it: a small one that pyarrow writes, or one
that Spark has written elsewhere.

Statistics follow the protocol: numbers as JSON numbers with all their digits, times in milliseconds, rounded
so that no value is outside; none for floating point numbers that are not finite (Arrow passes over NaN, Spark
sorts it highest). Other columns have them always: deltalake loses rows where some columns have and some not.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinlake.base.location import Location
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged

Column = tuple[str, ...]
"""A column's name, or the names on the way to a field inside it."""
PART = "part"
"""How the names of data files begin, by custom."""
BATCH_ROWS = 1_000_000
"""So many rows of a file are looked at together."""
LONGEST_TEXT = 32
"""Of a longer text its beginning is kept, as the upper bound with the greatest character of all behind it."""
UNDECODABLE = (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError)
"""What pyarrow raises of bytes in memory that are no Parquet file."""
_EXPECTED = "the data file as it was written"
_LONGEST_FOUND = 300
GREATEST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999  # of the year 9999


def write(
    rows: pa.Table, table: Location, partition: Mapping[str, str], statistics: Sequence[Column]
) -> dict[str, Any]:
    """Writes the rows (without the partition's columns) as one file below `table`; its `add` action.

    Nobody sees the file before the action is committed. Raises OSError.
    """
    name = _new_name(table, partition)
    with store.writer(table / name) as out:
        pq.write_table(
            rows, out, compression="zstd", compression_level=1, store_schema=False, write_page_checksum=True
        )
    return _added(table, name, partition, statistics_text(rows, statistics))


def read(file: Location, use_threads: bool = True) -> pa.Table:
    """All of a data file, by this thread alone if asked for; DamagedError where it is not there, or
    not as it was written. Any other OSError is one of the store, and says nothing of the file."""
    try:
        content = store.read(file)
    except FileNotFoundError as error:
        raise damaged(file, "it is not there", _EXPECTED) from error
    try:
        return _opened(content).read(use_threads=use_threads)
    except UNDECODABLE as error:
        raise damaged(file, str(error)[:_LONGEST_FOUND], _EXPECTED) from error


def problem(file: Location) -> str | None:
    """What is wrong with the bytes of a data file; None of one that can be read. Raises OSError."""
    content = store.read(file)
    try:
        for _ in _opened(content).iter_batches(BATCH_ROWS):
            pass
    except UNDECODABLE as error:
        return str(error)[:_LONGEST_FOUND]
    return None


def _opened(content: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)


def rows_in(file: Location) -> int:
    """How many rows a data file has, by its footer; DamagedError for one that is torn. Raises OSError."""
    try:
        found: int = pq.read_metadata(store.reader(file)).num_rows
    except (OSError, pa.ArrowException) as error:
        if getattr(error, "errno", None):  # of the store: a footer that makes no sense has no number
            raise
        raise damaged(file, str(error)[:_LONGEST_FOUND], _EXPECTED) from error
    return found


def adopt(
    file: Location,
    table: Location,
    partition: Mapping[str, str],
    statistics: Sequence[Column],
    prefix: str = PART,
) -> dict[str, Any]:
    """The same for a Parquet file in the lake that is written already, which stays.

    The data file is new all the same: VACUUM deletes what is old and not committed. Its name begins with the
    prefix.
    """
    name = _new_name(table, partition, prefix)
    store.copy(file, table / name)
    return _added(table, name, partition, _statistics_of(file, statistics))


def _new_name(table: Location, partition: Mapping[str, str], prefix: str = PART) -> str:
    """Of a data file below the table, in a folder that is there."""
    folder = "".join(f"{name}={value}/" for name, value in partition.items())
    if folder:
        store.make_folder(table / folder)
    return f"{folder}{prefix}-00000-{uuid4()}-c000.zstd.parquet"


def _added(table: Location, name: str, partition: Mapping[str, str], stats: str) -> dict[str, Any]:
    return {
        "path": quote(name, safe="/="),
        "partitionValues": dict(partition),
        "size": store.stat(table / name).bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": stats,
    }


def statistics_text(rows: pa.Table, columns: Sequence[Column]) -> str:
    """Delta's statistics of the rows, as JSON."""
    values = {column: _values(rows, column) for column in columns}
    return _text_of(rows.num_rows, {column: values[column].null_count for column in columns}, values)


def _statistics_of(file: Location, columns: Sequence[Column]) -> str:
    """The same of a file of any size."""
    stored, nulls = pq.ParquetFile(store.reader(file)), Counter[Column]()
    ends: dict[Column, list[pa.Array]] = {column: [] for column in columns}
    for batch in stored.iter_batches(BATCH_ROWS, columns=sorted({column[0] for column in columns})):
        rows = pa.Table.from_batches([batch])
        for column in columns:
            values = _values(rows, column)
            nulls[column] += values.null_count
            ends[column].append(_ends(values))
    values_of = {
        column: pa.chunked_array(found, type=found[0].type) for column, found in ends.items() if found
    }
    return _text_of(stored.metadata.num_rows, nulls, values_of)


def _ends(values: pa.ChunkedArray) -> pa.Array:
    """Few values with the same bounds; those of a type without bounds have none."""
    if not _is_bounded(values.type):
        return pa.array([], values.type)
    if pa.types.is_floating(values.type) and not pc.all(pc.is_finite(values)).as_py():
        return pa.array([math.nan], values.type)
    found = pc.min_max(values)
    return pa.array([found["min"], found["max"]], values.type)


def _text_of(records: int, nulls: Mapping[Column, int], values: Mapping[Column, pa.ChunkedArray]) -> str:
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for column, found in values.items():
        _put(counts, column, str(nulls[column]))
        if (bounds := _bounds(found)) is not None:
            _put(lowest, column, bounds[0])
            _put(highest, column, bounds[1])
    return _json({
        "numRecords": str(records), "minValues": lowest, "maxValues": highest, "nullCount": counts,
    })  # fmt: skip


def _values(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    values = rows.column(column[0])
    for name in column[1:]:
        values = pc.struct_field(values, name)
    return values


def _bounds(values: pa.ChunkedArray) -> tuple[str, str] | None:
    """The least and the greatest value as JSON; None where there are none, or none that Delta may hold."""
    type_ = values.type
    is_float, is_text = pa.types.is_floating(type_), pa.types.is_string(type_)
    if not _is_bounded(type_):
        return None
    if is_float and not pc.all(pc.is_finite(values)).as_py():
        return None
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if not low.is_valid:
        return None
    try:
        if pa.types.is_timestamp(type_):
            if high.value // 1000 > _LAST_MS:
                return None
            return _moment(low.value // 1000), _moment(-(-high.value // 1000))
        least, most = low.as_py(), high.as_py()
    except (OverflowError, UnicodeDecodeError):  # a time outside of the years 1 to 9999, a text that is none
        return None
    if is_text:
        above = most if len(most) <= LONGEST_TEXT else most[:LONGEST_TEXT] + GREATEST
        return _text(least[:LONGEST_TEXT]), _text(above)
    if pa.types.is_date(type_):
        return _text(least.isoformat()), _text(most.isoformat())
    return (f"{least:f}", f"{most:f}") if isinstance(least, Decimal) else (repr(least), repr(most))


def _is_bounded(type_: pa.DataType) -> bool:
    """Whether Delta's statistics know a least and a greatest value of that type."""
    return any(
        known(type_)
        for known in (
            pa.types.is_floating, pa.types.is_string, pa.types.is_integer, pa.types.is_decimal,
            pa.types.is_date, pa.types.is_timestamp,
        )
    )  # fmt: skip


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _moment(millis: int) -> str:
    """RFC 3339 with milliseconds."""
    moment = _EPOCH + timedelta(milliseconds=min(millis, _LAST_MS))
    return f'"{moment.replace(tzinfo=None).isoformat(timespec="milliseconds")}Z"'


def _put(into: dict[str, Any], column: Column, value: str) -> None:
    for name in column[:-1]:
        into = into.setdefault(name, {})
    into[column[-1]] = value


def _json(found: dict[str, Any] | str) -> str:
    """Of values that are JSON already: a decimal must not become a float on the way."""
    if isinstance(found, str):
        return found
    return "{" + ",".join(f"{json.dumps(name)}:{_json(value)}" for name, value in found.items()) + "}"

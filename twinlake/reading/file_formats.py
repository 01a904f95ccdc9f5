"""File formats: by name how batches of rows become a file, in bounded memory.

Parquet and Arrow are in `typed_files`. CSV and TSV are text: see `as_text`; JSON has the values of `twinlake
query --json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.reading import json_rows
from twinlake.reading.typed_files import Write, pipe_arrow, write_arrow, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_SCALE = 6
"""Decimals with more digits than that after the point may be written with an exponent by Arrow."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """`write` writes a file; `pipe` what can only be read from its begin, where that is possible."""

    write: Write
    pipe: Write | None
    is_text: bool = False


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """RFC 4180 with names in the first line; texts are in quotes, NULL is nothing at all."""
    _write_separated(schema, batches, file, ",")


def write_tsv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """The same with tabs instead of commas."""
    _write_separated(schema, batches, file, "\t")


def _write_separated(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes], delimiter: str
) -> None:
    import pyarrow as pa
    from pyarrow import csv

    texts = pa.schema([(field.name, _text_type(field)) for field in schema])
    writer = csv.CSVWriter(file, texts, write_options=csv.WriteOptions(delimiter=delimiter))
    for batch in batches:
        columns = [as_text(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        writer.write_batch(pa.record_batch(columns, schema=texts))
    writer.close()


def write_ndjson(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """A line with an object for each row."""
    for row in _objects(schema, batches):
        file.write(row + b"\n")


def write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """A list of objects, one in a line."""
    before = b"[\n"
    for row in _objects(schema, batches):
        file.write(before + row)
        before = b",\n"
    file.write(b"[]\n" if before.startswith(b"[") else b"\n]\n")


def _objects(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        columns = [_of_json(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        for row in zip(*columns, strict=True):
            yield json.dumps(dict(zip(schema.names, row, strict=True)), ensure_ascii=False).encode()


FORMATS = {
    "parquet": Format(write=write_parquet, pipe=None),
    "arrow": Format(write=write_arrow, pipe=pipe_arrow),
    "csv": Format(write=write_csv, pipe=write_csv, is_text=True),
    "tsv": Format(write=write_tsv, pipe=write_tsv, is_text=True),
    "json": Format(write=write_json, pipe=write_json, is_text=True),
    "ndjson": Format(write=write_ndjson, pipe=write_ndjson, is_text=True),
}


def _text_type(field: pa.Field) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if _is_json(field.type) else field.type


def _is_json(type_: pa.DataType) -> bool:
    """Whether Arrow's own text of a value is none, or another than JSON has."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_nested(type_) or types.is_binary(type_) or types.is_large_binary(type_)
        or types.is_null(type_) or types.is_duration(type_) or types.is_interval(type_)
        or (types.is_decimal(type_) and type_.scale > _PLAIN_SCALE)
    )  # fmt: skip


def as_text(column: pa.Array, field: pa.Field) -> pa.Array:
    """Numbers, texts, dates and times as Arrow writes them; what is nested as JSON, bytes as hex digits, and
    others as in `twinlake query --json`."""
    import pyarrow as pa

    if not _is_json(field.type):
        return column
    found = (
        one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False)
        for one in _of_json(column, field)
    )  # fmt: skip
    return pa.array(found, pa.string())


def _of_json(column: pa.Array, field: pa.Field) -> list[Any]:
    try:
        return json_rows.json_values(column, field)
    except ImportError as error:  # variants, and keys that are structs
        raise UsageError(
            "the rows were not written", f"{field.name} is text only where Spark is installed ({error})",
            "select it as text: to_json(...); or take Parquet or Arrow",
        ) from error  # fmt: skip

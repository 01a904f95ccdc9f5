"""Typed files: batches of rows as Parquet or Arrow, in bounded memory.

Both keep every type, and have what the SQL server says of the rows in their schema's metadata under
`wire.METADATA`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING

from twinlake.base.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_BYTES = 64 << 20
"""Rows of a group of Parquet, as Arrow, are in memory at once."""

Write = Callable[["pa.Schema", Iterable["pa.RecordBatch"], IO[bytes]], None]
"""Writes the batches, which have this schema, into a file."""


def write_parquet(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes], group_bytes: int = GROUP_BYTES
) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    try:
        # a null variant has nulls in fields that are declared as never null, which Parquet's writer refuses
        wider = pa.schema([_nullable(field) for field in schema], schema.metadata)
        with ParquetWriter(file, wider, compression="zstd") as writer:
            for group in groups(schema, batches, group_bytes):
                writer.write_table(group.cast(wider))
    except pa.ArrowNotImplementedError as error:
        raise UsageError(
            "the rows were not written", f"Parquet has no such type: {error}",
            "select that column as text: cast(... AS string); or take Arrow",
        ) from error  # fmt: skip


def write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """Arrow's file format."""
    import pyarrow as pa

    with pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def pipe_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> None:
    """Arrow's stream format; without its end where the batches break off."""
    import pyarrow as pa

    writer = pa.ipc.new_stream(file, schema)
    for batch in batches:
        writer.write_batch(batch)
    writer.close()


def valid(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same; UsageError for a text that is not UTF-8, which no reader of a file would expect."""
    import pyarrow as pa

    for batch in batches:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise UsageError(
                "the rows were not written", f"a text is not UTF-8: {error}"[:300], "select it as hex(...)"
            ) from error
        yield batch


def groups(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], most: int = GROUP_BYTES
) -> Iterator[pa.Table]:
    """Batches together, until they have so many bytes."""
    import pyarrow as pa

    kept, size = list[pa.RecordBatch](), 0
    for batch in batches:
        kept.append(batch)
        size += batch.nbytes
        if size >= most:
            yield pa.Table.from_batches(kept, schema)
            kept, size = [], 0
    if kept:
        yield pa.Table.from_batches(kept, schema)


def _nullable(field: pa.Field) -> pa.Field:
    """The same, whatever is inside of it too, but for keys of maps."""
    import pyarrow as pa

    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_nullable(type_.field(at)) for at in range(type_.num_fields)])
    elif pa.types.is_map(type_):
        type_ = pa.map_(type_.key_field, _nullable(type_.item_field))
    elif pa.types.is_list(type_):
        type_ = pa.list_(_nullable(type_.value_field))
    return field.with_type(type_).with_nullable(True)

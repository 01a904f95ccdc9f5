"""Framing: Arrow's tables as the messages of a Flight stream, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.reading.answer import pieces
from twinlake.reading.flight import compression, protocol

if TYPE_CHECKING:
    import pyarrow as pa

_CONTINUES = b"\xff\xff\xff\xff"
MOST_SETS = 100
"""Of values for one statement."""
MOST_CELLS = 1_000_000
"""With all that is inside lists and structs: NULLs alone take no bytes here, and some in Java."""


def frames(rows: pa.Table) -> Iterator[bytes]:
    """The schema, then the rows, a megabyte at once."""
    yield _frame(rows.schema.serialize())
    for batch in pieces(rows.to_batches()):
        yield _frame(batch.serialize())


def schema_bytes(schema: pa.Schema) -> bytes:
    """As FlightInfo and others hold one."""
    return bytes(schema.serialize().to_pybytes())


def _frame(message: pa.Buffer) -> bytes:
    import pyarrow as pa

    read = pa.ipc.read_message(message)
    body = read.body.to_pybytes() if read.body is not None else b""
    data = protocol.make("FlightData", data_header=read.metadata.to_pybytes(), data_body=body)
    return bytes(data.SerializeToString())


def stream_of(messages: Iterable[Any]) -> bytes:
    """What a client has sent, as an Arrow stream."""
    return b"".join(map(_encapsulated, messages))


def parameters(stream: bytes) -> bytes:
    """Values for the `?` of a statement, checked and of types that Spark knows, as an Arrow stream: Java
    takes its bytes as they are. UsageError for others."""
    import pyarrow as pa

    try:
        table = _read(stream)
        if not 1 <= table.num_rows <= MOST_SETS:
            raise unusable(f"there are {table.num_rows} rows of them, and a statement takes 1 to {MOST_SETS}")
        if sum(_cells(chunk) for column in table.columns for chunk in column.chunks) > MOST_CELLS:
            raise unusable(f"there are more than {MOST_CELLS:,}, with those inside lists")
        names = [str(number) for number in range(table.num_columns)]
        return _stream(pa.table([_known(column) for column in table.columns], names))
    except (pa.ArrowException, ValueError) as error:
        raise unusable(str(error)[:300]) from error


def _read(stream: bytes) -> pa.Table:
    """Validated, and not larger than its bytes: what is compressed may be so a thousand times."""
    import pyarrow as pa

    reader = pa.BufferReader(stream)
    while message := _next(reader):
        if message.type != "schema" and compression.is_compressed(message.metadata.to_pybytes()):
            raise unusable("they are compressed")
    with pa.ipc.open_stream(stream) as read:
        table = read.read_all()
    table.validate(full=True)
    return table


def _next(reader: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.read_message(reader)
    except EOFError:
        return None


def _cells(array: pa.Array) -> int:
    from pyarrow import types

    of = array.type
    if types.is_map(of):
        inside = [array.keys, array.items]
    elif types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
        inside = [array.values]
    elif types.is_struct(of):
        inside = [array.field(number) for number in range(of.num_fields)]
    elif types.is_dictionary(of):
        inside = [array.dictionary]
    elif types.is_nested(of) or types.is_run_end_encoded(of):
        raise unusable(f"{of} is none of the types of Spark")
    else:
        inside = []
    return len(array) + sum(map(_cells, inside))


def unknown(count: int) -> pa.Schema:
    """Of values whose types are those that are bound."""
    import pyarrow as pa

    return pa.schema([(str(number), pa.null()) for number in range(count)])


def nulls(count: int) -> bytes:
    """The same for a statement that is only to be analysed."""
    import pyarrow as pa

    return _stream(pa.table([pa.nulls(1)] * count, unknown(count)))


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _encapsulated(message: Any) -> bytes:
    header = message.data_header
    if not header:
        return b""
    padding = b"\0" * (-len(header) % 8)
    length = (len(header) + len(padding)).to_bytes(4, "little")
    return bytes(_CONTINUES + length + header + padding + message.data_body)


def _known(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Of a type that Spark has: it has no unsigned numbers, and counts time in microseconds."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    of = column.type
    if types.is_uint64(of):
        return column.cast(pa.decimal128(20))
    if types.is_unsigned_integer(of):
        return column.cast(pa.int64())
    if types.is_timestamp(of):
        return column.cast(pa.timestamp("us", of.tz))
    if types.is_duration(of):
        return column.cast(pa.duration("us"))
    if types.is_decimal(of) and not types.is_decimal128(of):
        return column.cast(pa.decimal128(min(of.precision, 38), of.scale))
    other = {
        "halffloat": pa.float32(), "date64[ms]": pa.date32(), "large_string": pa.string(),
        "string_view": pa.string(), "large_binary": pa.binary(), "binary_view": pa.binary(),
    }.get(str(of))  # fmt: skip
    if types.is_fixed_size_binary(of):
        other = pa.binary()
    return column.cast(other) if other else column


def unusable(why: str) -> UsageError:
    what = "the values for the statement were refused"
    return UsageError(what, why, "bind values of other types, or fewer")

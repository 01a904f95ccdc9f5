"""JSON rows: a result's rows as values that JSON has, from Arrow and a piece at a time.

The values are those of `base/as_json.py`; a date or time outside of Python's years 1 to 9999 is ISO 8601
text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from twinlake.base.as_json import to_json

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 64 << 10
PIECE_CELLS = 20_000
"""A piece has no more of either, but for one row that has more, or all of a small batch."""
SMALL_BYTES = 1 << 20


def rows(found: pa.Table) -> Iterator[list[dict[str, Any]]]:
    """All rows in their order, in pieces; UnicodeError, at once, for a text that is not UTF-8."""
    _refuse_torn_text(found)
    return _rows(found)


def _rows(found: pa.Table) -> Iterator[list[dict[str, Any]]]:
    names = found.column_names
    for batch in found.to_batches():
        at, is_small = 0, batch.nbytes <= SMALL_BYTES  # to count a piece's bytes costs as much as its rows
        while at < batch.num_rows:
            count = _count(batch, at, is_small)
            piece = batch.slice(at, count)
            columns = [json_values(column, field) for column, field in zip(piece, found.schema, strict=True)]
            yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
            at += count


def _refuse_torn_text(found: pa.Table) -> None:
    import pyarrow as pa

    try:
        found.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        raise UnicodeError(str(error)) from error


def _count(batch: pa.RecordBatch, at: int, is_small: bool) -> int:
    """So many rows from there are a piece."""
    count: int = min(batch.num_rows - at, max(1, PIECE_CELLS // max(1, batch.num_columns)))
    while count > 1 and not is_small and batch.slice(at, count).nbytes > PIECE_BYTES:
        count //= 2
    return count


def json_values(array: pa.Array, field: pa.Field) -> list[Any]:
    """The JSON form of each; of a nested column's, too."""
    import pyarrow as pa

    types, kind = pa.types, array.type
    if types.is_struct(kind):
        return _structs(array, kind)
    if types.is_map(kind):
        keys = _inside(array, array.keys, _keys, kind.key_field)
        items = _inside(array, array.items, json_values, kind.item_field)
        pairs = zip(keys, items, strict=True)
        return [None if names is None else dict(zip(names, values, strict=True)) for names, values in pairs]
    if types.is_list(kind):
        return _inside(array, array.values, json_values, kind.value_field)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_string(kind) or types.is_null(kind):
        plain: list[Any] = array.to_pylist()
        return plain
    return [to_json(value) for value in _plain(array)]


def _plain(array: pa.Array) -> Iterable[Any]:
    """In Python; of a time outside of its years 1 to 9999 the ISO 8601 text."""
    try:
        plain: list[Any] = array.to_pylist()
        return plain
    except (OverflowError, ValueError):
        return map(_known, array)


def _known(value: pa.Scalar) -> Any:
    import pyarrow as pa

    try:
        return value.as_py()
    except (OverflowError, ValueError):
        text = str(value.cast(pa.string()).as_py()).replace(" ", "T").replace(".000000", "")
        return f"+{text}" if text.find("-") > len("9999") else text


def _structs(array: pa.Array, kind: pa.StructType) -> list[Any]:
    fields = [kind.field(at) for at in range(kind.num_fields)]
    values = [json_values(part, field) for part, field in zip(array.flatten(), fields, strict=True)]
    names = [field.name for field in fields]
    made = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)] or [{}] * len(array)
    is_variant = any((field.metadata or {}).get(b"variant") == b"true" for field in fields)
    form: Callable[[Any], Any] = _variant if is_variant else dict
    valid = array.is_valid().to_pylist()
    return [form(one) if is_there else None for one, is_there in zip(made, valid, strict=True)]


def _variant(parts: Mapping[str, str]) -> str:
    from pyspark.sql.types import VariantVal

    return str(VariantVal(bytes.fromhex(parts["value"]), bytes.fromhex(parts["metadata"])))


def _keys(array: pa.Array, field: pa.Field) -> list[str]:
    """Of a map: names of a JSON object."""
    import pyarrow as pa

    if pa.types.is_nested(array.type):
        from pyspark.sql.types import Row

        return [str(Row(**one) if isinstance(one, dict) else one) for one in json_values(array, field)]
    plain = (value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in _plain(array))
    return [str(value) for value in plain]


def _inside(array: pa.Array, values: pa.Array, form: Any, field: pa.Field) -> list[Any]:
    """By element of a list or a map, its own; `values` are those of all, of other slices as well."""
    offsets = array.offsets.to_pylist()
    formed = form(values.slice(offsets[0], offsets[-1] - offsets[0]), field)
    places = [(start - offsets[0], end - offsets[0]) for start, end in pairwise(offsets)]
    valid = array.is_valid().to_pylist()
    return [formed[start:end] if one else None for (start, end), one in zip(places, valid, strict=True)]

"""Writes many rows to a file at once: a statement of SQL takes a millisecond for each row.

It brings pyarrow along, which is imported longer than a few rows take so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.witness.types import Type

_PLAIN = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us", tz="UTC"), "void": pa.int32(),
}  # fmt: skip


def write(types: Mapping[str, Type], rows: Iterable[Mapping[str, Any]], file: Path) -> None:
    """These columns of the rows, as both engines read them; what a row lacks is NULL."""
    listed = list(rows)
    arrays = {
        name: pa.array([_value(row.get(name), type_) for row in listed], _type(type_))
        for name, type_ in types.items()
    }
    pq.write_table(pa.table(arrays), file)


def _type(type_: Type) -> pa.DataType:
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.name == "array":
        return pa.list_(_type(type_.element))
    if type_.name == "map":
        return pa.map_(_type(type_.key), _type(type_.value))
    if type_.name == "struct":
        return pa.struct([(name, _type(inner)) for name, inner in type_.fields])
    return _PLAIN[type_.name]


def _value(value: Any, type_: Type) -> Any:
    """A field of a struct that is not there is NULL."""
    if value is None or not type_.fields:
        return value
    if type_.name == "array":
        return [_value(one, type_.element) for one in value]
    if type_.name == "map":
        return [(_value(key, type_.key), _value(one, type_.value)) for key, one in value.items()]
    return {name: _value(value.get(name), inner) for name, inner in type_.fields}

"""Compression: whether the rows of a message of Arrow are compressed; PyArrow tells only by reading them.

The metadata of a message is a flatbuffer: a table has its fields at offsets that a table of its own lists, 0
for one that is missing. Message: header is the third field; RecordBatch: compression is the fourth, and a
DictionaryBatch has one as its second field (Arrow's Message.fbs).
"""

from __future__ import annotations

import struct

_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DATA, _COMPRESSION = 1, 3


def is_compressed(metadata: bytes) -> bool:
    """ValueError for what is no flatbuffer of Arrow's."""
    try:
        message = _offset(metadata, 0)
        kind_at = _field(metadata, message, _HEADER_TYPE)
        kind = metadata[kind_at] if kind_at else 0
        header_at = _field(metadata, message, _HEADER)
        if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or not header_at:
            return False
        rows = _offset(metadata, header_at)
        if kind == _DICTIONARY_BATCH:
            rows = _offset(metadata, _field(metadata, rows, _DATA))
        return bool(_field(metadata, rows, _COMPRESSION))
    except (struct.error, IndexError) as error:
        raise ValueError("the metadata of a message is damaged") from error


def _offset(data: bytes, at: int) -> int:
    """What stands there refers to this place."""
    (forward,) = struct.unpack_from("<I", data, at)
    return at + int(forward)


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 for one that is missing."""
    (back,) = struct.unpack_from("<i", data, table)
    fields = table - back
    if fields < 0:
        raise ValueError("the metadata of a message is damaged")
    (size,) = struct.unpack_from("<H", data, fields)
    if 4 + 2 * number >= size:
        return 0
    (at,) = struct.unpack_from("<H", data, fields + 4 + 2 * number)
    return table + at if at else 0

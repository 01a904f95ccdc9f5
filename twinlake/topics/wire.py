"""Confluent wire frames of Avro records, encoded a whole column at a time.

A column is a matrix of bytes with one row per record and the number of bytes used in each row. Placing the
columns side by side and keeping only the used bytes gives every record's encoding in one numpy operation,
about ten times faster than encoding one record after the other in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MAGIC = 0
HEADER_BYTES = 5
VARINT_BYTES = 10
DECIMAL_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Column:
    """One Avro field of many records: row i uses the first `used[i]` bytes of `data[i]`."""

    data: np.ndarray  # uint8, (records, width)
    used: np.ndarray  # int64, (records,)

    @property
    def mask(self) -> np.ndarray:
        return np.arange(self.data.shape[1]) < self.used[:, None]


def longs(values: np.ndarray) -> Column:
    """Avro `int` and `long`: zigzag, then seven bits a byte, lowest first."""
    values = np.asarray(values, dtype=np.int64)
    zigzag = ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)
    shifts = np.arange(0, 7 * VARINT_BYTES, 7, dtype=np.uint64)
    groups = ((zigzag[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    positions = np.arange(1, VARINT_BYTES + 1)
    used = np.maximum(1, ((groups != 0) * positions).max(axis=1))
    continued = np.arange(VARINT_BYTES) < (used - 1)[:, None]
    return Column(data=groups | (continued.astype(np.uint8) << 7), used=used.astype(np.int64))


def decimals(unscaled: np.ndarray) -> Column:
    """Avro `bytes` with logical type decimal: the shortest big-endian two's complement, up to 64 bits."""
    unscaled = np.asarray(unscaled, dtype=np.int64)
    magnitude = np.where(unscaled < 0, ~unscaled, unscaled)
    limits = np.array([(1 << (8 * size - 1)) - 1 for size in range(1, DECIMAL_BYTES)], dtype=np.int64)
    size = 1 + np.searchsorted(limits, magnitude, side="left")
    big_endian = unscaled.astype(">i8").view(np.uint8).reshape(-1, DECIMAL_BYTES)
    take = np.minimum(np.arange(DECIMAL_BYTES) + (DECIMAL_BYTES - size)[:, None], DECIMAL_BYTES - 1)
    body = np.take_along_axis(big_endian, take, axis=1)
    return _prefixed(body, size.astype(np.int64))


def texts(words: Sequence[str], codes: np.ndarray) -> Column:
    """Avro `string`, record i holding `words[codes[i]]`: for fields with few distinct values."""
    encoded = [word.encode() for word in words]
    width = max(len(word) for word in encoded)
    table = np.zeros((len(encoded), width), dtype=np.uint8)
    for row, word in enumerate(encoded):
        table[row, : len(word)] = np.frombuffer(word, dtype=np.uint8)
    sizes = np.array([len(word) for word in encoded], dtype=np.int64)
    return _prefixed(table[codes], sizes[codes])


def ascii_texts(letters: np.ndarray) -> Column:
    """Avro `string` of one length for all: a matrix of ASCII codes, one row per record."""
    sizes = np.full(letters.shape[0], letters.shape[1], dtype=np.int64)
    return _prefixed(letters, sizes)


def frames(schema_id: int, columns: Sequence[Column]) -> list[bytes]:
    """Each record's frame: magic byte, schema id in four bytes, the fields in the schema's order."""
    records = columns[0].data.shape[0]
    header = np.frombuffer(bytes([MAGIC]) + schema_id.to_bytes(4, "big"), dtype=np.uint8)
    head = Column(
        data=np.broadcast_to(header, (records, HEADER_BYTES)),
        used=np.full(records, HEADER_BYTES, dtype=np.int64),
    )
    parts = [head, *columns]
    data = np.concatenate([part.data for part in parts], axis=1)
    mask = np.concatenate([part.mask for part in parts], axis=1)
    body = data[mask].tobytes()
    edges = [0, *np.cumsum(sum(part.used for part in parts)).tolist()]
    return [body[start:end] for start, end in pairwise(edges)]


def _prefixed(body: np.ndarray, sizes: np.ndarray) -> Column:
    """`body` after its length as Avro writes it."""
    prefix = longs(sizes)
    if (prefix.used == 1).all():
        return Column(data=np.concatenate([prefix.data[:, :1], body], axis=1), used=sizes + 1)
    longest = int(prefix.used.max())
    data = np.zeros((body.shape[0], body.shape[1] + longest), dtype=np.uint8)
    data[:, :longest] = prefix.data[:, :longest]
    rows = np.arange(body.shape[0])[:, None]
    data[rows, prefix.used[:, None] + np.arange(body.shape[1])] = body
    return Column(data=data, used=sizes + prefix.used)

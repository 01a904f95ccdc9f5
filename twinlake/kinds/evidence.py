"""Owns the exact evidence beside every state: how many records it counted, and which.

No measure's error can hide a lost record: a certificate compares these columns too. Source of the sums: two
32-bit halves of a 64-bit hash per record id, so that a bigint cannot overflow below 2^31 records a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.kinds.measures.measure import Part
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEGMENT = "_segment"
"""The column by which versions are partitioned, added to the states when they are written."""
ROWS, HASH_LOW, HASH_HIGH = "_rows", "_hash_low", "_hash_high"
NAMES = (ROWS, HASH_LOW, HASH_HIGH)
TELLS = f"{HASH_LOW} IS NOT NULL"
"""Holds for the states that tell of records. Beside them may be others without hashes, such as entry rows:
their `_rows` counts records that a state with hashes has counted already."""
_HASH, _REST = "_hash", "_rest"
_PARTS = (
    Part(name=ROWS, from_rows="count(1)", merge=f"sum({ROWS})"),
    Part(name=HASH_LOW, from_rows=f"sum({_HASH} & 4294967295)", merge=f"sum({HASH_LOW})"),
    Part(name=HASH_HIGH, from_rows=f"sum(shiftrightunsigned({_HASH}, 32))", merge=f"sum({HASH_HIGH})"),
)


def hashed(rows: DataFrame) -> DataFrame:
    """The rows with a hash of their record id, from which `from_rows` computes."""
    from pyspark.sql import functions as F

    return rows.withColumn(_HASH, F.expr(f"xxhash64({quote.names(record_id.KEY)})"))


def of_one_row() -> list[Column]:
    """The same columns for states that are a hashed row each."""
    from pyspark.sql import functions as F

    low, high = f"{_HASH} & 4294967295", f"shiftrightunsigned({_HASH}, 32)"
    return [F.expr(sql).alias(name) for name, sql in zip(NAMES, ("1L", low, high), strict=True)]


def once(states: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Of states that are a row each, one of every key, with these columns, keys among them."""
    from pyspark.sql import functions as F

    # rows of one key are equal; the greatest is the same one whatever a damaged table has made of that
    rest = [name for name in columns if name not in keys]
    greatest = F.expr(f"max(struct({quote.names(rest)}))").alias(_REST)
    found = states.groupBy(*map(quote.name, keys)).agg(greatest, *merged())
    picked = {name: F.col(_REST).getField(name).alias(name) for name in rest}
    return found.select(*(picked.get(name, F.col(quote.name(name))) for name in columns), *NAMES)


def from_rows() -> list[Column]:
    """Aggregates over hashed rows: `_rows`, `_hash_low`, `_hash_high`."""
    from pyspark.sql import functions as F

    return [F.expr(part.from_rows).alias(part.name) for part in _PARTS]


def merged() -> list[Column]:
    """Aggregates over states: the same columns."""
    from pyspark.sql import functions as F

    return [F.expr(part.merge).alias(part.name) for part in _PARTS]

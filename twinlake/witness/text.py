"""Owns small pieces of DuckDB's SQL: lists of names, times, what orders values as Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from twinlake.base.times import parse_duration
from twinlake.witness.types import Type, identifier

RECORD_ID = ("_epoch", "_partition", "_offset")
RECORD_NUMBER = "_record"
"""One number in the order of record ids."""


def names(columns: Iterable[str], of: str = "") -> str:
    """Identifiers, separated by commas."""
    return ", ".join(f"{of}{identifier(column)}" for column in columns)


def micros(length: str | timedelta) -> int:
    """A duration as Spark and DuckDB count time."""
    found = parse_duration(length, or_zero=True) if isinstance(length, str) else length
    return found // timedelta(microseconds=1)


def timestamp(sql: str) -> str:
    """A timestamp of microseconds since 1970."""
    return f"make_timestamp(CAST({sql} AS BIGINT))"


def cell(sql: str, size: int) -> str:
    """The last multiple of the size at or before a time, both in microseconds; before 1970 too."""
    return f"({sql} - (({sql} % {size}) + {size}) % {size})"


def record_number(epoch: str, partition: str, offset: str) -> str:
    """Record ids in order: an offset has 63 bits, a partition 31."""
    return (
        f"(CAST({epoch} AS HUGEINT) * {1 << 94} + CAST({partition} AS HUGEINT) * {1 << 63}"
        f" + CAST({offset} AS HUGEINT))"
    )


def order_key(sql: str, type_: Type) -> str:
    """What DuckDB orders as Spark orders the value: inside others NULL is Spark's smallest, its greatest."""
    if type_.name == "struct":
        fields = (
            f"k{number} := {nulls_first(f'({sql}).{identifier(name)}', inner)}"
            for number, (name, inner) in enumerate(type_.fields)
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"
    if type_.name == "array":
        return f"list_transform({sql}, lambda e: {nulls_first('e', type_.element)})"
    return sql


def nulls_first(sql: str, type_: Type) -> str:
    """The same for a value that may be NULL, as a part of a greater key."""
    return f"struct_pack(known := {sql} IS NOT NULL, key := {order_key(sql, type_)})"


def in_order(columns: Iterable[str], types: Mapping[str, Type]) -> list[str]:
    """Of each of these columns the part that it is of a greater key."""
    return [nulls_first(identifier(name), types[name]) for name in columns]


def same_keys(keys: Iterable[str], one: str, other: str) -> str:
    """Whether two rows have the same keys, NULL among them."""
    conditions = (f"{one}.{identifier(key)} IS NOT DISTINCT FROM {other}.{identifier(key)}" for key in keys)
    return " AND ".join(conditions) or "true"

"""Owns what a record says beside its value: the pseudo-columns `_key` and `_tombstone`, as Spark SQL.

Only a topic has them whose contract says so: `keyFormat` shows the key, `nullValues: delete` tells records
without a value, which delete their key. Both are read from what the log keeps of every record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.topics import json_sql, record_id
from twinlake.topics.contract import BYTES, DELETE, JSON, STRING, Contract
from twinlake.topics.spark_type import Struct, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY, TOMBSTONE = "_key", "_tombstone"
_TIMES = (record_id.TIMESTAMP, record_id.INGESTED_AT)
_TEXT = "CAST(key AS string)"
_WHOLE = (f"try_parse_json(concat('[', {_TEXT}, ']'))", f"try_parse_json(concat('{{\"k\":', {_TEXT}, '}}'))")
"""Spark leaves unread what comes after a document; only a document alone can stand in both of these."""
_DOC = f"try_parse_json(CASE WHEN is_valid_utf8({_TEXT}) THEN {_TEXT} END)"


def columns(contract: Contract) -> tuple[tuple[str, str], ...]:
    """(name, Spark type) of the pseudo-columns that the topic's rows have."""
    key = ((KEY, _type(contract)),) if contract.key_format else ()
    return (*key, (TOMBSTONE, "boolean")) if contract.null_values == DELETE else key


def from_log(contract: Contract) -> tuple[str, ...]:
    """SQL of them over the log's columns, in the same order."""
    key = (f"{_key(contract)} AS {KEY}",) if contract.key_format else ()
    return (*key, f"event IS NULL AS {TOMBSTONE}") if contract.null_values == DELETE else key


def log_columns(contract: Contract) -> tuple[str, ...]:
    """The log's columns that they are read from, beside the event."""
    return ("key",) if contract.key_format else ()


def of_tombstone(contract: Contract, column: str) -> str | None:
    """SQL of what a column shows of a record without a value: of the primary key what the key says; None
    where it is simply NULL."""
    if contract.null_values != DELETE or column not in contract.keys:
        return None
    return f"{_key(contract)}.{quote.name(column)}" if contract.key_format == JSON else _key(contract)


def tombstone(rows: DataFrame) -> DataFrame:
    """One row with the columns of a topic's rows as a record without a value has them, its key left out."""
    from pyspark.sql import functions as F

    known = {TOMBSTONE: "true", **{name: "0" for name in record_id.KEY}, **dict.fromkeys(_TIMES, "now()")}
    shown = (F.expr(f"CAST({known.get(name, 'NULL')} AS {type_})").alias(name) for name, type_ in rows.dtypes)
    return rows.sparkSession.range(1).select(*shown)


def bad(contract: Contract) -> str | None:
    """SQL over Kafka's columns, TRUE where a key is not what the contract says; None where none is bad."""
    if contract.key_format == STRING:
        return f"(NOT is_valid_utf8({_TEXT}))"
    if contract.key_format != JSON:
        return None
    conditions = [condition for _, _, condition in json_sql.type_errors(_DOC, _shape(contract), "")]
    broken = (f"{found} IS NULL" for found in (_DOC, *_WHOLE))
    wrong = " OR ".join((*broken, f"is_variant_null({_DOC})", *conditions))
    return f"(key IS NOT NULL AND coalesce({wrong}, false))"


def _shape(contract: Contract) -> Struct:
    return Struct(tuple((column.name, parse(column.type)) for column in contract.columns if column.key))


def _type(contract: Contract) -> str:
    if contract.key_format != JSON:
        return {STRING: "string", BYTES: "binary"}[str(contract.key_format)]
    inside = ",".join(f"{column.name}:{column.type}" for column in contract.columns if column.key)
    return f"struct<{inside}>"


def _key(contract: Contract) -> str:
    if contract.key_format == STRING:
        return f"try_validate_utf8({_TEXT})"
    return json_sql.value(_DOC, _shape(contract)) if contract.key_format == JSON else "key"

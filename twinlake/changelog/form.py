"""Form: how rows of a table are written to its changelog, as Avro keys and values that the registry knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.topics.registry import Registry
from twinlake.topics.wire import MAGIC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

NAMESPACE = "twinlake.changelog"
_PRIMITIVE = {
    "boolean": "boolean", "byte": "int", "short": "int", "integer": "int", "long": "long",
    "float": "float", "double": "double", "string": "string", "binary": "bytes",
}  # fmt: skip
_LOGICAL = {
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}


@dataclass(frozen=True, kw_only=True)
class Form:
    """The key is a record of the view's keys, the value one of all its columns but those that follow the
    watermark; each after the header that names its schema."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    key_id: int
    value_id: int
    key_schema: str
    value_schema: str

    def key(self, row: Column) -> Column:
        """The key of a row, which is a struct."""
        return _framed(self.key_id, row, self.keys, self.key_schema)

    def value(self, row: Column) -> Column:
        return _framed(self.value_id, row, self.columns, self.value_schema)

    def of_rows(self, rows: DataFrame) -> DataFrame:
        """Columns `key` and `value`, both binary."""
        from pyspark.sql import functions as F

        whole = rows.select(F.struct("*").alias("r"))
        return whole.select(self.key(F.col("r")).alias("key"), self.value(F.col("r")).alias("value"))

    def of_changes(self, changes: DataFrame) -> DataFrame:
        """The same of what `difference.diff.changes` found: a row that is gone has its key, and no value."""
        from pyspark.sql import functions as F

        left, right = F.col("l"), F.col("r")
        return changes.select(
            F.when(right.isNotNull(), self.key(right)).otherwise(self.key(left)).alias("key"),
            F.when(right.isNotNull(), self.value(right)).alias("value"),
        )


def registered(registry: Registry, topic: str, table: str, keys: Sequence[str], rows: StructType) -> Form:
    """The form of a table's rows in this topic; its schemas are registered.

    DifferenceError when the registry refuses one: it cannot read what the topic has already.
    """
    key, value = schemas(table, keys, rows)
    return Form(
        keys=tuple(keys), columns=tuple(rows.names),
        key_id=registry.register(f"{topic}-key", key), value_id=registry.register(f"{topic}-value", value),
        key_schema=json.dumps(key), value_schema=json.dumps(value),
    )  # fmt: skip


def schemas(table: str, keys: Sequence[str], rows: StructType) -> tuple[dict[str, Any], dict[str, Any]]:
    """Avro's schemas of key and value. Every field may be null and is so by default: then a column may be
    added. UsageError for a column that Avro has no type for."""
    return schema(rows, f"{table}_key", keys), schema(rows, table, rows.names)


def schema(rows: StructType, name: str, columns: Sequence[str]) -> dict[str, Any]:
    """Avro's schema of a record of these columns."""
    return {**_record(rows, name, columns), "namespace": NAMESPACE}


def head(schema_id: int) -> bytes:
    """What comes before a record: which schema it is written by."""
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def _framed(schema_id: int, row: Column, columns: Sequence[str], schema: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import to_avro

    header = F.lit(head(schema_id))
    fields = F.struct(*(row.getField(name).alias(name) for name in columns))
    return F.concat(header, to_avro(fields, schema))


def _record(rows: StructType, name: str, columns: Sequence[str]) -> dict[str, Any]:
    fields = [
        {"name": column, "type": ["null", _avro(rows[column].dataType, f"{name}_{column}")], "default": None}
        for column in columns
    ]
    return {"type": "record", "name": name, "fields": fields}


def _avro(of: DataType, path: str) -> Any:
    """`path` names records within the record, of which each needs a name of its own."""
    kind = of.typeName()
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    if kind in _LOGICAL:
        return _LOGICAL[kind]
    known: Any = of
    if kind == "decimal":
        return {
            "type": "bytes", "logicalType": "decimal", "precision": known.precision, "scale": known.scale
        }  # fmt: skip
    if kind == "array":
        return {"type": "array", "items": ["null", _avro(known.elementType, path)]}
    if kind == "struct":
        return _record(known, path, known.names)
    raise UsageError(
        f"{path}: {of.simpleString()} cannot be sent", "Avro has no type that holds it exactly",
        "leave the column out of the table, or cast it",
    )  # fmt: skip

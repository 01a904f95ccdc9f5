"""Owns the function by which Spark makes the Avro of a message of Protobuf: one for each writer's schema.

It is Java (`twinlake.ingest.ProtobufBody`), because Spark's `from_protobuf` takes a field that was sent as
another type for one that was left out, and passes over what the schema does not name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from twinlake.topics.avro_type import PROTOBUF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.ingest.writer_schema import Writer


def function_of(avro: Mapping[str, Any]) -> str | None:
    """Its name in SQL; None for a schema that was not Protobuf's."""
    if PROTOBUF not in avro:
        return None
    return f"twinlake_protobuf_{hashlib.sha256(json.dumps(avro).encode()).hexdigest()[:32]}"


def register(spark: SparkSession, schema: str) -> None:
    """Makes the function of a schema known to the session; does nothing for one that was not Protobuf's."""
    avro = json.loads(schema)
    if not isinstance(avro, dict) or (name := function_of(avro)) is None:
        return
    session, jvm = spark._jsparkSession, cast("Any", spark._jvm)
    if not session.catalog().functionExists(name):
        binary = jvm.org.apache.spark.sql.types.DataTypes.BinaryType
        session.udf().register(name, jvm.twinlake.ingest.ProtobufBody(schema), binary)


def register_all(records: DataFrame, writers: Iterable[Writer]) -> None:
    """Makes the functions of these known to the session of some records: a stream's is a copy of ours, made
    when it began."""
    for writer in writers:
        if function_of(writer.avro) is not None:
            register(records.sparkSession, writer.schema_text)

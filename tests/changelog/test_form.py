"""What a row is as Avro: read back by fastavro, value by value."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.registry import FakeRegistry
from twinlake.base.errors import UsageError
from twinlake.changelog.form import Form, registered, schemas
from twinlake.topics.registry import Registry

ROW = """
    SELECT 'é' AS k, 7 AS n, true AS truth, 1Y AS tiny, 2S AS small, 3 AS whole, 4L AS long, 0.5F AS single,
      CAST(0.1 AS double) AS double, -12345678901234567890.0123456789BD AS exact, X'00FF' AS bytes,
      DATE '1969-12-31' AS day, TIMESTAMP '2026-01-31 12:00:00.123456Z' AS moment,
      TIMESTAMP_NTZ '2026-01-31 12:00:00.5' AS local, array(1, NULL) AS many,
      array(named_struct('low', CAST(NULL AS DOUBLE), 'count', 0L),
            named_struct('low', 0.5D, 'count', 2L)) AS counts,
      named_struct('a', 'x', 'inner', named_struct('b', array(named_struct('c', 2.50BD)))) AS nested
"""
VALUES: dict[str, Any] = {
    "k": "é", "n": 7, "truth": True, "tiny": 1, "small": 2, "whole": 3, "long": 4, "single": 0.5,
    "double": 0.1, "exact": Decimal("-12345678901234567890.0123456789"), "bytes": b"\x00\xff",
    "day": date(1969, 12, 31), "moment": datetime(2026, 1, 31, 12, 0, 0, 123456, UTC),
    "local": datetime(2026, 1, 31, 12, 0, 0, 500000), "many": [1, None],
    "counts": [{"low": None, "count": 0}, {"low": 0.5, "count": 2}],
    "nested": {"a": "x", "inner": {"b": [{"c": Decimal("2.50")}]}},
}  # fmt: skip


def form_of(rows: DataFrame, registry: FakeRegistry) -> Form:
    return registered(Registry(registry.url), "changes", "t", ("k", "n"), rows.schema)


def decoded(framed: bytes, schema: str) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(framed[5:]), json.loads(schema), None)


def test_every_type_is_read_back_as_it_was(spark: SparkSession, registry: FakeRegistry) -> None:
    rows = spark.sql(ROW)
    form = form_of(rows, registry)

    (sent,) = form.of_rows(rows).collect()

    assert decoded(sent["key"], form.key_schema) == {"k": "é", "n": 7}
    assert decoded(sent["value"], form.value_schema) == VALUES
    assert sent["key"][:5] == b"\x00" + form.key_id.to_bytes(4, "big")
    assert registry.subjects["changes-value"][-1] == (form.value_id, json.loads(form.value_schema))


def test_null_is_a_key_and_a_value(spark: SparkSession, registry: FakeRegistry) -> None:
    rows = spark.sql(ROW)
    form = form_of(rows, registry)
    nothing = rows.selectExpr(*(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in rows.dtypes))

    (sent,) = form.of_rows(nothing).collect()

    assert decoded(sent["key"], form.key_schema) == {"k": None, "n": None}
    assert decoded(sent["value"], form.value_schema) == dict.fromkeys(VALUES)


def test_a_column_that_avro_cannot_hold_is_refused(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS k, INTERVAL '1' DAY AS length")

    with pytest.raises(UsageError, match="t_length: interval day cannot be sent"):
        schemas("t", ("k",), rows.schema)

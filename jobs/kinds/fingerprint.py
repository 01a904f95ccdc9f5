"""Owns the fingerprint: the name of a definition's meaning, not of its formatting or local names."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

from jobs.kinds.measure import SKETCH_LOG_ENTRIES
from jobs.kinds.state import merge, partial
from jobs.kinds.table import Events, Table
from jobs.kinds.view import view_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.topics.topic import Topic

STATE_CODE = 1
"""Raise it whenever this package computes other states from the same plan."""

_WATERMARK = "TIMESTAMP '2000-01-01 00:00:00Z'"
_lock = threading.Lock()


def empty_rows(topic: Topic, spark: SparkSession) -> DataFrame:
    """A relation with the columns that definitions over the topic read, and no rows."""
    return spark.sql(f"SELECT * FROM {nothing(topic.columns)}")


def fingerprint(table: Table, topic: Topic, spark: SparkSession) -> str:
    """sha256 over everything that can change what the table shows for the same log."""
    rows = empty_rows(topic, spark)
    state = partial(table, rows)
    merged = merge(table, state)
    relation = nothing(rows.dtypes if isinstance(table, Events) else state.dtypes)
    late_after = topic.contract.late_after or timedelta(0)
    view = spark.sql(view_sql(table, relation, _WATERMARK, late_after=late_after))
    with _whole_plans(spark):
        plans = [_plan(frame) for frame in (state, merged, view)]
    meaning = {
        "kind": table.kind,
        "plans": plans,
        "state": [list(column) for column in state.dtypes],
        "view": [list(column) for column in view.dtypes],
        "keys": list(table.key_columns),
        "contract": topic.contract.meaning(),
        "schema": topic.newest.fingerprint,
        "versions": {"spark": spark.version, "delta": version("delta-spark"), "state_code": STATE_CODE},
        "time_zone": spark.conf.get("spark.sql.session.timeZone"),
        "ansi": spark.conf.get("spark.sql.ansi.enabled"),
        "sketch": SKETCH_LOG_ENTRIES,
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def nothing(columns: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> str:
    """A relation in SQL text with these columns and no rows."""
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS `{name}`" for name, type_ in columns)
    return f"(SELECT {nulls} WHERE false)"


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().analyzed().canonicalized().toString())


@contextmanager
def _whole_plans(spark: SparkSession) -> Iterator[None]:
    """Plan texts without "... more fields" and without a last line: a cut one would hide a change."""
    limits = {"spark.sql.debug.maxToStringFields": "1000000", "spark.sql.maxPlanStringLength": "1000000000"}
    with _lock:
        before = {key: spark.conf.get(key) for key in limits}
        active = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
        active.setActiveSession(spark._jsparkSession)
        try:
            for key, value in limits.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key, kept in before.items():
                if kept is not None:
                    spark.conf.set(key, kept)

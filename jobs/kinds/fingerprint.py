"""Owns the fingerprint: the name of a definition's meaning, not of its formatting or local names."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from jobs.kinds.analysis import Topics, empty_rows, empty_view
from jobs.kinds.kind import Kind, is_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATE_CODE = 1
"""Raise it whenever this package computes other states from the same plan."""

_WATERMARK = "TIMESTAMP '2000-01-01 00:00:00Z'"
_lock = threading.Lock()


def fingerprint(kind: Kind, topics: Topics, spark: SparkSession) -> str:
    """sha256 over everything that can change what the table shows for the same logs."""
    view = empty_view(kind, topics, spark, _WATERMARK)
    frames = [view]
    if is_stored(kind):
        (rows,) = empty_rows(kind, topics, spark).values()
        state = kind.partial(rows)
        frames = [state, kind.merge(state), view]
    with _whole_plans(spark):
        plans = [_plan(frame) for frame in frames]
    meaning = {
        "kind": kind.kind,
        "plans": plans,
        "columns": [[list(column) for column in frame.dtypes] for frame in frames],
        "keys": [list(kind.view_keys), list(kind.state_keys) if is_stored(kind) else None],
        "contracts": [topics[name].contract.meaning() for name in kind.inputs],
        "schemas": [topics[name].newest.fingerprint for name in kind.inputs],
        "versions": {"spark": spark.version, "delta": version("delta-spark"), "state_code": STATE_CODE},
        "time_zone": spark.conf.get("spark.sql.session.timeZone"),
        "ansi": spark.conf.get("spark.sql.ansi.enabled"),
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


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

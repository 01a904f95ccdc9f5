"""Owns the fingerprint: the name of a definition's meaning, not of its formatting or local names."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from twinlake.definitions.premises import hashed
from twinlake.kinds.analysis import NONE, Tables, Topics, empty_rows, empty_view
from twinlake.kinds.kind import Kind, is_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATE_CODE = 1
"""Raise it whenever this package computes other states from the same plan."""
FORMULA = 2
"""Which formula `fingerprint` is. Another one is a step of the lake's format, and gives versions new ones."""

NONE_KNOWN: Mapping[str, str] = {}
_WATERMARK = "TIMESTAMP '2000-01-01 00:00:00Z'"
_ATTRIBUTE = re.compile(r"[\w`.]*#(\d+)L?")
_SHARED = re.compile(r"\b(CTERelation(?:Def|Ref)) (\d+)")
_COUNTED = {"CTERelationDef": "id", "CTERelationRef": "cteId"}
"""By class, the field with the number of a common table expression."""
_lock = threading.Lock()


def fingerprint(
    kind: Kind,
    topics: Topics,
    spark: SparkSession,
    tables: Tables = NONE,
    known: Mapping[str, str] = NONE_KNOWN,
) -> str:
    """sha256 over everything that can change what the table shows for the same logs.

    `tables` are the definitions that it reads: their fingerprints count, and so everything upstream. Those
    that are `known` are taken as they are, the others found out.
    """
    meaning = _meaning(kind, topics, spark, tables)
    meaning |= {
        "inputs": list(kind.inputs),
        "contracts": [topics[name].contract.of_rows() for name in kind.inputs],
        "reads": {
            name: known.get(name) or fingerprint(tables[name], topics, spark, tables, known)
            for name in kind.reads
        },
    }
    return hashed(meaning)


def first_fingerprint(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables = NONE) -> str:
    """By formula 1, which took in all of a contract, and no topic's name."""
    meaning = _meaning(kind, topics, spark, tables)
    meaning |= {
        "contracts": [topics[name].contract.meaning() for name in kind.inputs],
        "reads": {name: first_fingerprint(tables[name], topics, spark, tables) for name in kind.reads},
    }
    return hashed(meaning)


def _meaning(kind: Kind, topics: Topics, spark: SparkSession, tables: Tables) -> dict[str, Any]:
    """All but contracts and what is upstream."""
    view = empty_view(kind, topics, spark, _WATERMARK, tables)
    frames = [view]
    if is_stored(kind):
        (rows,) = empty_rows(kind, topics, spark).values()
        state = kind.partial(rows)
        frames = [state, kind.merge(state), view]
    with _whole_plans(spark):
        plans = [_plan(frame) for frame in frames]
    return {
        "kind": kind.kind,
        "plans": plans,
        "columns": [[list(column) for column in frame.dtypes] for frame in frames],
        "keys": [list(kind.view_keys), list(kind.state_keys) if is_stored(kind) else None],
        "schemas": [topics[name].newest.fingerprint for name in kind.inputs],
        "versions": {"spark": spark.version, "delta": version("delta-spark"), "state_code": STATE_CODE},
        "time_zone": spark.conf.get("spark.sql.session.timeZone"),
        "ansi": spark.conf.get("spark.sql.ansi.enabled"),
    }


def _plan(frame: DataFrame) -> list[Any]:
    """The analysed plan without local names, in two forms that make up for each other's gaps.

    The tree as JSON has every literal, but not all settings of a node; the text has those, but a literal in
    it may read like the number of an attribute. Spark's own canonical form is not a name: it orders the
    operands of commutative operators by hashes, some of which are of a class and so of one process only.
    """
    plan = frame._jdf.queryExecution().analyzed()
    numbers: dict[str, int] = {}
    shared: dict[str, int] = {}
    tree = _renumbered(json.loads(plan.toJSON()), numbers, shared)
    text = _ATTRIBUTE.sub(lambda found: f"#{numbers.get(found[1], found[1])}", plan.toString())
    return [tree, _SHARED.sub(lambda found: f"{found[1]} {shared.get(found[2], found[2])}", text)]


def _renumbered(value: Any, numbers: dict[str, int], shared: dict[str, int]) -> Any:
    """The JSON of a plan with expression ids counted in order of appearance, and without their names.

    `shared` counts the common table expressions, whose numbers go up for as long as a process lives.
    """
    if isinstance(value, list):
        return [_renumbered(item, numbers, shared) for item in value]
    if not isinstance(value, dict):
        return value
    if number := _COUNTED.get(str(value.get("class", "")).rsplit(".", 1)[-1]):
        value = {**value, number: shared.setdefault(str(value[number]), len(shared))}
    if str(value.get("product-class", "")).endswith(".ExprId"):
        return numbers.setdefault(str(value["id"]), len(numbers))
    named = "exprId" in value
    return {
        key: _renumbered(item, numbers, shared)
        for key, item in value.items()
        if not (named and key in ("name", "qualifier"))
    }


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

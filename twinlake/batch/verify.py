"""Verify: compares what a version shows with what the same definition yields from the log alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base import quote
from twinlake.base.as_json import to_json
from twinlake.base.errors import BusyError
from twinlake.base.job import Run
from twinlake.batch.due import WHOLE, Scope
from twinlake.batch.failing_view import evaluate, failing
from twinlake.batch.sampled import local_rows, sampled
from twinlake.difference.diff import Diff, Differing, Side, diff, known_to_python
from twinlake.difference.pinned import side
from twinlake.difference.touched import within
from twinlake.kinds.evidence import HASH_HIGH, HASH_LOW, NAMES, ROWS, SEGMENT, TELLS
from twinlake.kinds.kind import ViewClock
from twinlake.lake.catalog.certificates import NOTHING, RAISES, SHOWN, Base, Certificate, Outcome, Work
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened
from twinlake.lake.catalog.version import Pin
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

CAUSES = {
    "only_in_speed": "the table has a key that no record of the log yields",
    "only_in_batch": "the table has lost a key that records of the log yield",
    "counted_more_than_once": "the table has counted more records for the key than the log has",
    "records_missing": "the table has counted fewer records for the key than the log has",
    "other_records": "as many records, but not the same ones",
    "elsewhere": "windows without new records have counted records twice, or have lost some",
    "inputs_differ": "the tables that it reads differ from what their logs give: verify those too",
    "depends_on_others": "its rows change with rows of what it reads that have other values of `by`",
    "key_given_twice": "the view has several rows of one key: its definition names too few columns as keys",
    RAISES: "an expression raises for a record: the view cannot be read",
    "state_differs": "the same records, but another state: the row was changed, or the logic is not pure",
}

_CAUSE_OF_ROW = {"changed": "inputs_differ", "only_left": "only_in_speed", "only_right": "only_in_batch"}


def verify(opened: Opened, pin: Pin, run: Run, created_at: str, scope: Scope = WHOLE) -> Certificate:
    """Compare the view, open segment included, with the batch result at the pinned position."""
    certificate = begin("verify", pin, run, created_at, scope)
    if isinstance(opened, LogView):
        return certificate.with_outcome(_readable(opened, pin))
    stored, outcome = opened.rows(pin.delta_version), NOTHING
    windows = scope.windows.since(opened.shown(pin))
    if windows.ranges:
        batch = opened.computed(pin.position[opened.topic], windows)
        outcome = compare(opened, stored.where(within(opened, windows)), batch)
    evidence = counted(stored)
    if scope.base and outcome.equal:
        outcome += _elsewhere(opened, pin, scope.base, evidence)
    return replace(certificate.with_outcome(outcome), evidence=evidence)


def counted(states: DataFrame) -> dict[str, int]:
    """Of all states together, the evidence of which records they have counted, and how often.

    It adds up over states and over time, so that it tells of every record where only some windows are
    compared.
    """
    from pyspark.sql import functions as F

    sums = (F.sum(F.col(name).cast("decimal(38, 0)")).alias(name) for name in NAMES)
    found = states.where(TELLS).agg(*sums).first()
    assert found is not None  # an aggregate without groups has one row
    return {name: int(found[name] or 0) for name in NAMES}


def _elsewhere(feed: MaintainedVersion, pin: Pin, base: Base, evidence: Mapping[str, int]) -> Outcome:
    """Whether all rows together have counted what they had at the base, and the log's records since, once."""
    since, to = base.position[feed.topic], pin.position[feed.topic]
    at, start = feed.log.started()
    if start is not None and since < start.batch:
        raise BusyError(
            f"the records since batch {since} of topic {feed.topic} cannot be counted any more",
            "retention has just deleted some of them", "ask again: all of history is compared then",
        )  # fmt: skip
    fresh = counted(feed.definition.partial(feed.log.rows(since, to, at))) if since < to else {}
    expected = {name: base.evidence[name] + fresh.get(name, 0) for name in NAMES}
    if expected == evidence:
        return NOTHING
    found = _difference({}, "elsewhere", (), {ROWS: evidence[ROWS]}, {ROWS: expected[ROWS]})
    return Outcome(rows_compared=0, differing=1, differences=(found,))


def begin(kind: Work, pin: Pin, run: Run, created_at: str, scope: Scope = WHOLE) -> Certificate:
    """The certificate of this comparison before anything has been compared."""
    version = pin.version
    return Certificate(
        id=f"{run.id}-{kind}-{version.table}-{version.name}",
        job=run.id,
        kind=kind,
        table=version.table,
        version=version.name,
        fingerprint=version.fingerprint,
        position=pin.position,
        delta_version=pin.delta_version,
        step=pin.step,
        through_segment=pin.segment,
        windows=scope.windows.to_json(),
        base=scope.base,
        rows_compared=0,
        differing=0,
        equal=True,
        created_at=created_at,
    )


def compare(feed: MaintainedVersion, speed_rows: DataFrame, batch: DataFrame) -> Outcome:
    """Merge the stored rows (`_segment` among their columns) and compare them with the batch's states."""
    scales = feed.definition.scales(feed.state_types)
    speed = feed.definition.merge(speed_rows.drop(SEGMENT))
    found = diff(
        Side(rows=speed, scales=scales), Side(rows=batch.select(*speed.columns), scales=scales),
        feed.definition.state_keys, shown=SHOWN,
    )  # fmt: skip
    return Outcome(
        rows_compared=found.compared,
        differing=found.differing,
        differences=tuple(_differences(feed, found.rows[:SHOWN])),
    )


def _readable(view: LogView, pin: Pin) -> Outcome:
    """What is wrong with a version of a view kind; one that raises when it is read is named, and no more."""
    try:
        outcome = NOTHING
        if view.definition.inputs:
            evaluate(view.view(pin))
            outcome = _doubled(view, pin)
        return outcome + _recomputed(view, pin) if view.reads else outcome
    except Exception as error:
        found = failing(view, pin, error)
        if found is None:
            raise
        difference = _difference(found.key, RAISES, found.columns, None, None) | {"why": found.words}
        return Outcome(rows_compared=0, differing=1, differences=(difference,))


def _doubled(view: LogView, pin: Pin) -> Outcome:
    """A view kind is its logs; what can be wrong is a record id that is in one of them twice."""
    from pyspark.sql import functions as F

    outcome, twice = NOTHING, F.expr("count > 1")
    for name in view.definition.inputs:
        by_record_id = view.logs[name].rows(0, pin.position[name]).groupBy(*record_id.KEY).count()
        counted = by_record_id.agg(F.count("*").alias("rows"), F.count_if(twice).alias("differing")).first()
        assert counted is not None  # an aggregate without groups has one row
        doubled = by_record_id.where(twice).limit(SHOWN).collect() if counted["differing"] else []
        differences = (
            _difference(
                {key: row[key] for key in record_id.KEY}, "counted_more_than_once", (),
                {"rows": row["count"]}, {"rows": 1},
            )
            for row in doubled
        )  # fmt: skip
        outcome += Outcome(
            rows_compared=counted["rows"], differing=counted["differing"], differences=tuple(differences)
        )
    return outcome


def _recomputed(view: LogView, pin: Pin) -> Outcome:
    """The view over the stored versions that it reads against the view over what the logs give for them."""
    from pyspark.sql import functions as F

    keys = view.definition.view_keys
    left, right = side(view, pin), side(view.computed, pin)
    twice = left.rows.groupBy(*keys).count().where(F.expr("count > 1"))
    if doubled := twice.orderBy(*keys).limit(SHOWN).collect():
        differences = (
            _difference(_key(row, keys), "key_given_twice", (), {"rows": row["count"]}, {"rows": 1})
            for row in doubled
        )
        return Outcome(
            rows_compared=left.rows.count(), differing=twice.count(), differences=tuple(differences)
        )
    found = _shown(view, diff(left, right, keys, shown=SHOWN), _CAUSE_OF_ROW)
    if not found.equal or (compared := sampled(view, pin, left)) is None:
        return found
    # these rows have been counted
    alone = _shown(view, compared, defaultdict(lambda: "depends_on_others"))
    return found + replace(alone, rows_compared=0)


def _shown(view: LogView, found: Diff, causes: Mapping[str, str]) -> Outcome:
    """The outcome in rows of the view; `causes` by the sort of a row."""
    differences = (
        _difference(_key(row.known, view.definition.view_keys), causes[row.sort], row.columns, *(
            None if one is None else {name: to_json(one[name]) for name in view.definition.timeless}
            for one in (row.left, row.right)
        ))
        for row in found.rows[:SHOWN]
    )  # fmt: skip
    return Outcome(rows_compared=found.compared, differing=found.differing, differences=tuple(differences))


def _key(row: Row, keys: Sequence[str]) -> dict[str, Any]:
    return {name: to_json(row[name]) for name in keys}


def _differences(feed: MaintainedVersion, rows: Sequence[Differing]) -> list[dict[str, Any]]:
    """The differing keys, with what a reader sees on both sides, and the class of the cause."""
    keys = feed.definition.state_keys
    speed = _seen(feed, [row.left for row in rows if row.left is not None])
    batch = _seen(feed, [row.right for row in rows if row.right is not None])
    found = []
    for row in rows:
        place = _key_text(feed, row.known.asDict())
        key = {name: to_json(row.known[name]) for name in keys}
        sides = (
            None if state is None else {ROWS: to_json(state[ROWS])} | seen.get(place, {})
            for state, seen in ((row.left, speed), (row.right, batch))
        )
        found.append(_difference(key, cause_of(row.left, row.right), row.columns, *sides))
    return found


def _difference(
    key: dict[str, Any], cause: str, columns: Sequence[str], speed: Any, batch: Any
) -> dict[str, Any]:
    why = CAUSES[cause]
    return {
        "key": key, "cause": cause, "why": why, "columns": list(columns), "speed": speed, "batch": batch,
    }  # fmt: skip


def _seen(feed: MaintainedVersion, states: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """What a reader of the view would see if these merged states were all, by the view's key as far as states
    have it: of several rows of a state the first. Nothing for a hidden row."""
    from pyspark.sql import functions as F

    found: dict[str, dict[str, Any]] = {}
    if not states:
        return found
    schema = feed.states
    stated = local_rows(feed.spark, [[row[name] for name in schema.names] for row in states], schema)
    relation = f"certificate_{uuid4().hex}"
    stated.createOrReplaceTempView(relation)
    try:
        definition = feed.definition.by_state
        shown = feed.spark.sql(definition.view({definition.name: relation}, ViewClock()))
        seen = shown.where(known_to_python(shown.schema, F.col)).select(*definition.timeless)
        for row in seen.orderBy(*map(quote.name, definition.view_keys)).collect():
            values = {name: to_json(value) for name, value in row.asDict().items()}
            found.setdefault(_key_text(feed, row.asDict()), values)
    finally:
        feed.spark.catalog.dropTempView(relation)
    return found


def _key_text(feed: MaintainedVersion, row: dict[str, Any]) -> str:
    """Of a row of a view, or of a state: of that the cell may stand for the time that is shown."""
    stored, shown, cells = feed.state_types, feed.definition.view_keys, feed.definition.cells
    key = {name: row[name] for name in shown if name in stored}
    if cells and (time := feed.definition.time_column) in shown and time not in stored:
        key["cell"] = row[cells.column] if cells.column in row else row[time]
    return json.dumps({name: to_json(value) for name, value in key.items()}, sort_keys=True)


def cause_of(speed: Any, batch: Any) -> str:
    """The class of the cause, from the exact evidence: how many records, and which."""
    if batch is None:
        return "only_in_speed"
    if speed is None:
        return "only_in_batch"
    if speed[ROWS] != batch[ROWS]:
        return "counted_more_than_once" if speed[ROWS] > batch[ROWS] else "records_missing"
    if (speed[HASH_LOW], speed[HASH_HIGH]) != (batch[HASH_LOW], batch[HASH_HIGH]):
        return "other_records"
    return "state_differs"

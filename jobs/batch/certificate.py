"""Certificate: the stored result of comparing speed with batch at one position, and how the comparison
is made.

Equality (design.md, section 6): rows are matched by key and null equals null; exact types compare
exactly, sketches
by their bytes, doubles within 1e-9 of the sum of absolute values that their state keeps beside them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from jobs.as_json import to_json
from jobs.kinds import compile
from jobs.kinds.windows import WindowRange
from jobs.lake.ledger import Ledger
from jobs.lake.version import Pin
from jobs.run import Run
from jobs.speed.advance import Feed, is_stored

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOLERANCE = 1e-9
SHOWN = 100
"""At most this many differing keys are kept with both sides; all of them are counted."""

CAUSES = {
    "only_in_speed": "the table has a key that no record of the log yields",
    "only_in_batch": "the table has lost a key that records of the log yield",
    "counted_more_than_once": "the table has counted more records for the key than the log has",
    "records_missing": "the table has counted fewer records for the key than the log has",
    "other_records": "as many records, but not the same ones",
    "state_differs": "the same records, but another state: the row was changed, or the logic is not pure",
}


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """`speed` is what the table showed, `batch` what the same definition yields from the log alone."""

    id: str
    job: str
    kind: str  # "verify" or "rebuild"
    table: str
    version: str
    fingerprint: str
    position: dict[str, int]
    delta_version: int
    step: int
    through_segment: int
    windows: dict[str, str | None]
    rows_compared: int
    differing: int
    equal: bool
    differences: list[dict[str, Any]] = field(default_factory=list)
    created_at: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """Without the differing rows themselves."""
        return {name: value for name, value in asdict(self).items() if name != "differences"}


def verify(feed: Feed, pin: Pin, job: Run, created_at: str) -> Certificate:
    """Compare the whole view, open segment included, with the batch result at the pinned position."""
    certificate = begin("verify", feed, pin, job, created_at)
    if not is_stored(feed.definition):
        return replace(certificate, **compare_events(feed, pin))
    batch = compile.partial(feed.definition, feed.log.rows(0, pin.position[feed.log.topic.name]))
    return replace(certificate, **compare(feed, feed.rows(pin.delta_version), batch))


def begin(
    kind: str, feed: Feed, pin: Pin, job: Run, created_at: str, windows: WindowRange = WindowRange()
) -> Certificate:
    """The certificate of this comparison before anything has been compared."""
    version = feed.version
    return Certificate(
        id=f"{job.id}-{version.table}-{version.name}",
        job=job.id,
        kind=kind,
        table=version.table,
        version=version.name,
        fingerprint=version.fingerprint,
        position=pin.position,
        delta_version=pin.delta_version,
        step=pin.step,
        through_segment=pin.segment,
        windows=windows.to_json(),
        rows_compared=0,
        differing=0,
        equal=True,
        created_at=created_at,
    )


def compare(feed: Feed, speed_rows: DataFrame, batch: DataFrame) -> dict[str, Any]:
    """Merge the stored partial rows and compare them with the batch's, key by key."""
    from pyspark.sql import functions as F

    speed = compile.merge(feed.definition, speed_rows.drop("_segment"))
    left = speed.select(F.struct(*speed.columns).alias("speed"))
    right = batch.select(F.struct(*speed.columns).alias("batch"))
    same_key = _all(F.col(f"speed.`{key}`").eqNullSafe(F.col(f"batch.`{key}`")) for key in feed.keys)
    joined = left.join(right, same_key if same_key is not None else F.lit(True), "full_outer")
    joined = joined.withColumn("differs", _differs(feed))
    counted = joined.agg(F.count("*").alias("rows"), F.count_if("differs").alias("differing")).first()
    assert counted is not None
    found = {
        "rows_compared": counted["rows"],
        "differing": counted["differing"],
        "equal": counted["differing"] == 0,
    }
    if found["equal"]:
        return found
    return {**found, "differences": _differences(feed, joined.where("differs"))}


def compare_events(feed: Feed, pin: Pin) -> dict[str, Any]:
    """An Events table is its log; what can be wrong is a coordinate that is there twice."""
    from pyspark.sql import functions as F

    coordinate = ["_epoch", "_partition", "_offset"]
    rows = feed.log.rows(0, pin.position[feed.log.topic.name]).groupBy(*coordinate).count()
    counted = rows.agg(F.count("*").alias("rows"), F.count_if(F.expr("count > 1")).alias("differing")).first()
    assert counted is not None
    twice = rows.where("count > 1").limit(SHOWN).collect() if counted["differing"] else []
    return {
        "rows_compared": counted["rows"],
        "differing": counted["differing"],
        "equal": counted["differing"] == 0,
        "differences": [
            {
                "key": {name: row[name] for name in coordinate},
                "cause": "counted_more_than_once",
                "why": CAUSES["counted_more_than_once"],
                "speed": {"rows": row["count"]},
                "batch": {"rows": 1},
            }
            for row in twice
        ],
    }


def _differs(feed: Feed) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import DoubleType

    doubles = {entry.name for entry in feed.schema if isinstance(entry.dataType, DoubleType)}
    differing: Column = F.col("speed").isNull() | F.col("batch").isNull()
    for name in feed.states:
        left, right = F.col(f"speed.`{name}`"), F.col(f"batch.`{name}`")
        equal = left.eqNullSafe(right)
        beside = name if name.endswith("__abs") else name.rsplit("__", 1)[0] + "__abs"
        if name in doubles and beside in doubles:
            scale = F.greatest(F.col(f"speed.`{beside}`"), F.col(f"batch.`{beside}`"))
            equal = equal | F.coalesce(F.abs(left - right) <= F.lit(TOLERANCE) * scale, F.lit(False))
        differing = differing | ~equal
    return differing


def _differences(feed: Feed, differing: DataFrame) -> list[dict[str, Any]]:
    """The first differing keys, with what a reader sees on both sides, and the class of the cause."""
    from pyspark.sql import functions as F

    rows = differing.orderBy(*[F.coalesce(F.col(f"speed.`{k}`"), F.col(f"batch.`{k}`")) for k in feed.keys])
    kept = rows.limit(SHOWN).drop("differs").collect()
    sides = {
        side: _seen(
            feed, [row[side] for row in kept if row[side] is not None], f"certificate_{side}_{uuid4().hex}"
        )
        for side in ("speed", "batch")
    }
    found = []
    for row in kept:
        known = row["speed"] if row["speed"] is not None else row["batch"]
        key = {name: to_json(known[name]) for name in feed.keys}
        cause = cause_of(row["speed"], row["batch"])
        place = json.dumps(key, sort_keys=True)
        found.append(
            {
                "key": key,
                "cause": cause,
                "why": CAUSES[cause],
                "columns": [
                    n
                    for n in feed.states
                    if row["speed"] and row["batch"] and row["speed"][n] != row["batch"][n]
                ],
                **{
                    side: sides[side].get(place) if row[side] is not None else None
                    for side in ("speed", "batch")
                },
            }
        )
    return found


def _seen(feed: Feed, states: Sequence[Any], relation: str) -> dict[str, dict[str, Any]]:
    """What a reader of the view sees for merged states, by key; a deleted row shows its state instead."""
    from pyspark.sql.types import StructType

    schema = StructType([entry for entry in feed.schema if entry.name != "_segment"])
    found = {_place(feed, row.asDict()): {n: to_json(row[n]) for n in ("_rows",)} for row in states}
    if not states:
        return found
    stated = feed.spark.createDataFrame([tuple(row[n] for n in schema.names) for row in states], schema)
    stated.createOrReplaceTempView(relation)
    try:
        text = compile.view_sql(feed.definition, relation, "CAST(NULL AS TIMESTAMP)")
        for row in feed.spark.sql(text).collect():
            shown = row.asDict()
            shown.pop("final", None)
            found[_place(feed, shown)].update({key: to_json(value) for key, value in shown.items()})
    finally:
        feed.spark.catalog.dropTempView(relation)
    return found


def _place(feed: Feed, row: dict[str, Any]) -> str:
    return json.dumps({name: to_json(row[name]) for name in feed.keys}, sort_keys=True)


def cause_of(speed: Any, batch: Any) -> str:
    """The class of the cause, from the exact companions: how many records, and which."""
    if batch is None:
        return "only_in_speed"
    if speed is None:
        return "only_in_batch"
    if speed["_rows"] != batch["_rows"]:
        return "counted_more_than_once" if speed["_rows"] > batch["_rows"] else "records_missing"
    if (speed["_hash_low"], speed["_hash_high"]) != (batch["_hash_low"], batch["_hash_high"]):
        return "other_records"
    return "state_differs"


def _all(conditions: Any) -> Any:
    found = None
    for condition in conditions:
        found = condition if found is None else found & condition
    return found


SCHEMA = pa.schema(
    [
        *[
            (name, pa.string())
            for name in ("id", "job", "kind", "table", "version", "fingerprint", "position")
        ],
        *[(name, pa.int64()) for name in ("delta_version", "step", "through_segment")],
        ("windows", pa.string()),
        *[(name, pa.int64()) for name in ("rows_compared", "differing")],
        ("equal", pa.bool_()),
        ("differences", pa.string()),
        ("created_at", pa.string()),
    ]
)
_NESTED = ("position", "windows", "differences")


class Certificates:
    """`<lake>/certificates`, and the newest of each version in memory."""

    def __init__(self, lake: Path) -> None:
        self._ledger = Ledger(lake / "certificates", SCHEMA)
        rows = sorted(self._ledger.rows(), key=lambda row: row["created_at"])
        self._newest: dict[tuple[str, str], Certificate] = {}
        for row in rows:
            self._remember(Certificate(**{**row, **{name: json.loads(row[name]) for name in _NESTED}}))

    def add(self, certificate: Certificate) -> Certificate:
        row = asdict(certificate)
        self._ledger.append([{**row, **{name: json.dumps(row[name]) for name in _NESTED}}])
        self._remember(certificate)
        return certificate

    def newest(self, table: str, version: str) -> Certificate | None:
        """The last certificate over the whole of a version (one over a range of windows proves less)."""
        return self._newest.get((table, version))

    def last(self, table: str | None = None) -> Certificate | None:
        """The last one at all, or of a table."""
        found = [made for (name, _), made in self._newest.items() if table in (None, name)]
        return max(found, key=lambda made: made.created_at, default=None)

    def compact(self) -> bool:
        return self._ledger.compact()

    def _remember(self, certificate: Certificate) -> None:
        if certificate.windows == WindowRange().to_json() or not certificate.equal:
            self._newest[(certificate.table, certificate.version)] = certificate

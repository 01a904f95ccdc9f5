"""Changes: the records that lead from what a changelog has sent to what its table shows now.

Three ways, each exact, the cheapest that can be had: the keys that steps have touched since; all keys, where
what was sent can still be read; all keys of what the topic itself holds, where it cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.base.errors import TwinlakeError
from twinlake.batch.diff import Side, changes
from twinlake.batch.pinned import exact_side, only, side
from twinlake.batch.touched import is_known, is_readable, touched
from twinlake.changelog.destination import GROUPS
from twinlake.changelog.form import Form
from twinlake.changelog.position import Position
from twinlake.config.login import Login
from twinlake.lake.catalog.maintained_version import MaintainedVersion, Opened
from twinlake.lake.catalog.version import Pin
from twinlake.lake.open_lake import LivingVersions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOUCHED, ALL_KEYS, CONTENT = "touched keys", "all keys", "all keys of the topic"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """`records` has the columns `key` and `value`, one row a key; `way` says in words how they were found."""

    way: str
    records: DataFrame


def find_changes(
    versions: LivingVersions,
    sent: Position | None,
    opened: Opened,
    pin: Pin,
    form: Form,
    content: Callable[[], DataFrame],
) -> Changes:
    """From the position that was sent (None: nothing that is known) to this pin of the live version.

    `content` are the newest records of the topic by key, tombstones left out, as `key` and `value`.
    """
    old = sent.pinned(versions.get) if sent and sent.key_id == form.key_id else None
    before = _opened(versions, old)
    if old is None or before is None or not is_readable(before, old):
        sides = Side(rows=content()), Side(rows=form.of_rows(exact_side(opened, pin).rows))
        return Changes(way=CONTENT, records=_of_content(changes(*sides, ["key"])))
    keys = opened.definition.view_keys
    if old.version != pin.version:
        found = changes(side(before, old), side(opened, pin), keys)
        return Changes(way=ALL_KEYS, records=form.of_changes(found))
    left, right = exact_side(opened, old), exact_side(opened, pin)
    by = touched(opened, old, pin) if isinstance(opened, MaintainedVersion) else None
    if by is None:
        return Changes(way=ALL_KEYS, records=form.of_changes(changes(left, right, keys)))
    return Changes(way=TOUCHED, records=form.of_changes(changes(only(left, by), only(right, by), keys)))


def is_of_this_lake(versions: LivingVersions, sent: Position) -> bool:
    """Whether this lake has sent it. One that was restored and has read on may be at the same batch with
    other records."""
    old = sent.pinned(versions.get)
    before = _opened(versions, old)
    return old is not None and before is not None and is_known(before, old)


def _opened(versions: LivingVersions, old: Pin | None) -> Opened | None:
    """The version of the pin; None for a stalled one, which nobody can wait for."""
    try:
        return versions.opened(old.version) if old else None
    except TwinlakeError:
        return None


def content_of(spark: SparkSession, login: Login, topic: str) -> DataFrame:
    """What a reader of the topic who knows its committed records holds: by key the newest value."""
    from pyspark.sql import functions as F

    records = (
        spark.read.format("kafka")
        .options(**login.spark())
        .option("groupIdPrefix", GROUPS)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    newest = F.max_by("value", "offset").alias("value")  # a key has one partition for ever
    return records.groupBy("key").agg(newest).where("value IS NOT NULL")


def _of_content(found: DataFrame) -> DataFrame:
    return found.selectExpr("coalesce(r.key, l.key) AS key", "r.value AS value")

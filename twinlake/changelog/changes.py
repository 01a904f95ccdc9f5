"""Changes: the upserts and deletes that lead from what a changelog has sent to what its table shows now.

Three ways, each exact, the cheapest that can be had: the keys that steps have touched since; all keys, where
what was sent can still be read; all keys of what the topic itself holds, where it cannot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.base.errors import TwinlakeError
from twinlake.changelog.destination import GROUPS
from twinlake.changelog.form import Form, registered
from twinlake.changelog.position import Position
from twinlake.changelog.source import Found, Now, Sends
from twinlake.changelog.target import Record, changes_to
from twinlake.config.login import Login
from twinlake.difference.changed import changed_rows, rest_s
from twinlake.difference.diff import Side, changes
from twinlake.difference.pinned import exact_side
from twinlake.difference.touched import is_known
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.catalog.version import Pin, pin_json
from twinlake.lake.open_lake import LivingVersions, OpenLake
from twinlake.topics.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTENT = "all keys of the topic"


class RowChanges:
    """Implements `source.Source` for rows that change."""

    sends: Sends = "changes"

    def __init__(self, lake: OpenLake, lake_id: str, table: str, topic: str) -> None:
        self.target = changes_to(topic)
        self._lake, self._lake_id, self._table, self._topic = lake, lake_id, table, topic
        self._form: tuple[str, Form] | None = None

    def is_asked(self, sent: Position) -> bool:
        return False

    def is_known(self, sent: Position, opened: Opened) -> bool:
        return is_of_this_lake(self._lake.versions, sent)

    def find(self, sent: Position | None, now: Now) -> Found:
        form, made, pin = self._form_of(now.opened, now.pin), now.destination.made[self._topic], now.pin
        known = sent if sent and sent.topic_id == made.id else None
        login = now.destination.kafka.login
        found = find_changes(
            self._lake.versions, known, now.opened, pin, form,
            lambda: content_of(self._lake.spark, login, self._topic),
        )  # fmt: skip
        new = Position(
            lake=self._lake_id, table=self._table, release=now.release, topic_id=made.id,
            key_id=form.key_id, pin=pin_json(pin), partitions=made.partitions,
        )  # fmt: skip
        headers = {"release": str(now.release), "position": json.dumps(pin.position, sort_keys=True)}
        records = _each(found.records, self._topic)
        return Found(
            way=found.way, records=records, headers=headers, position=new,
            rest_s=lambda took_s: rest_s(now.opened, found.way, took_s),
        )  # fmt: skip

    def forget(self) -> None:
        self._form = None

    def _form_of(self, opened: Opened, pin: Pin) -> Form:
        name = opened.version.name
        if self._form is None or self._form[0] != name:
            definition = opened.definition
            rows = opened.view(pin).select(*definition.timeless).schema
            registry = Registry(self._lake.settings.services().registry())
            self._form = name, registered(registry, self._topic, self._table, definition.view_keys, rows)
        return self._form[1]


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
    found = changed_rows(_opened(versions, old), old, opened, pin)
    if found is None:
        sides = Side(rows=content()), Side(rows=form.of_rows(exact_side(opened, pin).rows))
        return Changes(way=CONTENT, records=_of_content(changes(*sides, ["key"])))
    return Changes(way=found.way, records=form.of_changes(found.rows))


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


def _each(records: DataFrame, topic: str) -> Iterator[Record]:
    for row in records.toLocalIterator(prefetchPartitions=True):
        value = None if row["value"] is None else bytes(row["value"])
        yield Record(topic=topic, key=bytes(row["key"]), value=value)

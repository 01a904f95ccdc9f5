"""Comments: what the catalog of readers says in words of views and their columns, from the contracts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from twinlake.base.location import Location
from twinlake.kinds.late import FINAL
from twinlake.kinds.windows import END, START
from twinlake.lake.catalog.described import described
from twinlake.lake.log import active_topics, topic_views
from twinlake.reading.views import View, late_name
from twinlake.topics import record_id
from twinlake.topics.contract_words import NONE, Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IMPLIED = {
    START: "start of the window, UTC: a record at this time is in it",
    END: "end of the window, UTC: a record at this time is not in it",
    FINAL: "whether no record that comes in time can change the row any more",
    "late": "how many records came late and count in the window",
    "discarded": "how many came too late to count",
    "first_arrived": "when Kafka got the first of them, UTC",
    "last_arrived": "when Kafka got the last of them, UTC",
    record_id.TIMESTAMP: "Kafka's time of the record, UTC",
    record_id.INGESTED_AT: "when the record was added to the log, UTC",
    **dict(zip(record_id.KEY, (
        "which topic of this name it was: counts up when one was made again",
        "Kafka's partition of the record", "Kafka's offset of the record",
    ), strict=True)),
    "verdict": "what validation made of the record",
    "reasons": "why it is not valid",
    "contract": "the version of the contract that has validated it",
    "replay": "whether a replay has added this copy",
}  # fmt: skip
"""What columns say that no contract lists."""


class Comments:
    """Those that the catalog of a session has: Spark forgets those of columns whenever a view is altered."""

    def __init__(self, spark: SparkSession, lake: Location) -> None:
        self._spark, self._lake = spark, lake
        self._words: Mapping[str, Words] = {}
        self._there: dict[tuple[str, str], Any] = {}

    def read(self) -> None:
        """What the lake server has published by now."""
        self._words = described(self._lake)

    def forget(self, key: tuple[str, str]) -> None:
        """The view of this key is about to be altered, or dropped."""
        self._there.pop(key, None)

    def set(self, views: Iterable[View], tables: Iterable[str]) -> None:
        """Of views that are there, among them those of these tables."""
        said = comments(views, tables, active_topics.active_topic_names(self._lake), self._words)
        new = {key: words for key, words in said.items() if self._there.get(key) != words}
        if new:
            jvm: Any = self._spark._jvm
            jvm.twinlake.reading.Comments.set(self._spark._jsparkSession, json.dumps([*new.values()]))
            self._there |= new


def comments(
    views: Iterable[View], tables: Iterable[str], topics: Iterable[str], words: Mapping[str, Words]
) -> dict[tuple[str, str], dict[str, Any]]:
    """By key, what is said of each view that is one of these tables, or of these topics: an object with
    `schema`, `name`, `comment` and `columns`, all of them texts."""
    of_name: dict[str, tuple[str, Words | None]] = {
        table.lower(): (_sentences(words.get(table, NONE)), words.get(table)) for table in tables
    }
    for table in tables:
        of_name[late_name(table).lower()] = f"Records that came late for windows of {table}.", None
    for topic in topics:
        valid, refused, replayed = topic_views.names(topic)
        purpose = words.get(topic, NONE).purpose
        each = f"Every valid record of topic {topic}, once. {purpose}".strip()
        of_name[valid.lower()] = each, words.get(topic)
        of_name[refused.lower()] = f"Records of topic {topic} that are not valid, with their reasons.", None
        of_name[replayed.lower()] = f"What replays of topic {topic} have made of records.", None
    found = {}
    for view in views:
        if view.name.lower() in of_name:
            comment, said = of_name[view.name.lower()]
            columns = {**IMPLIED, **(said.columns if said else {})}
            found[view.key] = {
                "schema": view.schema,
                "name": view.name,
                "comment": comment,
                "columns": columns,
            }
    return found


def _sentences(words: Words) -> str:
    return " ".join(part.strip() for part in (words.purpose, words.row) if part.strip())

"""Changelogs: which tables' changes are sent where, in files of the lake, and their senders."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.changelog.destination import Destination, position_topic
from twinlake.changelog.form import schemas
from twinlake.changelog.sender import Sender
from twinlake.kinds.kind import Kind
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import TableWorkers, opened_live
from twinlake.topics import record_id
from twinlake.topics.topic import topic_names

_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, kw_only=True)
class Changelog:
    """One that is on: it is sent until somebody stops it, by whichever server runs."""

    table: str
    topic: str
    started_at: str


class Changelogs(TableWorkers[Changelog, Sender]):
    """Implements `lake.open_lake.RunningChangelogs`, by files in `<lake>/changelogs`."""

    def __init__(self, lake: Location, lake_id: str) -> None:
        super().__init__(lake / "changelogs", Changelog)
        self._lake_id = lake_id

    def start(self, lake: OpenLake, table: str, topic: str, run: Run) -> dict[str, Any]:
        with self._lock:
            on = {one.table: one for one in self._on()}
            if table in on and on[table].topic != topic:
                raise UsageError(
                    f"the changelog of {table} goes to {on[table].topic}", "a table has one at most",
                    f"end that with `twinlake changelog {table} --stop`",
                )  # fmt: skip
            if table not in on:
                self._refuse(lake, table, topic, [one.topic for one in on.values()], run)
                self._put(lake, Changelog(table=table, topic=topic, started_at=lake.clock().isoformat()))
            return self._workers[table].status()

    def stand_still(self, table: str, run: Run) -> None:
        self._sender(table).stand_still(run)

    def stop(self, lake: OpenLake, table: str) -> dict[str, Any]:
        with self._lock:
            stopped = self._drop(self._sender(table))
            lake.pauses.drop("changelog", table)  # the next one of this table is another one
            return stopped

    def _sender(self, table: str) -> Sender:
        sender = self._workers.get(table)
        if sender is None:
            raise NotFoundError(
                f"table {table} has no changelog", f"tables that have: {self._named()}", "name one of them"
            )
        return sender

    def _made(self, lake: OpenLake, one: Changelog) -> Sender:
        return Sender(lake, self._lake_id, one.table, one.topic)

    def _refuse(self, lake: OpenLake, table: str, topic: str, others: list[str], run: Run) -> None:
        """Before anything is made: everything that can be known to be wrong."""
        opened = opened_live(lake, table)
        _refuse_kind(opened.definition)
        _refuse_name(topic, [*topic_names(*lake.settings.sources)], others)
        view = opened.view(lake.versions.pin(opened.version, run)).select(*opened.definition.timeless)
        schemas(table, opened.definition.view_keys, view.schema)
        login = lake.settings.services().kafka("changelog")
        Destination(login, topic, table, self._lake_id).refuse_foreign()


def _refuse_kind(definition: Kind) -> None:
    if set(definition.view_keys) <= set(record_id.NAMES):
        raise UsageError(
            f"table {definition.name} has no keys",
            "its rows are records of a topic, which come and never change",
            f"have consumers read Kafka's topic {', '.join(definition.inputs)}, or define a table with keys "
            "over it (a Latest, an Aggregate), release that and send its changes",
        )


def _refuse_name(topic: str, sources: list[str], others: list[str]) -> None:
    """UsageError for a name that Kafka refuses, or that is taken; two topics are meant by each."""
    if not _TOPIC.fullmatch(topic):
        raise UsageError(
            f"{topic!r} is not a name of a topic", "up to 200 letters, digits, '.', '_' and '-' are allowed, "
            "a letter or digit first", "name another topic",
        )  # fmt: skip
    mine = {topic, position_topic(topic)}
    taken = {one: "tables are made from it" for one in sources}
    taken |= {one: "it is another changelog's" for other in others for one in (other, position_topic(other))}
    if both := sorted(mine & set(taken)):
        raise UsageError(f"topic {both[0]!r} is taken", taken[both[0]], "name another topic")

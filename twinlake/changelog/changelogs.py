"""Changelogs: which tables' changes are sent where, in files of the lake, and their senders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from twinlake.base.errors import BusyError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.changelog.changes import RowChanges
from twinlake.changelog.destination import Destination
from twinlake.changelog.event_form import EventOptions, refuse_columns
from twinlake.changelog.form import schemas
from twinlake.changelog.new_rows import NewRows, has_events, log_of
from twinlake.changelog.sender import Sender
from twinlake.changelog.source import Now, Source
from twinlake.changelog.target import PARTITIONS, Target, changes_to, position_topic
from twinlake.config.login import Login
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.changelog_request import ChangelogRequest
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import TableWorkers, opened_live
from twinlake.topics.topic import topic_names

_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_POSITIONS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,239}")


@dataclass(frozen=True, kw_only=True)
class Changelog:
    """One that is on: it is sent until somebody stops it, by whichever server runs. `events` says how the
    rows of a table are sent that never change; of another one it is None, and `topic` is its topic."""

    table: str
    topic: str
    started_at: str
    events: EventOptions | None = None

    @property
    def target(self) -> Target:
        return self.events.target if self.events else changes_to(self.topic)

    def is_like(self, other: Changelog) -> bool:
        """Whether the same is sent in the same way."""
        return _once(self.events) == _once(other.events) and self.topic == other.topic


class Changelogs(TableWorkers[Changelog, Sender]):
    """Implements `lake.open_lake.RunningChangelogs`, by files in `<lake>/changelogs`."""

    def __init__(self, lake: Location, lake_id: str) -> None:
        super().__init__(lake / "changelogs", Changelog)
        self._lake_id = lake_id

    def start(self, lake: OpenLake, table: str, asked: ChangelogRequest, run: Run) -> dict[str, Any]:
        with self._lock:
            on = {one.table: one for one in self._on()}
            opened = opened_live(lake, table)
            made = _asked_for(opened, asked, lake.clock().isoformat())
            if table in on and not on[table].is_like(made):
                how = "" if on[table].topic != made.topic else ", in another way than is asked for now"
                raise UsageError(
                    f"the changelog of {table} goes to {on[table].topic}{how}", "a table has one at most",
                    f"end that with `twinlake changelog {table} --stop`"
                    + (": started in the other way, it goes on from there" if how else ""),
                )  # fmt: skip
            if table not in on:
                self._refuse(lake, opened, made, on.values(), run)
                if made.events:
                    made = self._begun(lake, opened, made, asked.begin == "beginning", run)
                self._put(lake, made)
            return self._workers[table].status()

    def resend(self, lake: OpenLake, table: str) -> dict[str, Any]:
        with self._lock:
            sender = self._sender(table)
            (one,) = (each for each in self._on() if each.table == table)
            if one.events is None or not isinstance(sender.source, NewRows):
                raise UsageError(
                    f"the changelog of {table} has no events", "its topic has the newest row of every key",
                    "have readers read the topic from its beginning",
                )  # fmt: skip
            if sender.sent is None or sender.sent.events is None:
                raise BusyError(
                    f"nobody knows yet what the changelog of {table} has sent",
                    "it has not asked Kafka since the lake server has started, or cannot",
                    "see `twinlake status`, and ask again",
                )  # fmt: skip
            resends = max(one.events.resends, sender.sent.events.resends) + 1
            self._save(replace(one, events=replace(one.events, resends=resends)))
            sender.source.resend(resends)
            return sender.status()

    def stand_still(self, table: str, run: Run) -> None:
        self._sender(table).stand_still(run)

    def stop(self, lake: OpenLake, table: str) -> dict[str, Any]:
        with self._lock:
            stopped = self._drop(self._sender(table))
            lake.pauses.drop("changelog", table)  # the next one of this table is another one
            return stopped

    def _sender(self, table: str) -> Sender:
        return self._worker(table, f"table {table} has no changelog")

    def _made(self, lake: OpenLake, one: Changelog) -> Sender:
        source: Source = (
            NewRows(lake, self._lake_id, one.table, one.events)
            if one.events
            else RowChanges(lake, self._lake_id, one.table, one.topic)
        )
        return Sender(lake, self._lake_id, one.table, source)

    def _refuse(
        self, lake: OpenLake, opened: Opened, made: Changelog, others: Iterable[Changelog], run: Run
    ) -> None:
        """Before anything is made: everything that can be known to be wrong."""
        definition = opened.definition
        _refuse_names(made.target, [*topic_names(*lake.settings.sources)], others)
        view = opened.view(lake.versions.pin(opened.version, run)).select(*definition.timeless)
        if made.events:
            refuse_columns(made.events, definition, view.schema)
        else:
            schemas(made.table, definition.view_keys, view.schema)
        self._destination(lake, made).refuse_foreign()

    def _begun(
        self, lake: OpenLake, opened: Opened, made: Changelog, all_of_it: bool, run: Run
    ) -> Changelog:  # fmt: skip
        """One of events whose first position is sent: from now on an empty topic of positions is one that was
        lost. A changelog that was sent before goes on where it was."""
        assert made.events is not None
        options = replace(made.events, partitions=_partitions(lake, opened, made.events))
        destination = self._destination(lake, replace(made, events=options))
        try:
            sent, live = destination.open(), release_log.live(lake.path)
            if sent and sent.events and not (all_of_it and destination.has_sent_none(sent)):
                return replace(made, events=replace(options, resends=sent.events.resends))
            pin, number = lake.versions.pin(opened.version, run), live.number if live else 0
            now = Now(opened=opened, pin=pin, release=number, destination=destination)
            source = NewRows(lake, self._lake_id, made.table, options)
            destination.send([], {}, source.begun(now, all_of_it))
            return replace(made, events=options)
        finally:
            destination.close()

    def _destination(self, lake: OpenLake, made: Changelog) -> Destination:
        login: Login = lake.settings.services().kafka("changelog")
        return Destination(login, made.target, made.table, self._lake_id)


def _asked_for(opened: Opened, asked: ChangelogRequest, now: str) -> Changelog:
    """What was asked for, for the kind of table that it is."""
    table = opened.version.table
    if has_events(opened):
        options = _event_options(table, asked)
        return Changelog(table=table, topic=options.target.shown, started_at=now, events=options)
    if not opened.definition.view_keys:
        raise UsageError(
            f"table {table} has no keys",
            "nobody can tell which of its rows has changed",
            "define a table with keys over it (a Latest, an Aggregate), release that and send its changes",
        )
    if asked.topic is None or asked.of_events:
        raise UsageError(
            f"the changelog of {table} has no {', '.join(asked.of_events)}",
            "its rows change: one topic gets the newest row of every key, as Avro; this is for events",
            "leave it out, or name a table of events (Events)",
        )
    return Changelog(table=table, topic=asked.topic, started_at=now)


def _event_options(table: str, asked: ChangelogRequest) -> EventOptions:
    if (asked.topic is None) == (asked.topic_from is None) or bool(asked.topics) != bool(asked.topic_from):
        raise UsageError(
            "either one topic is named, or none", "events go to one topic, or to those that a column names",
            "name a topic, or a column with the topics that it may name",
        )  # fmt: skip
    by = asked.partition_by or ("key" if asked.key else "source")
    if by == "key" and not asked.key:
        raise UsageError(
            "events are to be partitioned by a key, and have none", "", "name its columns with --key"
        )
    topics = (asked.topic,) if asked.topic is not None else asked.topics
    if asked.other_topic is not None:
        topics = tuple(dict.fromkeys((*topics, asked.other_topic)))
    positions = position_topic(f"changelog.{table}" if asked.topic is None else asked.topic)
    return EventOptions(
        topics=topics, positions=asked.position_topic or positions, topic_from=asked.topic_from,
        other_topic=asked.other_topic, key=asked.key, partition_by=by, format=asked.format,
        headers=asked.headers,
    )  # fmt: skip


def _partitions(lake: OpenLake, opened: Opened, options: EventOptions) -> int:
    """How many a topic has that is made: as many as the source, where events keep its partitions."""
    ingest = lake.ingests.get(log_of(opened).topic.name)
    if options.partition_by == "key" or ingest is None:
        return PARTITIONS
    return max(ingest.broker_ends(), default=PARTITIONS - 1) + 1


def _once(events: EventOptions | None) -> EventOptions | None:
    """The options but for what says nothing of how events are sent."""
    return replace(events, resends=0, partitions=PARTITIONS) if events else None


def _refuse_names(target: Target, sources: list[str], others: Iterable[Changelog]) -> None:
    """UsageError for a name that Kafka refuses, or that is taken."""
    for topic in target.names:
        if not (_POSITIONS if topic == target.positions else _TOPIC).fullmatch(topic):
            raise UsageError(
                f"{topic!r} is not a name of a topic",
                "up to 200 letters, digits, '.', '_' and '-' are allowed, a letter or digit first",
                "name another topic",
            )  # fmt: skip
    if target.positions in target.topics:
        raise UsageError(
            f"topic {target.positions!r} is taken", "events are to be sent to it, and positions too",
            "name another topic",
        )  # fmt: skip
    taken = {one: "tables are made from it" for one in sources}
    taken |= {name: "it is another changelog's" for other in others for name in other.target.names}
    if both := sorted(set(target.names) & set(taken)):
        raise UsageError(f"topic {both[0]!r} is taken", taken[both[0]], "name another topic")

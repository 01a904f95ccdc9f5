"""OpenTopics: the log and the ingest of each active topic, and how one takes the place of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import structlog

from twinlake.base.errors import TwinlakeError
from twinlake.base.location import Location
from twinlake.lake.catalog.made_with import store_schemas
from twinlake.lake.catalog.paused import Pauses
from twinlake.lake.log.log import Log
from twinlake.server.status import TopicIngest
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

journal = structlog.get_logger(__name__)


class Readers(Protocol):
    """The versions that read the logs."""

    def read_by(self, log: Log) -> None:
        """From now on the log of its topic is this one; returns when all that read it do."""


class OpenTopics:
    """Implements `lake.open_lake.RunningTopics` over what the lake server holds open: `logs`, `ingests` and
    `broken` are its own, and change for everybody who has them."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Location,
        logs: dict[str, Log],
        ingests: dict[str, TopicIngest],
        broken: dict[str, TwinlakeError],
        make_ingest: Callable[[Log], TopicIngest],
        readers: Readers,
        pauses: Pauses,
    ) -> None:
        self._spark, self._lake, self._broken = spark, lake, broken
        self._logs, self._ingests = logs, ingests
        self._make_ingest, self._readers, self._pauses = make_ingest, readers, pauses

    def active(self) -> dict[str, Topic]:
        return {name: log.topic for name, log in self._logs.copy().items()}

    def broken(self) -> list[str]:
        return list(self._broken)

    def put(self, topic: Topic) -> None:
        name, log, before = topic.name, Log(self._spark, self._lake, topic), self._ingests.get(topic.name)
        if before:
            log.lock = self._logs[name].lock  # whoever compacts the files now has that one
            before.stop()
        try:
            log.open()
            log.end()
        except BaseException:
            if before:
                self._start(name, before)
            raise
        self._logs[name] = log
        self._broken.pop(name, None)
        if not before:
            store_schemas(self._lake, self._logs)
        self._readers.read_by(log)  # before the first batch: who reads by an earlier schema must say so
        made = self._make_ingest(log)
        if before:
            made.replaying = before.replaying  # whoever replays, or deletes, now has that one
        self._ingests[name] = made
        self._start(name, made)
        journal.info("the topic's files are active", topic=name, contract=topic.contract.version)

    def drop(self, name: str) -> None:
        if ingest := self._ingests.get(name):
            ingest.stop()
            del self._ingests[name], self._logs[name]
        self._broken.pop(name, None)
        journal.info("the topic is read no more: its files are gone", topic=name)

    def _start(self, name: str, ingest: TopicIngest) -> None:
        if not self._pauses.of("topic", name):
            ingest.start()

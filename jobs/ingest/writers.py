"""The schemas of a topic's producers, as the registry tells them, and what the log has met says of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import structlog

from jobs.errors import DeniedError, TwinlakeError, UnreachableError
from jobs.ingest.log_end import LogEnd
from jobs.ingest.writer_schema import Writer, learn, meant
from jobs.topics.contract import JSON
from jobs.topics.registry import Registry
from jobs.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

REGISTRY_SILENT_S = 60.0
"""So long a registry that did not answer is not asked whether schemas are the same."""

journal = structlog.get_logger(__name__)


class Writers:
    """`decoded` as in `writer_schema.learn`. Not safe between threads."""

    def __init__(self, topic: Topic, registry: Registry, decoded: Callable[[str], StructType]) -> None:
        self._topic = topic
        self._registry = registry
        self._decoded = decoded
        self._known: dict[int, Writer] = {}
        self._silent_until = 0.0

    def all(self) -> list[Writer]:
        return [*self._known.values()]

    def learn(self, end: LogEnd) -> bool:
        """Asks the registry for schemas of the topic; whether there was a new one. StoppedTopicError for one
        that means something else than the log has met, or that the topic cannot read."""
        if self._topic.contract.format == JSON:  # the contract is its schema
            return False
        found = self._registry.schemas(f"{self._topic.name}-value")
        for number in end.schemas.keys() - found.keys():  # its version may have been deleted since
            avro = self._registry.schema(number)
            if avro is not None:
                found[number] = avro
        new = {number: self._writer(number, avro, end) for number, avro in found.items()}
        before, self._known = self._known, {**self._known, **new}
        return self._known != before

    def check(self, met: Iterable[Writer], end: LogEnd) -> None:
        """Refuses a batch some of whose schemas mean something else in the registry by now.

        A registry that does not answer, or not us, says nothing against what it said before: ingest goes on
        without it.
        """
        if time.monotonic() < self._silent_until:
            return
        for writer in met:
            try:
                avro = self._registry.schema(writer.id)
            except (UnreachableError, DeniedError) as error:
                self._silent_until = time.monotonic() + REGISTRY_SILENT_S
                journal.warning("schemas cannot be checked", topic=self._topic.name, why=str(error))
                return
            if avro is not None and self._writer(writer.id, avro, end) != writer:
                raise TwinlakeError(
                    what=f"schema {writer.id} of topic {self._topic.name} became another while it was read",
                    why="the registry was restored or filled anew",
                    remedy="the records are read again with the new one",
                )

    def _writer(self, schema_id: int, avro: dict[str, Any], end: LogEnd) -> Writer:
        """The writer behind an id; one that meant another schema to the log stops the topic."""
        known, avro = self._known.get(schema_id), meant(avro)
        if known and known.avro == avro:
            return known
        if refused := end.refuse_schema(schema_id, avro):
            raise refused
        return learn(self._topic, schema_id, avro, self._decoded)

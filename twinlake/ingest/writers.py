"""The schemas of a topic's producers, as the registry tells them, and what the log has met says of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import DeniedError, TwinlakeError, UnreachableError
from twinlake.ingest.log_end import LogEnd
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import Writer, in_avro, learn
from twinlake.lake.log.log_fields import with_field
from twinlake.topics.contract import JSON
from twinlake.topics.registry import Registry
from twinlake.topics.topic import Topic

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
        self._known: dict[int, Writer | Unreadable] = {}
        self._unkept: dict[int, Unreadable] = {}  # could be read, if the log had a place for their fields
        self._silent_until = 0.0

    def all(self) -> list[Writer]:
        """Those whose records can be read."""
        return [one for one in self._known.values() if isinstance(one, Writer) and one.id not in self._unkept]

    def unreadable(self) -> list[Unreadable]:
        """The others: their records wait in quarantine, or stop the topic."""
        return [*(one for one in self._known.values() if isinstance(one, Unreadable)), *self._unkept.values()]

    def learn(self, end: LogEnd, event: Mapping[str, str]) -> bool:
        """Asks the registry for schemas of the topic; whether there was a new one. StoppedTopicError for one
        that means something else than the log has met. `event` has the log's fields and their types."""
        if self._topic.contract.format == JSON:  # the contract is its schema
            return False
        found = self._registry.schemas(f"{self._topic.name}-value")
        # a version may have been deleted since
        for number in (end.schemas.keys() | end.unreadable.keys()) - found.keys():
            avro = self._registry.schema(number)
            if avro is not None:
                found[number] = avro
        new = {number: self._writer(number, avro, end) for number, avro in found.items()}
        before, self._known = self._known, {**self._known, **new}
        for number in self._known:
            self.leave_out_unkept([number], event)
        return self._known != before

    def leave_out_unkept(self, met: Iterable[int], event: Mapping[str, str]) -> bool:
        """Takes those of these schemas for unreadable that have a field that the log has no place for, once
        it has gained the fields of the ones before them; whether there was a new one."""
        before = len(self._unkept)
        for writer in (self._known.get(number) for number in met):
            if not isinstance(writer, Writer) or writer.id in self._unkept:
                continue
            fields = event
            for name, type_ in writer.stored.items():
                try:
                    fields = with_field(fields, name, type_)
                except ValueError as error:
                    found = Unreadable(id=writer.id, avro=writer.avro, field=name, why=str(error), steps=None)
                    self._unkept = {**self._unkept, writer.id: found}
                    break
            else:
                event = fields
        return len(self._unkept) > before

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
                    why="the registry was restored or refilled",
                    remedy="the records are read again with the new one",
                )

    def _writer(self, schema_id: int, found: dict[str, Any], end: LogEnd) -> Writer | Unreadable:
        """The writer behind an id; one that meant another schema to the log stops the topic."""
        known, (avro, others) = self._known.get(schema_id), in_avro(self._topic, schema_id, found)
        if known and known.avro == avro:
            return known
        if refused := end.refuse_schema(schema_id, avro):
            raise refused
        return learn(self._topic, schema_id, avro, self._decoded, others)

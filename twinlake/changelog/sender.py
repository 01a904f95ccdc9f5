"""Sender: the one thread that sends a changelog, from position to position of whatever version is live.

All that has happened since the last transaction goes into the next one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import BusyError, TwinlakeError, first_lines
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.base.waiting import holding
from twinlake.changelog.changes import TOUCHED, content_of, find_changes, is_of_this_lake
from twinlake.changelog.destination import Destination, Record
from twinlake.changelog.form import Form, registered
from twinlake.changelog.position import Position
from twinlake.kinds.kind import is_stored
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.version import Pin, Version, pin_json
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import STOP_S, TableWorker
from twinlake.topics.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WHOLE_EVERY_S = 30.0
"""A table whose every key is compared is compared so often at most, and a tenth of the time."""


class Sender(TableWorker):
    """What failed is tried again from what the position topic tells."""

    def __init__(self, lake: OpenLake, lake_id: str, table: str, topic: str) -> None:
        super().__init__(lake, table, "changelog", topic=topic)
        self.topic = topic
        self.sent: Position | None = None
        self._lake_id = lake_id
        self._turn = threading.Lock()
        """Held while something is sent."""
        self._destination: Destination | None = None
        self._is_sure = False  # that what was sent last is of this lake
        self._form: tuple[str, Form] | None = None
        self._records, self._way, self._sent_at = 0, "", ""
        self._rest_until = 0.0  # on the monotonic clock

    def stand_still(self, run: Run) -> None:
        """Returns once nothing is sent any more, after it was paused; what is computed for a transaction is
        given up."""
        self._give_up()
        with holding(self._turn, f"the transaction of the changelog of {self.table} to end", STOP_S, run):
            pass  # from here on it sees that it is paused

    def status(self) -> dict[str, Any]:
        sent, paused = self.sent, self._paused()
        error = None if paused else self.error
        return {
            "table": self.table,
            "topic": self.topic,
            "state": "paused" if paused else "failing" if error else "sending" if sent else "starting",
            "release": sent.release if sent else None,
            "version": sent.version if sent else None,
            "position": sent.batches if sent else {},
            "records": self._records,
            "way": self._way,
            "sent_at": self._sent_at,
            "error": error.to_json() if error else None,
        }

    def _paused(self) -> Paused | None:
        return self._lake.pauses.of("changelog", self.table)

    def _fail(self, error: Exception) -> None:
        self._journal.error("the changelog is not sent", exc_info=error)
        known = damage_in(error, self._lake.path) or error
        self.error = known.alone() if isinstance(known, TwinlakeError) else TwinlakeError(
            f"the changelog of {self.table} is not sent", first_lines(error),
            "fix what the error names; it is tried again by itself, and nothing is left out",
        )  # fmt: skip

    def _forget(self) -> None:
        """What was sent last is asked of the broker again: a transaction may be committed or not."""
        if self._destination:
            self._destination.close()
        self._destination = self._form = None
        self._is_sure = False

    def _look(self) -> None:
        with self._turn:
            if self._paused():
                self._forget()
            else:
                self._send_what_there_is()

    def _send_what_there_is(self) -> None:
        """If it is time for it."""
        live, version = self._live()
        if self._destination is None:
            login = self._lake.settings.services().kafka("changelog")
            made = Destination(login, self.topic, self.table, self._lake_id)
            self.sent = made.open()
            self._destination = made
        at = self._lake.versions.position(version)
        if self._is_sure and self._has_sent(live.number, at):
            return
        if time.monotonic() >= self._rest_until:
            self._send(self._destination, version, live.number)

    def _send(self, destination: Destination, version: Version, release: int) -> None:
        began = time.monotonic()
        pin = self._lake.versions.pin(version, self._run)
        self._is_sure = self._is_sure or not self.sent or is_of_this_lake(self._lake.versions, self.sent)
        if self._is_sure and self._has_sent(release, pin.position):
            return  # a table over tables sends once all that it reads have come there
        self._refuse_back(pin, release)
        opened = self._lake.versions.opened(version)
        form = self._form_of(opened, pin)
        sent = self.sent if self.sent and self.sent.topic_id == destination.topic_id else None
        found = find_changes(
            self._lake.versions, sent, opened, pin, form,
            lambda: content_of(self._lake.spark, destination.kafka.login, self.topic),
        )  # fmt: skip
        new = Position(
            lake=self._lake_id, table=self.table, release=release, topic_id=destination.topic_id,
            key_id=form.key_id, pin=pin_json(pin), partitions=destination.partitions,
        )  # fmt: skip
        headers = {"release": str(release), "position": json.dumps(pin.position, sort_keys=True)}
        self._records = destination.send(_each(found.records), headers, new)
        self.sent, self._way, self._is_sure = new, found.way, True
        self._sent_at = format_moment(self._lake.clock())
        ended = time.monotonic()
        if found.way == TOUCHED:
            self._rest_until = ended + (ended - began)
        elif not is_stored(opened.definition):
            self._rest_until = ended + max(WHOLE_EVERY_S, 9 * (ended - began))
        self._journal.debug("sent", records=self._records, way=found.way, position=pin.position)

    def _has_sent(self, release: int, batches: Mapping[str, int]) -> bool:
        return self.sent is not None and (self.sent.release, self.sent.batches) == (release, batches)

    def _refuse_back(self, pin: Pin, release: int) -> None:
        """A reader that has seen a position, or a release, never sees an earlier one."""
        if self.sent and release < self.sent.release:
            raise BusyError(
                f"release {release} is before the one that the changelog of {self.table} has sent",
                f"release {self.sent.release} was sent already: the lake was restored to an earlier state",
                "restore the newer one, or stop the changelog and start one to another topic",
            )
        sent = self.sent.batches if self.sent else {}
        if behind := [topic for topic, batch in pin.position.items() if batch < sent.get(topic, 0)]:
            topic = behind[0]
            raise BusyError(
                f"{pin.version} is behind what its changelog has sent",
                f"it is at batch {pin.position[topic]} of {topic}, and batch {sent[topic]} was sent already",
                "nothing, if it catches up; if the lake was restored to an earlier state: restore the newer "
                "one, or stop the changelog and start one to another topic",
            )

    def _form_of(self, opened: Opened, pin: Pin) -> Form:
        name = opened.version.name
        if self._form is None or self._form[0] != name:
            definition = opened.definition
            rows = opened.view(pin).select(*definition.timeless).schema
            registry = Registry(self._lake.settings.services().registry())
            self._form = name, registered(registry, self.topic, self.table, definition.view_keys, rows)
        return self._form[1]


def _each(records: DataFrame) -> Iterator[Record]:
    for row in records.toLocalIterator(prefetchPartitions=True):
        yield bytes(row["key"]), None if row["value"] is None else bytes(row["value"])

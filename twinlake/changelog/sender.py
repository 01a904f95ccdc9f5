"""Sender: the one thread that sends a changelog, from position to position of whatever version is live.

All that has happened since the last transaction goes into the next one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from twinlake.base.errors import BusyError, TwinlakeError, first_lines
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.base.waiting import holding
from twinlake.changelog.destination import Destination
from twinlake.changelog.position import Position
from twinlake.changelog.source import Now, Source
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import STOP_S, TableWorker


class Sender(TableWorker):
    """What failed is tried again from what the position topic tells."""

    def __init__(self, lake: OpenLake, lake_id: str, table: str, source: Source) -> None:
        super().__init__(lake, table, "changelog", topic=source.target.shown)
        self.source = source
        self.sent: Position | None = None
        self._lake_id = lake_id
        self._turn = threading.Lock()
        """Held while something is sent."""
        self._destination: Destination | None = None
        self._is_sure = False  # that what was sent last is of this lake
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
            "topic": self.source.target.shown,
            "topics": list(self.source.target.topics),
            "sends": self.source.sends,
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
        self._destination = None
        self._is_sure = False
        self.source.forget()

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
            made = Destination(login, self.source.target, self.table, self._lake_id)
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
        opened = self._lake.versions.opened(version)
        self._is_sure = self._is_sure or not self.sent or self.source.is_known(self.sent, opened)
        if self._is_sure and self._has_sent(release, pin.position):
            return  # a table over tables sends once all that it reads have come there
        self._refuse_back(pin, release)
        now = Now(opened=opened, pin=pin, release=release, destination=destination)
        found = self.source.find(self.sent, now)
        self._records = destination.send(found.records, found.headers, found.position)
        self.sent, self._way, self._is_sure = found.position, found.way, True
        self._sent_at = format_moment(self._lake.clock())
        ended = time.monotonic()
        self._rest_until = ended + found.rest_s(ended - began)
        self._journal.debug("sent", records=self._records, way=found.way, position=pin.position)

    def _has_sent(self, release: int, batches: Mapping[str, int]) -> bool:
        if self.sent is None or self.source.is_asked(self.sent):
            return False
        return (self.sent.release, self.sent.batches) == (release, batches)

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

"""Reports: what the lake server says of versions that do not keep up, and for how long it has said nothing.

Nobody compares clocks, which may jump: a report is new when it is another than before, and how long there has
been none is counted by this process's own clock, which only goes on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.location import Location
from twinlake.lake.catalog.stalled import Report, Stalled, published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHHELD = "it does not keep up; who reads everything sees why, for an error may name values"
"""To others, why a table does not keep up."""
LOOK_S = 1.0
SILENT_S = 10.0
"""Without a new report for so long, which is three that are missing, readers are warned."""
STOP_S = 10.0
journal = structlog.get_logger(__name__)


class Reports:
    """A thread of its own looks every second: the one that follows the lake may be busy for longer."""

    def __init__(
        self, lake: Location, clock: Callable[[], float] = time.monotonic,
        heard: Callable[[Report], None] = lambda report: None,
    ) -> None:  # fmt: skip
        """`heard` is called with each new report."""
        self._lake, self._clock, self._heard = lake, clock, heard
        self._newest: Report | None = None
        self._stalled: dict[tuple[str, str], Stalled] = {}
        self._heard_at = clock()
        self._failed = ""
        self._looking = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(STOP_S)

    def stalled(self, versions: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
        """Of these (table, version), what readers should know of each that does not keep up."""
        known = self._stalled
        return [asdict(known[one]) for one in dict.fromkeys(versions) if one in known]

    def missing(self) -> dict[str, Any] | None:
        """For how many seconds there has been no report, when the last one was made, what that means; None
        while there are some."""
        if self._clock() - self._heard_at >= SILENT_S:
            self._try()  # it may have come since the last look
        seconds, newest = int(self._clock() - self._heard_at), self._newest
        if seconds < SILENT_S:
            return None
        why = f"the lake server has not reported for {seconds} s: which tables keep up is not known"
        return {"seconds": seconds, "last_report": newest.at if newest else None, "why": why}

    def look(self) -> None:
        with self._looking:
            found = published(self._lake)
            if found is not None and found != self._newest:
                self._stalled = {(one.table, one.version): one for one in found.stalled}
                self._newest, self._heard_at = found, self._clock()
                self._heard(found)

    def _run(self) -> None:
        self._try()
        while not self._ending.wait(LOOK_S):
            self._try()

    def _try(self) -> None:
        try:
            self.look()
            self._failed = ""
        except Exception as error:  # as good as no report
            if str(error) != self._failed:
                journal.exception("the lake server's report cannot be read; it is tried again")
            self._failed = str(error)


def show_report(spark: SparkSession, report: Report) -> None:
    """Has `information_schema.table_status` say what the report does."""
    jvm: Any = spark._jvm
    stalled = {(one.table, one.version): one.why for one in report.stalled}
    rows = [
        {**asdict(one), "stalled_because": stalled.get((one.table, one.version)), "reported_at": report.at,
         "position": json.dumps(one.position, sort_keys=True)}
        for one in report.tables
    ]  # fmt: skip
    jvm.twinlake.reading.InformationSchema.report(json.dumps(rows), WITHHELD)

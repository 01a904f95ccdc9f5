"""The SQL server's metrics: how statements end, how long they take, whether the lake is followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import SQL
from twinlake.metrics.events import Durations
from twinlake.metrics.scrape import Collector, Group, Scrape
from twinlake.reading import answer
from twinlake.reading.followed import Followed
from twinlake.reading.running import FLIGHT, HTTP

OK, ERROR, STOPPED, LEFT, BUSY, FAILED = "ok", "error", "stopped", "left", "busy", "failed"
OUTCOMES = (OK, ERROR, STOPPED, LEFT, BUSY, FAILED)
JDBC = {OK: "Finish", ERROR: "Error", STOPPED: "Timeout", LEFT: "Canceled"}
"""By outcome what Spark's Thrift server says of it; of the others it says nothing."""


@dataclass
class Statement:
    """One statement over HTTP or Flight SQL, from when it waits for its turn."""

    has_left: bool = False
    """Whether its client waits no more."""
    began: float | None = None

    def begins(self) -> None:
        """It has its turn."""
        self.began = time.monotonic()

    def outcome(self, error: BaseException | None) -> str:
        """How it has ended, with this error."""
        if isinstance(error, BusyError) and error.what == answer.STOPPED:
            return STOPPED
        if self.has_left:
            return LEFT
        if isinstance(error, BusyError):
            return BUSY
        if error is None:
            return OK
        return ERROR if isinstance(error, UsageError | NotFoundError) else FAILED


class Queries:
    """Statements over HTTP and Flight SQL: how many run, and how each has ended."""

    def __init__(self) -> None:
        self.seconds = Durations(catalogue.QUERY_TIME)
        self._lock = threading.Lock()
        self._ended = {(endpoint, outcome): 0 for endpoint in (HTTP, FLIGHT) for outcome in OUTCOMES}
        self._running = 0

    @contextmanager
    def one(self, endpoint: str = HTTP) -> Iterator[Statement]:
        """Inside, a statement waits for its turn and is computed."""
        with self._lock:
            self._running += 1
        statement, failed = Statement(), None
        try:
            yield statement
        except BaseException as error:
            failed = error
            raise
        finally:
            outcome = statement.outcome(failed)
            with self._lock:
                self._running -= 1
                self._ended[endpoint, outcome] += 1
            if outcome == OK and statement.began is not None:
                self.seconds.observe(time.monotonic() - statement.began)

    def add(self, scrape: Scrape) -> None:
        with self._lock:
            running, ended = self._running, dict(self._ended)
        scrape.add(catalogue.QUERIES_RUNNING, running)
        for (endpoint, outcome), count in ended.items():
            scrape.add(catalogue.QUERIES, count, endpoint=endpoint, outcome=outcome)


def collector(
    queries: Queries,
    followed: Callable[[], Followed],
    is_ready: Callable[[], bool],
    no_report: Callable[[], Mapping[str, Any] | None],
    jdbc: Any,
    more: Mapping[str, Group],
) -> Collector:
    """`no_report` is the reader's, `jdbc` the JVM's count of statements that have ended."""

    def following(scrape: Scrape) -> None:
        now, silent = followed(), no_report()
        scrape.add(catalogue.READY, is_ready())
        scrape.add(catalogue.RELEASE, now.release or 0)
        scrape.add(catalogue.FOLLOW_ERROR, now.error is not None)
        scrape.add(catalogue.LAKE_SILENT, silent["seconds"] if silent else 0)

    def over_jdbc(scrape: Scrape) -> None:
        for outcome, end in JDBC.items():
            scrape.add(catalogue.QUERIES, jdbc.count(end), endpoint="jdbc", outcome=outcome)

    groups = {**more, "queries": queries.add, "jdbc": over_jdbc, "following": following}
    return Collector(SQL, groups, [queries.seconds])

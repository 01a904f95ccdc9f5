"""Moments: makes the views that statements over JDBC wait for which ask AS OF a moment.

Java hands over what waits (`java/twinlake/reading/Moments.java`); a thread here takes it, so that no port has
to be opened for calls from there.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import TwinlakeError
from twinlake.reading.past_tables import PastTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_MS = 1_000
AT_ONCE = 4
"""To look for a moment may read logs."""
journal = structlog.get_logger(__name__)


class Moments:
    """Answers what Java asks, from `start` to `stop`."""

    def __init__(self, spark: SparkSession, past: PastTables) -> None:
        jvm: Any = spark._jvm
        self._java, self._past = jvm.twinlake.reading.Moments, past
        self._workers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="moment")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moments", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()
        self._workers.shutdown()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                asked = self._java.next(LOOK_MS)
            except Exception:  # the JVM has ended, or is about to
                journal.exception("statements AS OF a moment are not answered over JDBC; it is tried again")
                self._ending.wait(LOOK_MS / 1_000)
                continue
            if asked:
                self._workers.submit(self._answer, json.loads(asked))

    def _answer(self, asked: dict[str, Any]) -> None:
        try:
            self._java.made(asked["id"], self._past.schema(asked["as_of"], asked["sql"]))
        except TwinlakeError as error:
            self._java.failed(asked["id"], error.what, error.why or "", error.remedy or "correct the moment")
        except Exception as error:
            journal.exception("the views of a moment were not made", as_of=asked["as_of"])
            self._java.failed(asked["id"], str(error)[:300], "", "see `twinlake logs sql`")

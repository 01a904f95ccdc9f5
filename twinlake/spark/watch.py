"""Whether this process's own Spark still runs what it is given; where it does not, the process ends.

By itself nobody would notice: a Spark whose executor has ended lives on, and fails every job from then on.
A cluster's executors come and go, and are watched by `twinlake/server/executors.py`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import TwinlakeError
from twinlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 1.0
PROBE_LOOKS = 10
"""A task of its own after so many looks at which no other has ended: 8 ms of CPU."""
LATE_LOOKS = 30
"""Looks, not seconds: a machine that slept has given nobody the time."""
FAILURES = 3
SHOWN_S = 3.0
"""How long the process still says why before it ends."""
_EXECUTOR, _POOL = "executor", "org$apache$spark$executor$ExecutorSource$$threadPool"

journal = structlog.get_logger(__name__)


class SparkWatch:
    """Of one local driver, from `begin` on, in a thread of its own; `error` can be read at any time."""

    def __init__(
        self,
        spark: SparkSession,
        give_up: Callable[[TwinlakeError], None] = jvm.give_up,
        lost: Callable[[], str] = str,
    ) -> None:
        """`lost` says why its owner sees that Spark runs nothing any more, '' while it does."""
        self.error: TwinlakeError | None = None
        """Why this process is about to end."""
        self._give_up = give_up
        self._lost = lost
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spark watch", daemon=True)
        self._jsc: Any = spark.sparkContext._jsc
        self._threads = _task_threads(self._jsc)
        self._places = spark.sparkContext.defaultParallelism
        self._one_row: Any = self._jsc.parallelize([1], 1)
        self._task: Any = None
        self._completed = -1
        self._quiet = self._late = self._failed = 0

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """To be called before the session is stopped, which is no accident."""
        self._ending.set()
        self._thread.join()

    def look(self) -> str:
        """Why Spark runs nothing any more, '' while it does; to be called every LOOK_S."""
        if self._jsc.sc().isStopped():
            return "it has stopped by itself"
        if self._threads.isShutdown():
            return "its executor has ended, so every task is refused"
        if why := self._lost():
            return why
        if self._task is not None:
            return self._look_at_task()
        completed = self._threads.getCompletedTaskCount()
        self._quiet = self._quiet + 1 if completed == self._completed else 0
        self._completed = completed
        # with every place taken it would wait, or take the place of a reader's task
        if (self._failed or self._quiet >= PROBE_LOOKS) and self._has_place():
            self._task = self._one_row.countAsync()
        return ""

    def _look_at_task(self) -> str:
        from py4j.protocol import Py4JJavaError

        if not self._task.isDone():
            self._late = self._late + 1 if self._has_place() else 0
            return f"a task waits beside free places for {LATE_LOOKS} s" if self._late >= LATE_LOOKS else ""
        done, self._task, self._late, self._quiet = self._task, None, 0, 0
        try:
            done.get()
            self._failed = 0
        except Py4JJavaError as error:
            self._failed += 1
            if self._failed >= FAILURES:
                return f"{FAILURES} tasks of one row failed one after the other, the last with {_last(error)}"
        return ""

    def _has_place(self) -> bool:
        return bool(self._threads.getActiveCount() < self._places)

    def _watch(self) -> None:
        while not self._ending.wait(LOOK_S):
            try:
                why = self.look()
            except Exception:
                if not self._ending.is_set():  # a JVM that has ended ends this process, see jvm.py
                    journal.exception("Spark could not be looked at")
                continue
            if why and not self._ending.is_set():
                self.error = TwinlakeError(
                    "Spark runs nothing any more in this process", why,
                    "nothing: the process ends within seconds, and the supervisor starts it again",
                )  # fmt: skip
                self._ending.wait(SHOWN_S)
                self._give_up(self.error)
                return


def _task_threads(jsc: Any) -> Any:
    """The threads that run tasks, as Spark's own metrics see them."""
    from py4j.java_gateway import get_field

    return get_field(jsc.sc().env().metricsSystem().getSourcesByName(_EXECUTOR).apply(0), _POOL)


def _last(error: Any) -> str:
    said = str(error.java_exception.getCause() or error.java_exception.getMessage())
    return re.sub(r"\s+", " ", said)[:300]

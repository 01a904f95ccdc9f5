"""Spark progress: how far the Spark jobs of a job's step are, by their tasks; and their end on cancel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.job import Progress, Run
from twinlake.spark.session import cancel

if TYPE_CHECKING:
    from pyspark import SparkContext

    from twinlake.server.executors import Executors

LOOK_S = 1.0

journal = structlog.get_logger(__name__)


class TaskShare:
    """The share of the tasks under a tag that are done, of the Spark jobs that began with the step or later.

    0 while none of them runs: the next one may be the long one. A Spark job that the status store does not
    list any more (it keeps the last ones only) has ended.
    """

    def __init__(self, context: SparkContext, tag: str) -> None:
        jvm_context: Any = context._jsc
        self._tracker = jvm_context.sc().statusTracker()
        self._tag = tag
        self._step: Progress | None = None
        self._known: dict[int, tuple[int, int]] = {}
        """By Spark job: tasks that are done, tasks."""
        self._earlier: set[int] = set()

    def of(self, step: Progress | None) -> float:
        """0 to 1, while `step` is under way."""
        if step is not self._step:
            self._step, self._earlier = step, set(self._known)
        counts = {job: self._tasks(job) for job in self._tracker.getJobIdsForTag(self._tag)}
        self._known = {job: (tasks, tasks) for job, (_, tasks) in self._known.items()} | counts
        if all(done == tasks for done, tasks in counts.values()):
            return 0.0
        counted = [tasks for job, tasks in self._known.items() if job not in self._earlier]
        total = sum(tasks for _, tasks in counted)
        return sum(done for done, _ in counted) / total if total else 0.0

    def _tasks(self, job: int) -> tuple[int, int]:
        found = self._tracker.getJobInfo(job)
        if found.isEmpty():
            return self._known.get(job, (0, 0))
        stages = [self._tracker.getStageInfo(stage) for stage in found.get().stageIds()]
        known = [stage.get() for stage in stages if stage.isDefined()]
        total = sum(stage.numTasks() for stage in known)
        if found.get().status().name() == "RUNNING":
            return sum(stage.numCompletedTasks() for stage in known), total
        return total, total  # of stages whose result was there already no task ever ran


@contextmanager
def watched(context: SparkContext, run: Run, executors: Executors | None = None) -> Iterator[None]:
    """What this thread asks Spark for carries the run's tag: its tasks are counted, and end on cancel.

    Cancelled again and again: between two Spark jobs there is none to cancel. A job whose tasks wait for
    executors says so.
    """
    share, ended = TaskShare(context, run.tag), threading.Event()

    def watch() -> None:
        reported: str | None = None
        while not ended.wait(LOOK_S):
            try:
                if run.cancelled.is_set():
                    cancel(context, run.tag)
                    continue
                run.share(share.of)
                if (now := executors.lacking() if executors else None) != reported:
                    reported = now
                    run.waits(now)
            except Exception:  # progress is not worth a cancel that nobody repeats
                journal.exception("the Spark jobs of the job could not be looked at", job=run.id)

    context.addJobTag(run.tag)
    watcher = threading.Thread(target=watch, name=f"watch {run.tag}", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        context.removeJobTag(run.tag)
        watcher.join()

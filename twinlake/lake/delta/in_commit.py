"""The breakpoints inside one of Delta's commits, which Delta itself tells an observer about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point

OBSERVER = "org.apache.spark.sql.delta.TransactionExecutionObserver"


def in_commit(spark: Any, after_files: Point, before_commit: Point) -> AbstractContextManager[None]:
    """Around one write of this thread's session through Delta: the points are when its data files are
    written, and right before its commit file is.
    """
    return _observed(spark, after_files, before_commit) if breakpoints.honoured() else nullcontext()


@contextmanager
def _observed(spark: Any, after_files: Point, before_commit: Point) -> Iterator[None]:
    """Delta tells the observer of a thread about the phases of its commits."""
    jvm: Any = spark._jvm
    observers = getattr(getattr(jvm, f"{OBSERVER}$"), "MODULE$")
    observers.setObserver(_Observer(after_files, before_commit))
    try:
        yield
    finally:
        observers.threadObserver().remove()


class _Observer:
    """Delta's interface, called from the JVM in the thread that writes."""

    def __init__(self, after_files: Point, before_commit: Point) -> None:
        self._after_files, self._before_commit = after_files, before_commit

    def startingTransaction(self, begin: Any) -> Any:
        return begin.apply()

    def preparingCommit(self, prepare: Any) -> Any:
        breakpoints.at(self._after_files)
        return prepare.apply()

    def beginDoCommit(self) -> None:
        breakpoints.at(self._before_commit)

    def createChild(self) -> _Observer:
        return self

    def beginBackfill(self) -> None: ...

    def beginPostCommit(self) -> None: ...

    def transactionCommitted(self) -> None: ...

    def transactionAborted(self) -> None: ...

    def advanceToNextThreadObserver(self) -> None: ...

    class Java:
        implements = (OBSERVER,)

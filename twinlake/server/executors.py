"""Executors of the lake server's driver, when they are elsewhere: of one lake and one program, or missed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import TimedOutError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.config.sections import Spark

FIRST_WAIT_S = 120.0
"""A cluster may have to start a machine. Less than `up` waits for the lake server (`start_seconds`): what is
lacking is said by who knows it."""
MISSED_S = 20.0
"""Without any executor for so long somebody has to look."""
REFUSED_S = 120.0
"""A worker whose executor was refused starts another one: seconds later, or a minute."""
TASKS_PER_CORE = 2
"""Tasks of a shuffle: more than one a core, so that the slowest is waited for less."""
_SHUFFLE, _COMES_AND_GOES = "spark.sql.shuffle.partitions", "spark.dynamicAllocation.enabled"

journal = structlog.get_logger(__name__)


class Executors:
    """Those of one driver. `begin` waits for them; `look` is to be called all the time, `status` at any."""

    def __init__(self, spark: SparkSession, given: Spark) -> None:
        self._spark, self._given = spark, given
        java: Any = spark._jvm
        self._jsc: Any = spark.sparkContext._jsc
        self._programs, self._admission = java.twinlake.lake.Programs, java.twinlake.lake.Admission
        self._count = self._cores = 0
        self._spread_over = 1  # a shuffle has two tasks at least
        self._missed_since: float | None = None
        self._refusal: TwinlakeError | None = None

    def begin(self) -> None:
        """Return when there are some. Each looks for itself, before its first task, whether it runs the
        driver's programs and sees its lake: `java/twinlake/lake/Admission`.

        UnreachableError where none comes, UsageError for those of other jars, another Spark or another lake.
        """
        if self._given.conf.get(_COMES_AND_GOES, "") != "true":
            try:
                wait_for("executors", self._admitted, FIRST_WAIT_S)
            except TimedOutError as error:
                raise self._none(f"none came within {FIRST_WAIT_S:g} s") from error
        self._there()
        journal.info("executors run", master=self._given.master, executors=self._count, cores=self._cores)

    def look(self) -> None:
        """Count them. A driver that its cluster has ended ends here: a new one is started in its place."""
        if self._jsc.sc().isStopped():
            journal.critical(
                "Spark has ended the driver", why=f"{self._given.master} has removed it",
                remedy="the lake server is started again; the log of the Spark master tells why",
            )  # fmt: skip
            self._spark.sparkContext._gateway.proc.kill()  # this process ends with it
            return
        refused = self._admission.refused() and self._admission.refusedBefore() < REFUSED_S
        self._refusal = self._refused() if refused else None
        if self._there():
            self._missed_since = None
        elif self._missed_since is None:
            self._missed_since = time.monotonic()

    def lacking(self) -> str | None:
        """What tasks of jobs wait for; None while there are executors."""
        return None if self._missed_since is None else f"executors of {self._given.master}"

    def status(self) -> dict[str, Any]:
        """What `twinlake status` shows."""
        found: dict[str, Any] = {
            "master": self._given.master, "executors": self._count, "cores": self._cores, "error": None
        }  # fmt: skip
        missed = self._missed_since
        if missed is not None and (lasted := time.monotonic() - missed) > MISSED_S:
            found["error"] = self._none(f"there has been none for {lasted:.0f} s").to_json()
        elif self._refusal:
            found["error"] = self._refusal.to_json()
        return found

    def _admitted(self) -> bool | None:
        """Whether one was let in; UsageError where none was, and one was refused."""
        if self._admission.admitted():
            return True
        if self._admission.refused() or self._jsc.sc().isStopped():
            raise self._refused()
        return None

    def _there(self) -> bool:
        self._count, self._cores = self._programs.executors(self._jsc.sc())
        if _SHUFFLE not in self._given.conf and self._cores > self._spread_over:
            self._spread_over = self._cores
            self._spark.conf.set(_SHUFFLE, str(TASKS_PER_CORE * self._cores))
        return self._count > 0

    def _none(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"no executor of {self._given.master} works for the lake server",
            f"{why}; small batches go on in the lake server itself, what is larger waits",
            "start workers, or look in the Spark master for what holds their cores and memory "
            "(`spark.cores.max`, `spark.executor.memory` in [spark] conf)",
        )  # fmt: skip

    def _refused(self) -> TwinlakeError:
        return UsageError(
            f"executors of {self._given.master} do not run the lake server's programs on its lake",
            _short(self._admission.refused()),
            "workers need the same Spark, the lake at the same place, and on a disk the same user; the jars "
            'come from the lake server, unless "spark.executor.extraClassPath" in [spark] conf names others',
        )  # fmt: skip


def _short(reason: str) -> str:
    """What an executor said of itself when it could not begin."""
    return re.sub(r"\s+", " ", re.sub(r"^.*?Unable to create executor due to ", "", reason))[:400]

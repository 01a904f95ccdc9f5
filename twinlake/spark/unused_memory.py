"""Memory that heavy work needed goes back to the machine once it is over.

By itself neither Java's heap nor `malloc` gives it back. Giving back takes a full collection, which stops the
process (0.4 s for 0.5 GB alive): so it is done after minutes with little to do, and where memory has grown.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import structlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 10.0
QUIET_S = 120.0
"""Seconds below QUIET_CORES before memory is given back. A job that waits for executors or for the witness
looks quiet too; it then waits for one collection."""
QUIET_CORES = 0.5
"""A stream of thousands of records a second takes less, a job that computes here takes more."""
GROWN_BYTES = 256 * 2**20
"""Growth, since memory was least, that makes it worthwhile."""
AGAIN_S = 300.0
"""Between two times: what grows again and again is not collected over and over."""

journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a process and its JVM use: seconds of CPU since they started, bytes without mapped files."""

    cpu_s: float
    resident: int


class UnusedMemory:
    """When to give it back. `use` says what is used now; `give_back` does it."""

    def __init__(self, use: Callable[[], Use], give_back: Callable[[], None]) -> None:
        self._use, self._give_back = use, give_back
        now = use()
        self._cpu_s, self._least = now.cpu_s, now.resident
        self._quiet_s, self._since_s = 0.0, AGAIN_S

    def look(self, seconds: float) -> None:
        """To be called again and again; so many seconds have passed since the last time."""
        now = self._use()
        is_quiet = now.cpu_s - self._cpu_s < QUIET_CORES * seconds
        self._quiet_s = self._quiet_s + seconds if is_quiet else 0.0
        self._since_s += seconds
        self._cpu_s, self._least = now.cpu_s, min(self._least, now.resident)
        has_grown = now.resident >= self._least + GROWN_BYTES
        if has_grown and self._quiet_s >= QUIET_S and self._since_s >= AGAIN_S:
            self._since_s = 0.0  # where it fails, the next try is not made at once
            self._give_back()
            self._least = self._use().resident
            journal.info(
                "unused memory was given back", megabytes_before=now.resident // 2**20,
                megabytes_after=self._least // 2**20,
            )  # fmt: skip


def begin(spark: SparkSession) -> None:
    """From here on, in a thread of its own, until this process ends."""
    context: Any = spark.sparkContext
    both = (psutil.Process(), psutil.Process(context._gateway.proc.pid))
    memory = UnusedMemory(lambda: used(both), lambda: give_back(context._jvm))
    threading.Thread(target=_watch, args=(memory,), name="unused memory", daemon=True).start()


def used(processes: tuple[psutil.Process, ...]) -> Use:
    """The sum over these processes."""
    times = [one.cpu_times() for one in processes]
    memory = [one.memory_info() for one in processes]
    return Use(
        cpu_s=sum(one.user + one.system for one in times),
        resident=sum(one.rss - one.shared for one in memory),
    )


def give_back(jvm: Any) -> None:
    """Gives back what Arrow's pool, `malloc` and Java's old generation have free; the JVM stops meanwhile."""
    if pa := sys.modules.get("pyarrow"):
        pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # glibc's alone
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    jvm.twinlake.lake.UnusedMemory.giveBack()


def _watch(memory: UnusedMemory) -> None:
    looked = time.monotonic()
    while True:
        time.sleep(LOOK_S)
        now = time.monotonic()
        try:
            memory.look(now - looked)
        except Exception:
            journal.exception("unused memory was not given back; the next try follows")
        looked = now

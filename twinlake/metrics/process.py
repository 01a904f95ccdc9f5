"""What every process says of itself: memory of its Python and JVM, disks, since when it runs; and what the
supervisor knows of all of them, by the records that it keeps on disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from twinlake.base.version import VERSION
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import Process
from twinlake.metrics.scrape import Group, Scrape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ProcessMetrics:
    """`spark` gives the process's session, None before it is there; `folders` are on this machine's disks,
    by the name that the metrics call them."""

    def __init__(
        self, name: Process, spark: Callable[[], SparkSession | None], folders: Mapping[str, Path]
    ) -> None:
        self._name, self._spark, self._folders = name, spark, dict(folders)
        self._python = psutil.Process(os.getpid())
        self._started = self._python.create_time()
        self._java: tuple[SparkSession, Any, psutil.Process | None] | None = None

    def groups(self) -> dict[str, Group]:
        return {"process": self._process, "jvm": self._jvm, "disk": self._disk}

    def _process(self, scrape: Scrape) -> None:
        scrape.add(catalogue.BUILD, 1, process=self._name, version=VERSION)
        scrape.add(catalogue.STARTED, self._started)
        scrape.add(catalogue.PYTHON_MEMORY, self._python.memory_info().rss)

    def _jvm(self, scrape: Scrape) -> None:
        if (spark := self._spark()) is None:
            return
        if self._java is None or self._java[0] is not spark:
            self._java = spark, _memory_of(spark), _process_of(spark)
        _, memory, process = self._java
        if process:
            scrape.add(catalogue.JVM_MEMORY, process.memory_info().rss)
        heap = memory.getHeapMemoryUsage()
        scrape.add(catalogue.HEAP_USED, heap.getUsed())
        scrape.add(catalogue.HEAP_MAX, heap.getMax())

    def _disk(self, scrape: Scrape) -> None:
        for name, folder in self._folders.items():
            usage = shutil.disk_usage(folder)
            scrape.add(catalogue.DISK_FREE, usage.free, folder=name)
            scrape.add(catalogue.DISK_SIZE, usage.total, folder=name)


def _memory_of(spark: SparkSession) -> Any:
    """The JVM's MemoryMXBean: one object, asked by one call each time."""
    jvm: Any = spark._jvm
    return jvm.java.lang.management.ManagementFactory.getMemoryMXBean()


def _process_of(spark: SparkSession) -> psutil.Process | None:
    """None where the JVM was not started by this process."""
    gateway: Any = spark.sparkContext._gateway
    started = getattr(gateway, "proc", None)
    return psutil.Process(started.pid) if started else None


def supervised(records: Path) -> Group:
    """Restarts of each process; nothing where services run in containers, of which there are no records."""

    def add(scrape: Scrape) -> None:
        for file in sorted(records.glob("*.json")):
            if (found := _read(file)) is None:
                continue
            scrape.add(catalogue.SERVICE_READY, found.get("state") == "ready", service=file.stem)
            scrape.add(catalogue.SERVICE_RESTARTS, int(found.get("restarts", 0)), service=file.stem)

    return add


def _read(file: Path) -> dict[str, Any] | None:
    """None for one that was removed meanwhile, or is torn."""
    try:
        found = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None

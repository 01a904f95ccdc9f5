"""The lake server in time lapse: what it does or keeps for hours and days is done and kept as much shorter.

Its clock is the real one, so that files, commits and moments agree; counts that bound ledgers shrink as well.
Beside it a thread tells, whenever a file asks, what the JVM's heap holds after a collection.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from pyspark import SparkContext

from twinlake.batch import due, maintain
from twinlake.batch.maintain import vacuum
from twinlake.lake.catalog import certificates, maintained_version, runs, topic_certificates
from twinlake.lake.delta import checkpoints, ledger
from twinlake.lake.log import log
from twinlake.server.__main__ import main

DAY_S = 24 * 3600.0


def lapse(day_s: float) -> None:
    """Make a day so short. Every ten commits are a checkpoint instead of every hundred.

    Files that were replaced go at once, so that the test has the clean-up run while nothing else does.
    """
    short = day_s / DAY_S
    maintain.KEEP_COMMITS_S *= short  # type: ignore[assignment]
    maintain.SLACK_S = 1.0  # the clean-up is a job that runs itself
    maintain.vacuum = lambda spark, path, keep_hours: vacuum(spark, path, 0)  # it knows whole hours only
    ledger.KEEP_FILES_HOURS, ledger.KEEP_COMMITS = 0, f"interval {day_s:.0f} seconds"
    due.WHOLE_EVERY = timedelta(seconds=day_s)
    ledger.COMPACT_ABOVE_FILES, certificates.KEEP, topic_certificates.KEEP, runs.KEEP_ENDED = 20, 20, 20, 20
    checkpoints.EVERY_COMMITS = 10
    for properties in (log.PROPERTIES, maintained_version.PROPERTIES):
        properties["delta.checkpointInterval"] = "10"


def tell(asked: Path) -> None:
    """Answer each time that the file is there; it is gone when the answer stands beside it."""
    while True:
        time.sleep(0.2)
        context = SparkContext._active_spark_context
        if context is None or context._jvm is None or not asked.exists():
            continue
        gc.collect()  # what Python has not given back yet keeps plans in the JVM, 100 MB of them or none
        jvm = context._jvm.java.lang
        for _ in range(3):  # references that a first collection frees hold more
            jvm.System.gc()
            time.sleep(0.5)
        runtime = jvm.Runtime.getRuntime()
        used = runtime.totalMemory() - runtime.freeMemory()
        threads = jvm.management.ManagementFactory.getThreadMXBean().getThreadCount()
        told = {"heap_mb": used / 2**20, "jvm_threads": threads, "python_threads": threading.active_count()}
        asked.with_suffix(".told").write_text(json.dumps(told))
        asked.unlink()


if __name__ == "__main__":
    day, asked, *rest = sys.argv[1:]
    lapse(float(day))
    threading.Thread(target=tell, args=(Path(asked),), daemon=True).start()
    sys.exit(main(rest))

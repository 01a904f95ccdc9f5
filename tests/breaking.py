"""Breaks the Spark of a server that runs: `python -m tests.breaking FILE MODULE ARGUMENT...`.

It is `python -m MODULE ARGUMENT...` until FILE appears, which names the way its driver is to be broken.
"""

from __future__ import annotations

import runpy
import sys
import threading
from pathlib import Path
from typing import Any

from twinlake.base.waiting import wait_for


def broken(way: str) -> None:
    """Breaks the one driver of this process as a bug of Spark's, or a stranger at its ports, would."""
    from pyspark import SparkContext

    spark: Any = SparkContext._active_spark_context
    java, context = spark._jvm, spark._jsc.sc()
    backend = context.schedulerBackend()
    field = backend.getClass().getDeclaredField("localEndpoint")
    field.setAccessible(True)
    executor = field.get(backend)
    if way == "the executor ends":
        message = getattr(getattr(java.org.apache.spark.scheduler.local, "StopExecutor$"), "MODULE$")
        executor.ask(message, java.scala.reflect.ClassTag.Any())
    elif way == "nothing is handed out":
        context.dagScheduler().eventProcessLoop().stop()
    elif way == "every task fails":
        context.env().blockManager().stop()
    elif way == "Spark stops":
        context.stop()


def _watch(file: Path) -> None:
    wait_for("to be broken", lambda: True if file.exists() else None, None, every_s=0.2)
    broken(file.read_text())


if __name__ == "__main__":
    threading.Thread(target=_watch, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

"""The lake server's process: `python -m twinlake.server --home HOME --port PORT`.

The token comes from HOME/services.json (mode 600); the log goes to stderr, one JSON object a line. An error
that keeps it from starting is reported in plain words at the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from twinlake.base import breakpoints, service_log
from twinlake.base.errors import TwinlakeError
from twinlake.base.files import replace_file
from twinlake.base.http_errors import Protocol
from twinlake.base.times import utc_now
from twinlake.config.library import jars_folder
from twinlake.config.project import project_at
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides
from twinlake.lake.storage.fit import check_store
from twinlake.metrics.catalogue import LAKE
from twinlake.metrics.options import add_options, start_metrics
from twinlake.metrics.process import ProcessMetrics, supervised
from twinlake.metrics.scrape import Collector
from twinlake.server import lock
from twinlake.server.api import build_app
from twinlake.server.lake_server import LakeServer
from twinlake.server.tokens import Tokens
from twinlake.spark.cluster import check_master
from twinlake.spark.jvm import end_together
from twinlake.spark.session import drop_scratch, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION = "twinlake-lake"
# The stream's small tasks go first when a rebuild or a build fills the cores.
POOLS = """<?xml version="1.0"?>
<allocations>
  <pool name="default"><schedulingMode>FIFO</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="speed"><schedulingMode>FAIR</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="batch"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""


def serve(settings: Settings, given: argparse.Namespace) -> int:
    """Run until SIGTERM. /health and /metrics answer at once and say when the server is ready."""
    check_store(settings.lake, utc_now())
    held = lock.take(settings.lake)
    sessions: list[SparkSession] = []

    def opened(settings: Settings) -> SparkSession:
        spark = lake_session(settings)
        sessions.append(spark)
        if not settings.values.spark.is_external:
            server.watch(spark)
        return spark

    server = LakeServer(settings, utc_now, opened)
    metrics = start_metrics(given, metrics_of(server, settings, lambda: next(iter(sessions), None)))
    app = build_app(server, Tokens(settings.services_file))
    web = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=given.port, log_level="warning", log_config=None, access_log=False,
            http=Protocol,
        )
    )
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            server.start()
        except BaseException as error:
            failed.append(error)
            web.should_exit = True

    def ending(number: int, frame: FrameType | None) -> None:
        """uvicorn raises the signal again when it has ended: without this the process dies before `stop`."""
        web.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ending)
    threading.Thread(target=begin, name="start", daemon=True).start()
    web.run()
    server.stop()
    metrics.stop()
    for spark in sessions:
        spark.stop()
    held.close()
    if failed:
        raise failed[0]
    return 0


def metrics_of(
    server: LakeServer, settings: Settings, spark: Callable[[], SparkSession | None]
) -> Collector:
    """All metrics of the lake server's process."""
    folders = {"data": settings.home, **({"lake": settings.lake} if isinstance(settings.lake, Path) else {})}
    process = ProcessMetrics(LAKE, spark, folders)
    return server.metrics({**process.groups(), "services": supervised(settings.records_dir)})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m twinlake.server", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--project", type=Path, help="the project; the nearest one upward unless given")
    parser.add_argument("--jars", type=Path, default=jars_folder({}), help="the folder of the jars")
    parser.add_argument("--settings", type=Path, help="the active twinlake.toml; HOME's own unless given")
    parser.add_argument("--breakpoints", type=Path, help="for tests: see twinlake/base/breakpoints.py")
    add_options(parser)
    given = parser.parse_args(arguments)
    if given.breakpoints:
        breakpoints.honour(given.breakpoints)
    service_log.start()
    os.environ["TZ"] = "UTC"  # PySpark collects timestamps in the process's zone
    time.tzset()
    try:
        settings = Settings(
            home=given.home, in_project=project_at(given.project), jars=given.jars,
            overrides=overrides(os.environ), active_file=given.settings,
        )  # fmt: skip
        return serve(settings, given)
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def lake_session(settings: Settings) -> SparkSession:
    """The lake server's Spark driver, ending with its JVM; the stream's small tasks go before a job's."""
    check_master(settings.values)
    pools = settings.run_dir / "pools.xml"
    replace_file(pools, POOLS)
    drop_scratch(settings, SESSION)
    turns, given = {"spark.scheduler.allocation.file": pools.as_uri()}, settings.values.spark
    spark = session(settings, SESSION, more=turns, given=given)
    end_together(spark.sparkContext._gateway.proc)
    return spark


if __name__ == "__main__":
    sys.exit(main())

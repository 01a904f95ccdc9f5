"""The lake server over HTTP, from its start until somebody ends it."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from twinlake.base.http_errors import Protocol
from twinlake.base.times import utc_now
from twinlake.config.settings import Settings
from twinlake.metrics.catalogue import LAKE
from twinlake.metrics.options import start_metrics
from twinlake.metrics.process import ProcessMetrics, supervised
from twinlake.metrics.scrape import Collector
from twinlake.server.api import build_app
from twinlake.server.driver import Driver
from twinlake.server.lake_server import LakeServer
from twinlake.server.tokens import Tokens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def serve(settings: Settings, given: argparse.Namespace, driver: Driver) -> BaseException | None:
    """Run until SIGTERM. /health and /metrics answer at once and say when the server is ready. Returns what
    has kept it from starting; nothing is written any more by then."""

    def opened(settings: Settings) -> SparkSession:
        spark = driver.session()
        if not settings.values.spark.is_external:
            server.watch(spark)
        return spark

    server = LakeServer(settings, utc_now, opened)
    metrics = start_metrics(given, metrics_of(server, settings, lambda: driver.known))
    app = build_app(server, Tokens(settings.services_file))
    web = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=given.port,
            log_level="warning",
            log_config=None,
            access_log=False,
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
    driver.stop()
    return failed[0] if failed else None


def metrics_of(server: LakeServer, settings: Settings, spark: Callable[[], SparkSession | None]) -> Collector:
    """All metrics of the lake server's process."""
    folders = {"data": settings.home, **({"lake": settings.lake} if isinstance(settings.lake, Path) else {})}
    process = ProcessMetrics(LAKE, spark, folders)
    return server.metrics({**process.groups(), "services": supervised(settings.records_dir)})

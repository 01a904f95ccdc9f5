"""The SQL server: the analysts' door. Spark with JDBC and a small HTTP endpoint over the served views.

A process of its own that never writes the lake and holds no secret:
`python -m jobs.reading.sql_server --home HOME --port P --jdbc-port J --scratch DIR`.
Only the scratch folder needs to be writable.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from jobs import service_log
from jobs import spark as spark_edge
from jobs.settings import PROJECT, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
MEMORY = "1500m"
CORES = 2
JAVA_FUNCTIONS = ("java_method", "reflect", "try_reflect")
"""SQL functions that call any Java method; readers do not get them."""

journal = structlog.get_logger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Runs until it is told to end."""
    given = _parse(arguments)
    service_log.start()
    # a reader's typing mistake, with stack
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ["TZ"] = "UTC"
    time.tzset()
    settings = Settings(home=given.home.absolute(), project=given.project.absolute())
    spark = session(settings, given.scratch.absolute(), given.jdbc_port)
    close_java(spark)
    from jobs.reading.follower import Followed, Follower
    from jobs.reading.query import Reader, build_app

    follower = Follower(spark, settings.lake, settings.project)
    follower.start()
    open_jdbc(spark)
    journal.info("JDBC is open", host=HOST, port=given.jdbc_port)

    def followed() -> Followed:
        return follower.followed

    _serve(build_app(Reader(spark, followed), followed, settings.lake), given.port)
    follower.stop()
    return 0


def session(settings: Settings, scratch: Path, jdbc_port: int) -> SparkSession:
    """A small session whose every file is below `scratch`."""
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    more = {
        "spark.driver.extraJavaOptions": f"{spark_edge.java_options()} -Djava.io.tmpdir={temporary} "
        f"-Dderby.system.home={temporary} -Duser.timezone=UTC",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # JDBC: loopback only; these are read from Hadoop's configuration when the server starts
        "spark.hadoop.hive.server2.thrift.bind.host": HOST,
        "spark.hadoop.hive.server2.thrift.port": str(jdbc_port),
        "spark.hadoop.hive.server2.logging.operation.enabled": "false",
        "spark.hadoop.hive.exec.scratchdir": str(scratch / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(scratch / "hive-local"),
        "spark.hadoop.hive.downloaded.resources.dir": str(scratch / "hive-resources"),
        # a reader cannot take the driver down by asking for too much at once
        "spark.driver.maxResultSize": "512m",
        "spark.sql.thriftServer.incrementalCollect": "true",
        "spark.sql.thriftserver.ui.retainedSessions": "20",
        "spark.sql.thriftserver.ui.retainedStatements": "20",
    }
    own = Settings(home=scratch, project=settings.project)
    return spark_edge.session(own, "twinlake-sql", memory=MEMORY, cores=CORES, more=more)


def close_java(spark: SparkSession) -> None:
    """Take the functions that run Java out of the registry from which every session copies."""
    jvm: Any = spark._jvm
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    mine = spark._jsparkSession.sessionState().functionRegistry()
    for name in JAVA_FUNCTIONS:
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
        builtin.dropFunction(identifier)
        mine.dropFunction(identifier)


def open_jdbc(spark: SparkSession) -> None:
    """Thrift/JDBC on the same catalog; ends with the process."""
    jvm: Any = spark._jvm
    server = getattr(getattr(jvm.org.apache.spark.sql.hive.thriftserver, "HiveThriftServer2$"), "MODULE$")
    server.startWithSparkSession(spark._jsparkSession, False)


def _serve(app: Any, port: int) -> None:
    import uvicorn

    config = uvicorn.Config(app, host=HOST, port=port, log_level="warning", log_config=None, access_log=False)
    uvicorn.Server(config).run()


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jobs.reading.sql_server", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the state folder; only its lake is read")
    parser.add_argument("--port", type=int, required=True, help="loopback port of the HTTP endpoint")
    parser.add_argument("--jdbc-port", type=int, required=True, help="loopback port of JDBC")
    parser.add_argument("--scratch", type=Path, required=True, help="writable folder for temporary files")
    parser.add_argument("--project", type=Path, default=PROJECT, help="where contracts, schemas and jars are")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main())

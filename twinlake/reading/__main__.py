"""The SQL server: the analysts' endpoints. Spark with JDBC, Arrow Flight SQL and HTTP over the served views.

A process of its own that never writes the lake and holds no secret:
`python -m twinlake.reading --home HOME --port P --jdbc-port J --flight-port F --scratch DIR
--password-file FILE`.
Only the scratch folder needs to be writable. What a statement may do is `java/twinlake/reading/ReadOnly`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base import quote, service_log
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.http_errors import Protocol
from twinlake.config import users
from twinlake.config.library import jars_folder
from twinlake.config.sections import Lake, Limits
from twinlake.config.settings import Settings
from twinlake.config.values import Values
from twinlake.metrics.catalogue import SQL
from twinlake.metrics.options import add_options, start_metrics
from twinlake.metrics.process import ProcessMetrics
from twinlake.reading.tls_door import HTTP2, Certificate, TlsDoors
from twinlake.reading.views import SERVE
from twinlake.spark import session as spark_edge
from twinlake.spark import unused_memory
from twinlake.spark.jvm import end_together
from twinlake.spark.watch import SparkWatch

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession

    from twinlake.reading.flight.service import FlightServer
    from twinlake.reading.followed import Followed
    from twinlake.reading.look_ups import LookUps
    from twinlake.reading.reader import Reader

HOST = "127.0.0.1"
DEFAULT = Limits()
TURNS = """<allocations>
  <pool name="default"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>"""
"""Stages of no statement get free slots by turns, as the pools that statements are do (FairSlots)."""
WARM_S = 0.2
SLOTS = 10
"""Tasks at once, one for each turn over HTTP (`reading/turns.py`): FairSlots leaves a statement its last one,
so with fewer a short statement could wait until a task of a long one or of a large result has ended."""
LOST_S = 60
"""So long what was cancelled may hold them: `java/twinlake/reading/Loops` ends joins and explodes, but a
function over long arrays looks at nothing while it computes."""

journal = structlog.get_logger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Runs until it is stopped."""
    given = _parse(arguments)
    service_log.start()
    os.environ["TZ"] = "UTC"
    time.tzset()
    limits = Limits(
        sql_memory=given.memory, jdbc_seconds=given.jdbc_seconds, query_seconds=given.query_seconds,
        export_seconds=given.export_seconds, export_gigabytes=given.export_gigabytes,
    )  # fmt: skip
    values = Values(lake=Lake(uri=given.lake), limits=limits)
    settings = Settings(home=given.home.absolute(), jars=given.jars.absolute(), known_values=values)
    scratch, password_file = given.scratch.absolute(), given.password_file.absolute()
    spark = session(settings, scratch, given.jdbc_port, password_file, limits)
    end_together(spark.sparkContext._gateway.proc)
    unused_memory.begin(spark)
    try:
        restrict_others(spark)
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    slots = share_slots(spark)
    from twinlake.lake.catalog.audit_log import read_acts
    from twinlake.reading import metrics
    from twinlake.reading.admission import Admission
    from twinlake.reading.changes.feed import Feeds
    from twinlake.reading.changes.pins import Pins
    from twinlake.reading.changes.seen import Seen
    from twinlake.reading.export import GIGABYTE, Exports
    from twinlake.reading.flight.service import FlightServer, FlightService
    from twinlake.reading.followed import OneRelease
    from twinlake.reading.follower import Follower
    from twinlake.reading.look_ups import LookUps
    from twinlake.reading.moments import Moments
    from twinlake.reading.past_tables import PastTables
    from twinlake.reading.prepared import PreparedStatements
    from twinlake.reading.query import build_app
    from twinlake.reading.reader import Reader
    from twinlake.reading.reports import Reports, show_report
    from twinlake.reading.rights import RightsInForce
    from twinlake.reading.running import RunningStatements
    from twinlake.reading.turns import EXPORTS_AT_ONCE, LONG_AT_ONCE, Statements

    releases = OneRelease(spark)
    follower = Follower(spark, settings.lake, releases.switching)
    follower.start()
    reports = Reports(settings.lake, heard=lambda report: show_report(spark, report))
    reports.start()

    def followed() -> Followed:
        return follower.followed

    running = RunningStatements(know_running(spark), lambda: read_acts(settings.lake))
    rights = RightsInForce(spark, settings.lake, password_file, running.end_of)
    rights.start()
    jdbc = open_jdbc(spark)
    journal.info("JDBC is open", host=HOST, port=given.jdbc_port)
    admission = Admission(given.password_file)

    def admits(user: str, password: str) -> users.User | None:
        rights.look()
        try:
            return admission.admits(user, password)
        except UsageError as error:
            journal.error("nobody is let in", why=str(error))
            raise

    past = PastTables(spark, settings.lake)
    moments = Moments(spark, past)
    moments.start()
    reader = Reader(
        spark, settings.lake, followed, releases.of_last_statement, past, given.query_seconds,
        reports=reports, longest_export_s=given.export_seconds,
        exports=Exports(spark, given.export_gigabytes * GIGABYTE), prepared=PreparedStatements(spark),
    )  # fmt: skip

    def lost() -> str:
        if slots.lostMs() > LOST_S * 1_000:
            return f"every slot has been held for {LOST_S} s by a task whose statement has ended"
        for is_large, turns in ((False, LONG_AT_ONCE), (True, EXPORTS_AT_ONCE)):
            if reader.unending(LOST_S, is_large) >= turns:
                return f"{turns} statements go on {LOST_S} s after they were cancelled"
        return ""

    watch = SparkWatch(spark, lost=lost)
    watch.begin()
    look_ups = LookUps(spark, settings.lake, reader, followed, rights)
    seen = Seen(spark, reader, past, rights)
    feeds = Feeds(spark, Pins(spark, settings.lake), reader, seen, rights)
    threading.Thread(target=_warm, args=(reader, look_ups, followed), name="warm-up", daemon=True).start()
    queries, process = metrics.Queries(), ProcessMetrics(SQL, lambda: spark, {"scratch": scratch})

    def is_ready() -> bool:
        return followed().ready and not watch.error

    groups = {**process.groups(), "readers": feeds.readers.add}
    found = metrics.collector(queries, followed, is_ready, reader.no_report, jdbc, groups)
    served = start_metrics(given, found)
    statements = Statements(followed, queries, running)
    app = build_app(
        reader, followed, settings, admits, lambda: watch.error, queries, running, rights, look_ups,
        statements, given.name, feeds,
    )  # fmt: skip
    service = FlightService(reader, statements, running, admits, limits.query_seconds)
    doors = _doors(given)
    _serve(app, given.port, FlightServer(service, given.flight_port, limits.query_seconds))
    if doors:
        doors.close()
    served.stop()
    watch.stop()
    reports.stop()
    moments.stop()
    rights.stop()
    follower.stop()
    return 0


def session(
    settings: Settings, scratch: Path, jdbc_port: int, password_file: Path, limits: Limits = DEFAULT
) -> SparkSession:
    """A small session whose every file is below `scratch`, its readers restricted."""
    temporary = scratch / "tmp"
    rmtree(scratch / "local", ignore_errors=True)  # answers and shuffles of a process that was killed
    for folder in (temporary, scratch / "hive-local"):
        folder.mkdir(parents=True, exist_ok=True)
    (scratch / "scheduler.xml").write_text(TURNS)
    more = {
        "spark.sql.extensions": "twinlake.reading.SmallScans,"
        f"{spark_edge.MEASURED['spark.sql.extensions']},twinlake.reading.ReadOnly,"
        "twinlake.reading.ShownNames",
        # no ${env:NAME} in a statement, no loop that no one can cancel
        "spark.sql.variable.substitute": "false",
        "spark.sql.scripting.enabled": "false",
        "spark.driver.extraJavaOptions": f"{spark_edge.java_options(settings)} -Djava.io.tmpdir={temporary} "
        # a document or its schema names no file and no address
        "-Djavax.xml.accessExternalDTD= -Djavax.xml.accessExternalSchema= "
        f"-Dderby.system.home={temporary} -Duser.timezone=UTC "
        # Hive asks a configuration of its own, made of system properties, for the class
        "-Dhive.server2.custom.authentication.class=twinlake.reading.Passwords "
        f"-Dtwinlake.passwords={password_file}",
        "spark.local.dir": str(scratch / "local"),
        "spark.scheduler.allocation.file": str(scratch / "scheduler.xml"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # JDBC: loopback only; these are read from Hadoop's configuration when the server starts
        "spark.hadoop.hive.server2.thrift.bind.host": HOST,
        "spark.hadoop.hive.server2.thrift.port": str(jdbc_port),
        "spark.hadoop.hive.server2.authentication": "CUSTOM",
        "spark.hadoop.hive.server2.enable.doAs": "false",
        # who asks whether a statement has ended is answered by then: that a client has left is seen after it
        "spark.hadoop.hive.server2.long.polling.timeout": "1000ms",
        # closing a session looks for a metastore; there is none, ten attempts would take 20 s
        "spark.hadoop.hive.hmshandler.retry.attempts": "0",
        "spark.hadoop.hive.server2.logging.operation.enabled": "false",
        "spark.hadoop.hive.exec.scratchdir": str(scratch / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(scratch / "hive-local"),
        "spark.hadoop.hive.downloaded.resources.dir": str(scratch / "hive-resources"),
        # a reader cannot take the driver down by asking for too much at once
        "spark.driver.maxResultSize": "512m",
        # two fields of one name get numbers
        "spark.sql.execution.pandas.structHandlingMode": "row",
        # nor by wide rows: a task makes so many of them an Arrow batch in memory
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
        # rows that are computed while they are fetched cannot be cancelled: the client sends no second call
        "spark.sql.thriftServer.incrementalCollect": "false",
        "spark.sql.thriftServer.interruptOnCancel": "true",
        "spark.sql.thriftServer.queryTimeout": f"{limits.jdbc_seconds}s",
        "spark.sql.thriftserver.ui.retainedSessions": "20",
        "spark.sql.thriftserver.ui.retainedStatements": "20",
    }
    own = Settings(home=scratch, jars=settings.jars, known_values=settings.known_values)
    return spark_edge.session(own, "twinlake-sql", memory=limits.sql_memory, cores=SLOTS, more=more)


def restrict_others(spark: SparkSession) -> None:
    """From now on every session but this one only reads; TwinlakeError where the guards do not fit Spark."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    try:
        jvm.twinlake.reading.ReadOnly.restrictOthers(spark._jsparkSession)
    except Py4JJavaError as error:
        raise _not_guarded(error) from error


def _not_guarded(error: Py4JJavaError) -> TwinlakeError:
    cause: Any = error.java_exception
    while cause.getCause() is not None:  # of a class that could not be initialised
        cause = cause.getCause()
    return TwinlakeError(
        "the SQL server was not started, because its guards do not fit this Spark", str(cause.toString()),
        "install the versions of constraints.txt and twinlake/setup/jars.txt",
    )  # fmt: skip


def share_slots(spark: SparkSession) -> Any:
    """From now on a statement without a slot gets one from the statement that holds most. The FairSlots."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    return jvm.twinlake.reading.FairSlots.share(context.sc())


def know_running(spark: SparkSession) -> Any:
    """From now on it is known whose the tasks are. The RunningStatements."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    return jvm.twinlake.reading.RunningStatements.of(context.sc())


def open_jdbc(spark: SparkSession) -> Any:
    """Thrift/JDBC on the same catalog; ends with the process. The JdbcOutcomes."""
    jvm: Any = spark._jvm
    return jvm.twinlake.reading.JdbcServer.start(spark._jsparkSession)


def _warm(reader: Reader, look_ups: LookUps, followed: Callable[[], Followed]) -> None:
    """Every table is read once as soon as it is there: the first of all statements takes seconds. Views of
    logs are not: to find a first row in a quarantine or among what came late reads a whole log."""
    while followed().release is None:
        time.sleep(WARM_S)
    for name in followed().tables[SERVE]:
        with suppress(TwinlakeError):  # whoever reads one that fails gets its error
            reader.read(f"SELECT * FROM serve.{quote.name(name)}", 1, threading.Event())
            look_ups.prepare(name)


def _doors(given: argparse.Namespace) -> TlsDoors | None:
    """For clients on other machines, open; None where there are none."""
    if not given.listen:
        return None
    ports = {given.tls_port: given.port, given.jdbc_tls_port: given.jdbc_port}
    ports[given.flight_tls_port] = given.flight_port
    certificate = Certificate(chain=given.certificate, key=given.key)
    doors = TlsDoors(given.listen, ports, certificate, {given.flight_tls_port: HTTP2})
    doors.open()
    journal.info("clients on other machines may connect", host=given.listen, ports=[*ports])
    return doors


def _serve(app: Any, port: int, flight: FlightServer) -> None:
    import uvicorn

    config = uvicorn.Config(
        app, host=HOST, port=port, log_level="warning", log_config=None, access_log=False, http=Protocol
    )

    async def serve() -> None:
        await flight.start()
        try:
            await uvicorn.Server(config).serve()
        finally:
            await flight.stop()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as one:  # turns are those of one loop
        one.run(serve())


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m twinlake.reading", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the state folder; only its lake is read")
    parser.add_argument("--lake", default="", help="its URI, where it is not in the state folder")
    parser.add_argument("--port", type=int, required=True, help="loopback port of the HTTP endpoint")
    parser.add_argument("--jdbc-port", type=int, required=True, help="loopback port of JDBC")
    parser.add_argument("--flight-port", type=int, required=True, help="loopback port of Arrow Flight SQL")
    parser.add_argument("--scratch", type=Path, required=True, help="writable folder for temporary files")
    parser.add_argument("--password-file", type=Path, required=True, help="the users and hashes")
    parser.add_argument("--query-seconds", type=int, default=DEFAULT.query_seconds, help="longest, over HTTP")
    parser.add_argument("--jdbc-seconds", type=int, default=DEFAULT.jdbc_seconds, help="longest, over JDBC")
    parser.add_argument("--listen", default="", help="address for other machines, by TLS alone")
    parser.add_argument("--name", default="", help="what clients on other machines call it")
    parser.add_argument("--tls-port", type=int, help="port of the HTTP endpoint for them")
    parser.add_argument("--jdbc-tls-port", type=int, help="port of JDBC for them")
    parser.add_argument("--flight-tls-port", type=int, help="port of Arrow Flight SQL for them")
    parser.add_argument("--certificate", type=Path, help="PEM, the chain")
    parser.add_argument("--key", type=Path, help="PEM, its private key")
    parser.add_argument("--export-seconds", type=int, default=DEFAULT.export_seconds, help="of large results")
    parser.add_argument("--export-gigabytes", type=int, default=DEFAULT.export_gigabytes, help="on its disk")
    parser.add_argument("--memory", default=DEFAULT.sql_memory, help="its heap")
    parser.add_argument("--jars", type=Path, default=jars_folder({}), help="the folder of the jars")
    add_options(parser)
    given = parser.parse_args(arguments)
    ports = (given.tls_port, given.jdbc_tls_port, given.flight_tls_port)
    if given.listen and not all((given.name, *ports, given.certificate, given.key)):
        parser.error(
            "--listen needs --name, --tls-port, --jdbc-tls-port, --flight-tls-port, --certificate and --key"
        )
    return given


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main())

"""A SQL server of its own process over a lake written by the test's session: two versions, release 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pyspark.sql import SparkSession

from jobs.tables import latest_order, orders, sales_per_region
from tests import drivers
from tests.broker import free_port
from tests.project import OURS, PROJECT
from tests.reading.adbc import Adbc
from twinlake.base.passwords import hashed
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.kinds.kind import is_stored
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.metrics.options import words
from twinlake.topics.topic import load_topic

ALL, PAID = 2000, 1800
"""Orders in the log; those that are not cancelled."""
UP_S = 300
IDLE_S = 0.2
"""Of a processor in a second: what following the lake takes, and no statement."""
PASSWORD = "for-tests-only"
SCRAPER = ("metrics", "for-scrapes-only")


@dataclass
class SqlServer:
    """The process, started again as often as a test likes, at the same addresses."""

    home: Path
    scratch: Path
    port: int = 0
    jdbc_port: int = 0
    flight_port: int = 0
    metrics_port: int = 0
    more: tuple[str, ...] = ()
    """Further arguments."""
    program: tuple[str, ...] = ("-m", "twinlake.reading")
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def flight(self) -> str:
        return f"grpc://127.0.0.1:{self.flight_port}"

    @property
    def services(self) -> Services:
        return Services(sql_url=self.url, sql_user="analyst", sql_password=PASSWORD)

    def start(self) -> None:
        self.port, self.jdbc_port = self.port or free_port(), self.jdbc_port or free_port()
        self.metrics_port = self.metrics_port or free_port()
        self.flight_port = self.flight_port or free_port()
        self.scratch.mkdir(exist_ok=True)
        roles = dict.fromkeys(("analyst", "ben", "ben@elsewhere"), "analyst") | {"olga": "operator"}
        lines = [f"{hashed(name, PASSWORD).strip()}:{role}\n" for name, role in roles.items()]
        (self.scratch / "password").write_text("".join(lines))
        (self.scratch / "metrics").write_text(hashed(*SCRAPER))
        arguments = [
            sys.executable, *self.program, "--home", str(self.home),
            "--port", str(self.port), "--jdbc-port", str(self.jdbc_port),
            "--flight-port", str(self.flight_port), "--scratch", str(self.scratch),
            "--password-file", str(self.scratch / "password"),
            *words("127.0.0.1", self.metrics_port, self.scratch / "metrics"), *self.more,
        ]  # fmt: skip
        with (self.scratch / "sql.log").open("ab") as log:
            self._process = subprocess.Popen(
                arguments, cwd=self.scratch, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
            )  # fmt: skip
        self.wait_until(lambda status: status["ready"])

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def jvm(self) -> psutil.Process:
        assert self._process is not None
        below = psutil.Process(self._process.pid).children()
        return next(process for process in below if process.name() == "java")

    def until_busy(self, for_s: float = 5.0) -> None:
        """Until its JVM has computed for so many seconds of a processor: who is planned only takes less."""
        jvm = self.jvm()
        before = jvm.cpu_times().user
        wait_for("the statement to run", lambda: jvm.cpu_times().user - before > for_s or None, UP_S)

    def until_idle(self) -> None:
        """Until its JVM computes nothing: statements of clients that have left end a little later."""
        jvm, seen = self.jvm(), [0.0]

        def rests() -> bool | None:
            seen.append(jvm.cpu_times().user)
            return True if seen[-1] - seen[-2] < IDLE_S else None

        wait_for("the SQL server to be idle", rests, UP_S, every_s=1.0)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/status", timeout=5, trust_env=False).json()
        return found

    def wait_until(self, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        def asked() -> dict[str, Any]:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError("the SQL server has ended")
            status = self.status()
            assert right(status), status
            return status

        unready = (httpx.HTTPError, AssertionError)
        return wait_for("the SQL server's status", asked, UP_S, every_s=0.02, unready=unready)

    def logged(self) -> list[dict[str, Any]]:
        """What the process itself has logged; Java's lines are of another form."""
        text = (self.scratch / "sql.log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def ask(self, sql: str, limit: int = 100, **headers: str) -> httpx.Response:
        return httpx.post(
            f"{self.url}/query", json={"sql": sql, "limit": limit}, timeout=120, trust_env=False,
            headers={"X-Twinlake-Query": "1", **headers}, auth=("analyst", PASSWORD),
        )  # fmt: skip

    def listed(self) -> list[dict[str, Any]]:
        """What runs, as an operator sees it."""
        found: list[dict[str, Any]] = httpx.get(
            f"{self.url}/queries", timeout=30, trust_env=False, auth=("olga", PASSWORD)
        ).json()
        return found

    def rows(self, sql: str) -> list[dict[str, Any]]:
        answer = self.ask(sql)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found


@contextmanager
def started(server: SqlServer) -> Iterator[SqlServer]:
    """The process, which ends with the block."""
    try:
        server.start()
        yield server
    finally:
        server.kill()


@dataclass
class Released:
    """The lake: `promote` commits a release as the lake server does, and nothing else."""

    lake: Path
    all_orders: Version
    paid_orders: Version
    others: tuple[Version, ...]
    paid_latest: Version

    def promote(self, *changed: Version) -> Release:
        """These versions, with `others` for the tables that they are not of."""
        live = release_log.live(self.lake)
        tables = {version.table: version.name for version in (*self.others, *changed)}
        number = live.number + 1 if live else 1
        made = Release(
            number=number, kind="promote", tables=tables, created_at="2026-01-31T12:00:00Z", approved_by="me"
        )  # fmt: skip
        return release_log.commit(self.lake, made)


@pytest.fixture(scope="session")
def released(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Released:
    lake = tmp_path_factory.mktemp("sql") / "lake"
    formats.acquire(lake)
    topic = load_topic("orders", OURS)
    log = Log(spark, lake, topic)
    log.open()
    written = spark.range(ALL + 1).selectExpr(
        "0 epoch", "cast(id % 4 as int) partition", "id offset",
        "timestamp_seconds(1700000000 + id) timestamp", "1 timestamp_type",
        "encode(concat('c', id % 50), 'UTF-8') key", "X'00FF' value",
        "cast(array() as array<struct<key string, value binary>>) headers", "1 schema_id",
        "named_struct('event_id', concat('e', id), 'order_id', id, 'customer', concat('c', id % 50), "
        "'region', concat('r', id % 5), 'status', if(id % 10 = 0, 'cancelled', 'paid'), "
        "'amount', cast(id / 100 as decimal(12, 2)), 'ordered_at', timestamp_seconds(1700000000 + id)) event",
        f"if(id = {ALL}, 'invalid', 'valid') verdict",
        f"if(id = {ALL}, array('malformed_body'), cast(array() as array<string>)) reasons",
        "false late", "'1.0.0' contract", "false replay", "1L batch",
    )  # fmt: skip
    delta.append(written, log.path, "test", 1, {"kind": "batch", "batch": 1, "schemas": {}})
    paid = replace(sales_per_region.TABLE, where="status <> 'cancelled'")
    paid_latest = replace(latest_order.TABLE, where="status <> 'cancelled'")
    versions = []
    for build, table in enumerate(
        (orders.TABLE, latest_order.TABLE, sales_per_region.TABLE, paid, paid_latest), start=1
    ):
        version = Version(
            table=table.name, fingerprint=f"{build:012x}", build=build, definition=table.to_json(),
            topics=table.inputs, contracts={"orders": "1.0.0"}, created_at="2026-01-31T12:00:00Z",
        )  # fmt: skip
        version.save(lake)
        versions.append(version)
        if is_stored(table):
            rows = table.partial(log.rows(0, 1)).selectExpr("*", "0 AS _segment")
            told = {
                "kind": "step",
                "step": 1,
                "segment": 0,
                "position": {"orders": 1},
                "watermark": 1700012000_000_000,
            }
            delta.append(rows, version.path(lake), "test", 1, told, ("_segment",))
    made = Released(
        lake=lake,
        all_orders=versions[2],
        paid_orders=versions[3],
        others=tuple(versions[:2]),
        paid_latest=versions[4],
    )
    made.promote(made.all_orders)
    return made


@pytest.fixture(scope="session")
def sql(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    server = SqlServer(home=released.lake.parent, scratch=tmp_path_factory.mktemp("scratch"))
    with started(server):
        yield server


@pytest.fixture(scope="session")
def tools(spark: SparkSession) -> Iterator[Callable[[str], Any]]:
    """Starts JVMs with the classes of a class path and nothing of ours, as an analyst's tool is."""
    import pyspark
    from py4j.java_gateway import JavaGateway
    from pyspark.errors.exceptions import captured

    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j*.jar")
    started: list[JavaGateway] = []
    of_spark = captured.convert_exception

    def converted(exception: Any) -> Any:
        """PySpark looks for every JVM's exceptions in its own, by numbers that mean other objects there."""
        if any(exception._gateway_client is gateway._gateway_client for gateway in started):
            return captured.UnknownException(desc="of a tool's JVM", stackTrace="")
        return of_spark(exception)

    def start(class_path: str) -> Any:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j), classpath=class_path, die_on_exit=True,
            javaopts=["-Xmx256m", "-Dlog4j2.level=OFF"], enable_auth=True,
        )  # fmt: skip
        started.append(gateway)
        return gateway.jvm

    captured.convert_exception = converted
    yield start
    captured.convert_exception = of_spark
    for gateway in started:
        gateway.shutdown()


@pytest.fixture(scope="session")
def analyst_jvm(tools: Callable[[str], Any]) -> Any:
    """With the classes of Hive's client that come with PySpark."""
    import pyspark

    return tools(f"{Path(pyspark.__file__).parent / 'jars'}/*")


def java_array(of: Any, element: str, *values: Any) -> Any:
    """In the JVM that the object is of."""
    from py4j.java_gateway import JavaGateway

    gateway = JavaGateway(gateway_client=of._gateway_client)
    found = gateway.new_array(getattr(gateway.jvm.java.lang, element), len(values))
    for at, value in enumerate(values):
        found[at] = value
    return found


@pytest.fixture(scope="session")
def jdbc(sql: SqlServer, analyst_jvm: Any) -> Callable[..., Any]:
    """Opens connections with Hive's JDBC driver."""
    return connected(sql, analyst_jvm)


@pytest.fixture(scope="session")
def drivers_folder() -> Path:
    """With readers' drivers, which `make test` brings; whoever runs one test gets them here."""
    folder = drivers.FOLDER
    subprocess.run(["make", "-s", str((folder / ".complete").relative_to(PROJECT))], cwd=PROJECT, check=True)
    return folder


@pytest.fixture(scope="session")
def adbc(drivers_folder: Path) -> Iterator[Callable[..., Adbc]]:
    """ADBC's driver for an address, in a process of its own; another one for another name beside it."""
    python, started = drivers_folder / "python" / "bin" / "python", dict[tuple[str, str], Adbc]()

    def driver(address: str, which: str = "") -> Adbc:
        if (address, which) not in started:
            started[address, which] = Adbc(python, address, PASSWORD)
        return started[address, which]

    yield driver
    for one in started.values():
        one.end()


@pytest.fixture(scope="session")
def jdbc_4(sql: SqlServer, tools: Callable[[str], Any], drivers_folder: Path) -> Callable[..., Any]:
    """Opens connections with the driver of Hive 4, which DBeaver fetches."""
    return connected(sql, tools(f"{drivers_folder}/*"))


def over_jdbc(connection: Any, sql: str) -> list[list[Any]]:
    """The rows of a statement, each value as text or None."""
    found = connection.createStatement().executeQuery(sql)
    columns = range(1, found.getMetaData().getColumnCount() + 1)
    rows = []
    while found.next():
        rows.append([found.getString(column) for column in columns])
    return rows


def connected(sql: SqlServer, jvm: Any) -> Callable[..., Any]:
    jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")

    def connect(user: str = "analyst", password: str = PASSWORD, more: str = "") -> Any:
        return jvm.java.sql.DriverManager.getConnection(
            f"jdbc:hive2://127.0.0.1:{sql.jdbc_port}/serve{more}", user, password
        )

    return connect

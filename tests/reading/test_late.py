"""A SQL server in an odd zone: what came late, `final` by the log's clocks, windows whatever a client set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import orders, sales_per_region
from tests.history import version_of
from tests.project import OURS
from tests.reading.conftest import PASSWORD, SqlServer
from tests.written_log import write_batch
from twinlake.base.times import EPOCH
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME
from twinlake.kinds.grid import micros
from twinlake.kinds.kind import is_stored
from twinlake.kinds.windows import Tumbling
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.topics.topic import load_topic

ODD = "Australia/Lord_Howe"
START = datetime(2026, 1, 31, 12, 1, tzinfo=UTC)
"""When the orders of batch 1 were; those of batch 2 a minute later."""
RECORDS = 6
OF_LOG = {"orders_valid", "orders_quarantine", "orders_replayed"}
DAILY = replace(sales_per_region.TABLE, window=Tumbling(on="ordered_at", size="1 day"))
ARRIVED: Aggregate = replace(
    sales_per_region.TABLE, name="arrived", window=Tumbling(on="came", size="1 minute"),
    columns={**sales_per_region.TABLE.columns, "came": "_timestamp"},
)  # fmt: skip
PROCESSED = replace(ARRIVED, name="processed", columns={**ARRIVED.columns, "came": "_ingested_at"})


class Written:
    """The lake, written by the test's session, and what is released of it."""

    def __init__(self, spark: SparkSession, server: SqlServer) -> None:
        self.server, self.lake = server, server.home / "lake"
        formats.acquire(self.lake)
        self.log = Log(spark, self.lake, load_topic("orders", OURS))
        write_batch(self.log, RECORDS)
        # of six two came late, and one too late to be counted
        verdict = "CASE WHEN id = 5 THEN 'too_late' ELSE 'valid' END"
        write_batch(self.log, RECORDS, beside={"verdict": verdict, "late": "id IN (1, 2)"})

    def version(self, table: Any, build: int = 1) -> Version:
        made = version_of(table, build)
        made.save(self.lake)
        if is_stored(table):
            rows = table.partial(self.log.rows(0, 2)).selectExpr("*", "0 AS _segment")
            delta.append(rows, made.path(self.lake), "test", 1, self.told(1, START), ("_segment",))
        return made

    def told(self, step: int, at: datetime) -> dict[str, Any]:
        """A step's metadata: how far the log's own clocks have come, far behind the watermark."""
        clocks = dict.fromkeys((LOG_APPEND_TIME, PROCESSING_TIME), micros(at - EPOCH))
        watermark = micros(START + timedelta(days=9) - EPOCH)
        return {
            "kind": "step", "step": step, "position": {"orders": 2}, "watermark": watermark, "clocks": clocks
        }  # fmt: skip

    def step(self, version: Version, at: datetime) -> None:
        path = version.path(self.lake)
        rows = self.log.spark.read.format("delta").load(str(path)).limit(0)
        delta.append(rows, path, "test", 2, self.told(2, at), ("_segment",))

    def promote(self, *versions: Version) -> None:
        live = release_log.live(self.lake)
        release_log.commit(self.lake, Release(
            number=live.number + 1 if live else 1, kind="promote", created_at="2026-01-31T12:00:00Z",
            approved_by="me", tables={version.table: version.name for version in versions},
        ))  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(home=tmp_path_factory.mktemp("late"), scratch=tmp_path_factory.mktemp("scratch"))
    yield made
    if made._process:
        made.kill()


@pytest.fixture(scope="module")
def written(spark: SparkSession, server: SqlServer) -> Written:
    made = Written(spark, server)
    minutes = made.version(sales_per_region.TABLE)
    made.promote(minutes, *map(made.version, (orders.TABLE, ARRIVED, PROCESSED)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", ODD)
        server.start()
    server.wait_until(lambda status: status["release"] == 1)
    return made


def names(server: SqlServer, schema: str) -> set[str]:
    return {row["viewName"] for row in server.rows(f"SHOW VIEWS IN {schema}") if row["viewName"] != "orders"}


@pytest.mark.faults
def test_what_came_late_stands_beside_each_table_with_windows_and_follows_its_release(
    written: Written,
) -> None:
    server = written.server
    first = server.rows("SELECT * FROM serve.sales_per_region_late")
    assert first == [{
        "window_start": "2026-01-31T12:02:00Z", "window_end": "2026-01-31T12:03:00Z", "late": 2,
        "discarded": 1, "first_arrived": "2026-01-31T12:02:01Z", "last_arrived": "2026-01-31T12:02:01Z",
    }]  # fmt: skip
    assert server.rows("SELECT late, discarded FROM serve.arrived_late") == [{"late": 0, "discarded": 1}]
    beside = {"sales_per_region_late", "arrived_late", "processed_late"}
    tables = {name.removesuffix("_late") for name in beside}
    assert names(server, "serve") == {*beside, *tables, *OF_LOG}

    written.promote(written.version(DAILY, build=2), written.version(orders.TABLE))
    server.wait_until(lambda status: status["release"] == 2)

    (day,) = server.rows("SELECT window_start, window_end, late FROM serve.sales_per_region_late")
    assert [*day.values()] == ["2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z", 2]
    assert names(server, "serve") == {"sales_per_region", "sales_per_region_late", *OF_LOG}
    server.wait_until(lambda _: names(server, "release_1") == {*beside, *tables, *OF_LOG})
    assert server.rows("SELECT * FROM release_1.sales_per_region_late") == first


@pytest.mark.parametrize("table", ["arrived", "processed"])
def test_a_window_by_a_clock_of_the_log_is_final_when_that_clock_has_passed(
    written: Written, table: str
) -> None:
    """The records came a second, their batches two seconds after the orders: within their minutes."""
    final = f"SELECT DISTINCT window_start, final FROM release_1.{table} ORDER BY window_start"
    starts = [START, START + timedelta(minutes=1)]

    def finals() -> dict[str, bool]:
        return {row["window_start"]: row["final"] for row in written.server.rows(final)}

    assert [*finals().values()] == [False, False]
    written.step(version_of(ARRIVED if table == "arrived" else PROCESSED), starts[1])
    written.server.wait_until(lambda _: [*finals().values()] == [True, False])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", ODD])
def test_a_client_s_zone_changes_no_window(written: Written, analyst_jvm: Any, zone: str) -> None:
    """Of a table with daily windows, on the days on which clocks are changed."""
    server = written.server
    days = "array(date '2026-03-08', date '2026-11-01', date '2026-04-05', date '2026-10-04')"
    table = replace(DAILY, name="days", columns={
        **DAILY.columns, "ordered_at": f"timestamp_seconds(unix_date(get({days}, order_id % 4)) * 86400L + 5)"
    })  # fmt: skip
    if "days" not in names(server, "serve"):
        written.promote(written.version(table), written.version(orders.TABLE))
        server.wait_until(lambda _: "days" in names(server, "serve"))
    analyst_jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")
    connection = analyst_jvm.java.sql.DriverManager.getConnection(
        f"jdbc:hive2://127.0.0.1:{server.jdbc_port}/serve", "analyst", PASSWORD
    )
    connection.createStatement().execute(f"SET TIME ZONE '{zone}'")
    rows = connection.createStatement().executeQuery(
        "SELECT unix_seconds(window_start) % 86400, unix_seconds(window_end) - unix_seconds(window_start), "
        "final FROM serve.days GROUP BY ALL"
    )
    found = []
    while rows.next():
        found.append((rows.getLong(1), rows.getLong(2), rows.getBoolean(3)))
    connection.close()

    # the watermark is in February
    assert found == [(0, 86_400, False)]

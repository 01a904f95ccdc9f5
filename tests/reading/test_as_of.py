"""A statement AS OF a moment at a real SQL server: every name in serve is of it, nothing else is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import twinlake
from tests.reading.conftest import PASSWORD, SqlServer, connected, over_jdbc
from tests.reading.test_past_tables import BATCHES, PAID, SALES, History
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.cli.app import build_app
from twinlake.reading import client

pytestmark = pytest.mark.faults


@dataclass(frozen=True, kw_only=True)
class Door:
    server: SqlServer
    history: History

    def ask(self, sql: str, as_of: str) -> httpx.Response:
        return httpx.post(
            f"{self.server.url}/query", json={"sql": sql, "as_of": as_of}, timeout=120, trust_env=False,
            headers={"X-Twinlake-Query": "1"}, auth=("analyst", PASSWORD),
        )  # fmt: skip

    def rows(self, sql: str, as_of: str) -> list[dict[str, Any]]:
        answer = self.ask(sql, as_of)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found

    def records(self, to: int) -> int:
        return len(self.history.records(to))


@pytest.fixture(scope="module")
def door(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    home = tmp_path_factory.mktemp("as-of")
    history = History(spark, home / "lake", 1, (SALES, PAID))
    server = SqlServer(home=home, scratch=tmp_path_factory.mktemp("scratch"))
    try:
        server.start()
        server.wait_until(lambda status: status["release"] == 1)
        server.services.save(home / "services.json")
        yield Door(server=server, history=history)
    finally:
        server.kill()


ORDERS = "sum(orders) AS n FROM serve.sales_per_region"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {ORDERS}",
        f"WITH found AS (SELECT {ORDERS}) SELECT * FROM found",
        f"SELECT (SELECT {ORDERS}) AS n",
        "SELECT sum(orders) AS n FROM sales_per_region",
        "WITH found AS (SELECT * FROM Sales_Per_Region) SELECT (SELECT sum(orders) FROM found) AS n",
        "SELECT sum(a.orders) AS n FROM sales_per_region a, serve.sales_per_region b "
        "WHERE a.region = b.region AND a.window_start = b.window_start",
        "SELECT sum(s.orders) AS n FROM serve.sales_per_region s WHERE s.region IS NOT NULL",
        "SELECT sum(serve.sales_per_region.orders) AS n FROM serve.sales_per_region",
        "SELECT sum(a.orders) AS n FROM serve.sales_per_region a JOIN Serve.SALES_PER_REGION b "
        "ON a.region = b.region AND a.window_start = b.window_start",
        f"EXECUTE IMMEDIATE 'SELECT {ORDERS}'",
    ],
)
def test_however_a_table_is_named_it_is_of_the_moment(door: Door, sql: str) -> None:
    found = {batch: door.rows(sql, f"position:orders={batch}") for batch in range(1, BATCHES + 1)}

    assert found == {batch: [{"n": door.records(batch)}] for batch in range(1, BATCHES + 1)}


def test_the_answer_tells_the_moment_and_what_was_computed_and_others_read_what_is_live(door: Door) -> None:
    stood = door.history.stood["sales_per_region"]
    (left_out,) = set(range(1, BATCHES + 1)) - stood

    told = door.ask(f"SELECT {ORDERS}", f"position:orders={left_out}").json()["as_of"]
    pinned = door.ask(f"SELECT {ORDERS}", f"position:orders={min(stood)}").json()["as_of"]

    assert (told["release"], told["position"]) == (1, {"orders": left_out})
    ((table, why),) = ((one["table"], one["why"]) for one in told["computed"])
    assert table == "sales_per_region" and f"orders batch {left_out}" in why
    assert pinned["computed"] == []
    assert door.server.rows(f"SELECT {ORDERS}") == [{"n": door.records(BATCHES)}]


def test_a_large_result_is_of_the_moment_and_says_which(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(door.server.home))
    asked = "SELECT region, window_start, orders FROM serve.sales_per_region ORDER BY ALL"
    found, facts = {}, {}
    for batch in range(1, BATCHES + 1):
        file, at = tmp_path / f"{batch}.parquet", f"position:orders={batch}"
        done = CliRunner().invoke(build_app(), ["query", asked, "--as-of", at, "--output", str(file)])
        assert done.exit_code == 0 and f"orders batch {batch}" in done.stderr, (done.output, done.exception)
        found[batch] = parquet.read_table(file)
        facts[batch] = twinlake.metadata(found[batch])["as_of"]["position"]

    by_query = {batch: door.rows(asked, f"position:orders={batch}") for batch in found}
    assert {batch: table["orders"].to_pylist() for batch, table in found.items()} == {
        batch: [row["orders"] for row in rows] for batch, rows in by_query.items()
    }
    assert {batch: sum(table["orders"].to_pylist()) for batch, table in found.items()} == {
        batch: door.records(batch) for batch in found
    }
    assert facts == {batch: {"orders": batch} for batch in found}
    with twinlake.read_batches("sales_per_region", as_of="position:orders=1", home=door.server.home) as some:
        assert sum(sum(batch["orders"].to_pylist()) for batch in some) == door.records(1)
    never = tmp_path / "never.parquet"
    refused = ["query", asked, "--as-of", "position:orders=99", "--output", str(never)]
    assert isinstance(CliRunner().invoke(build_app(), refused).exception, UsageError | NotFoundError)
    assert not never.exists()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM release_1.sales_per_region", "this one is of now"),
        ("SHOW VIEWS IN serve", "only a query reads tables as they were"),
        ("DESCRIBE serve.sales_per_region", "only a query reads tables as they were"),
        ("SELECT * FROM twinlake_past('x')", "is refused"),
        ("SELECT * FROM serve.nothing", "cannot be found"),
        ("SELECT * FROM nothing", "cannot be found"),
        ("SELECT * FROM information_schema.tables", "it tells of the views of now"),
    ],
)
def test_what_is_of_now_or_not_there_is_refused_as_of_a_moment(door: Door, sql: str, says: str) -> None:
    answer = door.ask(sql, "release:1")

    assert answer.status_code == 400 and says in answer.text


@pytest.mark.parametrize("by", ["SET", "address"])
def test_over_jdbc_a_connection_reads_as_of_its_moment(door: Door, analyst_jvm: Any, by: str) -> None:
    """Until it is set back; what is wrong with the moment is said."""
    connect = connected(door.server, analyst_jvm)
    moment = "position:orders=2" if by == "SET" else "release:1"
    http = door.rows(
        "SELECT region, sum(orders) AS n FROM sales_per_region GROUP BY region ORDER BY region", moment
    )
    ask = "SELECT region, sum(orders) FROM {} GROUP BY region ORDER BY region"
    with closing(connect(more="" if by == "SET" else f"?twinlake.as_of={moment}")) as connection:
        now = over_jdbc(connection, ask.format("release_1.sales_per_region")) if by == "SET" else []
        if by == "SET":
            connection.createStatement().execute(f"SET twinlake.as_of = {moment}")
        then = [[row["region"], str(row["n"])] for row in http]
        for name in ("sales_per_region", "serve.sales_per_region", "Serve.SALES_PER_REGION s"):
            assert over_jdbc(connection, ask.format(name)) == then
        assert over_jdbc(connection, "SELECT tableName, 1 FROM VALUES ('a') t(tableName)") == [["a", "1"]]
        assert connection.createStatement().executeQuery("SHOW TABLES").next()
        for sql, says in (
            ("SELECT * FROM release_1.sales_per_region", "this one is of now"),
            ("SELECT * FROM nothing", "cannot be found"),
        ):
            with pytest.raises(Exception, match=says):
                over_jdbc(connection, sql)
        connection.createStatement().execute("CREATE TEMPORARY VIEW mine AS SELECT * FROM sales_per_region")
        with pytest.raises(Exception, match=r"`serve`\.`mine` cannot be found"):
            over_jdbc(connection, "SELECT * FROM mine")
        connection.createStatement().execute("SET twinlake.as_of = release:7")
        with pytest.raises(Exception, match="AS OF release:7 is refused"):
            over_jdbc(connection, ask.format("sales_per_region"))
        connection.createStatement().execute("RESET twinlake.as_of")
        if by == "SET":
            assert now != then and over_jdbc(connection, ask.format("sales_per_region")) == now
            assert over_jdbc(connection, "SELECT region, 1 FROM mine LIMIT 1")


def test_a_moment_that_is_none_is_refused_at_the_door(door: Door) -> None:
    assert door.ask("SELECT 1", "soon").status_code == 400
    assert door.ask("SELECT 1", "x" * 2_000).status_code == 400
    assert door.ask("SELECT 1", "release:7").status_code == 404


def test_what_came_late_and_the_quarantine_are_those_of_the_moment(door: Door) -> None:
    assert door.rows("SELECT * FROM serve.sales_per_region_late", "position:orders=1") == []
    assert door.rows("SELECT count(*) AS n FROM serve.orders_quarantine", "position:orders=1") == [{"n": 0}]


def test_python_reads_the_same_rows_as_arrow_and_in_a_spark_session(door: Door, spark: SparkSession) -> None:
    home, as_of = door.server.home, "position:orders=2"

    whole = twinlake.read("sales_per_region", as_of=as_of, home=home)
    part = twinlake.read("paid", as_of=as_of, columns=("customer", "amount"), where="amount > 3", home=home)
    frame = twinlake.read("paid", home=home, spark=spark)

    assert sum(whole["orders"].to_pylist()) == door.records(2)
    assert twinlake.metadata(whole)["as_of"]["position"] == {"orders": 2}
    paid = [one for one in door.history.records(2) if one["status"] == "paid" and one["amount"] > 3]
    assert part.column_names == ["customer", "amount"]
    assert sorted(part["amount"].to_pylist()) == sorted(one["amount"] for one in paid)
    assert frame.count() == sum(one["status"] == "paid" for one in door.history.records(BATCHES))
    with pytest.raises(UsageError, match="the query failed"):
        twinlake.read("paid", columns=("nothing",), home=home)
    with pytest.raises(twinlake.TwinlakeError, match="no column"):
        twinlake.read("paid", columns=(), home=home)
    assert twinlake.read("paid", columns="amount", home=home).column_names == ["amount"]


def test_the_door_explains_a_row_and_says_which_tables_there_are(door: Door) -> None:
    (row,) = door.rows("SELECT * FROM serve.sales_per_region LIMIT 1", "release:1")
    key = {"region": row["region"], "window_start": row["window_start"]}

    found = client.ask_why(door.server.services, "sales_per_region", key)

    assert sum(one["records"] for one in found["partitions"]) == row["orders"] == found["row"]["orders"]
    for wrong in ("nothing", "serve.sales_per_region", "x; DROP"):
        with pytest.raises(NotFoundError, match="no table") as refused:
            client.ask_why(door.server.services, wrong, key)
        assert "sales_per_region" in refused.value.why

"""A statement that computes for minutes takes nothing from the others, and ends with whoever asked for it."""

from __future__ import annotations

import base64
import http.client
import json
import select
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.beside import HEAVY
from tests.reading.conftest import ALL, PASSWORD, SqlServer
from twinlake.base.errors import BusyError
from twinlake.reading.followed import Followed
from twinlake.reading.reader import Reader
from twinlake.reading.turns import AT_ONCE, LONG_S, WAIT_S

MINUTES = """SELECT count(*) FROM serve.orders a CROSS JOIN serve.orders b CROSS JOIN serve.orders c
    WHERE c.order_id < 1000 AND sqrt(a.order_id + b.order_id) + c.order_id < 0"""
SHORT = "SELECT count(*) AS n FROM serve.orders"
GROUPED = [
    # in the statement's own thread over HTTP, by one task over JDBC
    "SELECT region, count(*) AS n FROM serve.orders GROUP BY region ORDER BY region",
    # by two stages of tasks, over both
    "SELECT o.region, count(*) AS n FROM serve.orders o JOIN range(0, 2000, 1, 3) r ON o.order_id = r.id "
    "GROUP BY o.region ORDER BY o.region",
]
SOON_S = 25.0
"""It takes a few seconds, more where the machine has other work; without a turn or a slot it is never."""


def asked(sql: SqlServer, statement: str, path: str = "/query") -> http.client.HTTPConnection:
    """A client that waits for its answer until it is closed."""
    known = base64.b64encode(f"analyst:{PASSWORD}".encode()).decode()
    client = http.client.HTTPConnection("127.0.0.1", sql.port)
    headers = {"X-Twinlake-Query": "1", "Authorization": f"Basic {known}", "Content-Type": "application/json"}
    client.request("POST", path, json.dumps({"sql": statement}), headers)
    return client


def waits(client: http.client.HTTPConnection) -> bool:
    return not select.select([client.sock], [], [], 0)[0]


def answers(clients: list[http.client.HTTPConnection]) -> list[bytes]:
    """Of those that were to run meanwhile."""
    return [client.getresponse().read() for client in clients if not waits(client)]


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest) -> None:
    """What clients of the tests before have left behind has ended: its turns are free again."""
    if "sql" in request.fixturenames:
        request.getfixturevalue("sql").until_idle()


def rows_of(connection: Any, text: str) -> list[dict[str, Any]]:
    statement = connection.createStatement()
    statement.setQueryTimeout(60)
    found, rows = statement.executeQuery(text), []
    while found.next():
        rows.append({"region": found.getString("region"), "n": found.getLong("n")})
    return rows


@pytest.mark.faults
def test_short_statements_are_answered_beside_long_ones_and_after_their_clients_have_left(
    sql: SqlServer, jdbc: Callable[[], Any]
) -> None:
    clients = [asked(sql, MINUTES) for _ in range(AT_ONCE - 1)]
    sql.until_busy()
    beside = sql.rows(SHORT)
    connection = jdbc()
    found = connection.createStatement().executeQuery(SHORT)
    assert answers(clients) == []
    assert found.next() and found.getLong(1) == beside[0]["n"]
    connection.close()
    clients += [asked(sql, MINUTES) for _ in range(60)]  # now nobody else is taken in
    time.sleep(1)
    began = time.monotonic()
    assert sql.status()["ready"]
    assert time.monotonic() - began < WAIT_S / 3, "who waits for a turn keeps nobody from asking"
    for client in clients:
        client.close()

    began = time.monotonic()
    assert sql.rows(SHORT) == beside
    assert time.monotonic() - began < WAIT_S


def test_jdbc_cancels_a_statement(sql: SqlServer, jdbc: Callable[[], Any]) -> None:
    connection = jdbc()
    statement = connection.createStatement()
    told: list[Exception] = []

    def ask() -> None:
        with pytest.raises(Exception) as raised:
            statement.executeQuery(MINUTES).next()
        told.append(raised.value)

    asking = threading.Thread(target=ask)
    asking.start()
    sql.until_busy()
    assert asking.is_alive(), "it was to run meanwhile"
    statement.cancel()
    asking.join(20)

    assert told and not asking.is_alive()
    connection.close()


@pytest.mark.faults
def test_a_short_statement_gets_a_turn_and_a_slot_beside_four_that_would_hold_all(
    sql: SqlServer, jdbc: Callable[[], Any]
) -> None:
    with ExitStack() as asking:
        clients = [asking.enter_context(closing(asked(sql, HEAVY))) for _ in range(4)]
        connection = asking.enter_context(closing(jdbc()))
        sql.until_busy()
        time.sleep(LONG_S + 1)  # now they are long ones
        found, took = [], []
        for short in GROUPED:
            for ask in (sql.rows, lambda text: rows_of(connection, text)):
                began = time.monotonic()
                found.append(ask(short))
                took.append(time.monotonic() - began)

        assert found == [[{"region": f"r{number}", "n": ALL / 5} for number in range(5)]] * 4
        assert max(took) < SOON_S, took
        assert answers(clients) == []


@pytest.mark.faults
def test_the_subqueries_of_one_statement_are_one_statement(sql: SqlServer, jdbc: Callable[[], Any]) -> None:
    subqueries = ", ".join(f"({HEAVY} + {number}) AS n{number}" for number in range(9))
    with closing(asked(sql, f"SELECT {subqueries}")) as client, closing(jdbc()) as connection:
        sql.until_busy()
        time.sleep(LONG_S + 1)  # now they are long ones
        began = time.monotonic()
        found = rows_of(connection, GROUPED[1])

        assert time.monotonic() - began < SOON_S
        assert found == [{"region": f"r{number}", "n": ALL / 5} for number in range(5)]
        assert answers([client]) == []


def test_over_http_a_statement_ends_with_its_time(spark: SparkSession) -> None:
    reader = Reader(spark, Path("/none"), Followed, lambda: None, longest_s=1.0)

    with pytest.raises(BusyError, match="was stopped") as told:
        reader.read(HEAVY, 1, threading.Event())
    assert told.value.why == "it ran longer than 1 s"


def test_over_jdbc_a_statement_ends_with_its_time(jdbc: Callable[[], Any]) -> None:
    connection = jdbc()
    statement = connection.createStatement()
    statement.setQueryTimeout(2)

    began = time.monotonic()
    with pytest.raises(Exception, match="timed out after 2 seconds"):
        statement.executeQuery(HEAVY)
    assert time.monotonic() - began < SOON_S
    connection.close()

"""A statement that computes for minutes takes nothing from the others, and ends with whoever asked for it."""

from __future__ import annotations

import base64
import http.client
import json
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from jobs.reading.query import AT_ONCE, WAIT_S
from tests.reading.conftest import PASSWORD, SqlServer

MINUTES = """SELECT count(*) FROM serve.orders a CROSS JOIN serve.orders b CROSS JOIN serve.orders c
    WHERE c.order_id < 1000 AND sqrt(a.order_id + b.order_id) + c.order_id < 0"""
SHORT = "SELECT count(*) AS n FROM serve.orders"


def asked(sql: SqlServer, statement: str) -> http.client.HTTPConnection:
    """A client that waits for its answer until it is closed."""
    known = base64.b64encode(f"analyst:{PASSWORD}".encode()).decode()
    client = http.client.HTTPConnection("127.0.0.1", sql.port)
    headers = {"X-Twinlake-Query": "1", "Authorization": f"Basic {known}", "Content-Type": "application/json"}
    client.request("POST", "/query", json.dumps({"sql": statement}), headers)
    return client


def waits(client: http.client.HTTPConnection) -> bool:
    return not select.select([client.sock], [], [], 0)[0]


@pytest.mark.faults
def test_short_statements_are_answered_beside_long_ones_and_after_their_clients_have_left(
    sql: SqlServer, jdbc: Callable[[], Any]
) -> None:
    clients = [asked(sql, MINUTES) for _ in range(AT_ONCE - 1)]
    time.sleep(3)
    beside = sql.rows(SHORT)
    connection = jdbc()
    found = connection.createStatement().executeQuery(SHORT)
    assert all(map(waits, clients)), "they were to run meanwhile"
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


def test_jdbc_cancels_a_statement(jdbc: Callable[[], Any]) -> None:
    connection = jdbc()
    statement = connection.createStatement()
    told: list[Exception] = []

    def ask() -> None:
        with pytest.raises(Exception) as raised:
            statement.executeQuery(MINUTES).next()
        told.append(raised.value)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(3)
    assert asking.is_alive(), "it was to run meanwhile"
    statement.cancel()
    asking.join(20)

    assert told and not asking.is_alive()
    connection.close()

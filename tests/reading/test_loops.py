"""A statement of hours ends with its client; where some cannot be ended, the server is started again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from tests.reading.conftest import Released, SqlServer, connected, started
from tests.reading.test_heavy import SHORT, asked
from twinlake.base.waiting import wait_for
from twinlake.reading.__main__ import LOST_S, SLOTS
from twinlake.reading.turns import EXPORTS_AT_ONCE, LONG_AT_ONCE

PAIRS = """SELECT count(*) FROM serve.orders a CROSS JOIN serve.orders b CROSS JOIN serve.orders c
    CROSS JOIN serve.orders d WHERE sqrt(a.order_id + b.order_id) + c.order_id + d.order_id < 0"""
ONE_KEY = """SELECT count(*) FROM (SELECT 1 AS k FROM serve.orders) a
    JOIN (SELECT 1 AS k FROM serve.orders) b USING (k) JOIN (SELECT 1 AS k FROM serve.orders) c USING (k)
    JOIN (SELECT 1 AS k FROM serve.orders) d USING (k)"""
ELEMENTS = """SELECT count(*) FROM serve.orders LATERAL VIEW explode(sequence(1, 100000)) AS x
    LATERAL VIEW explode(sequence(1, 100000)) AS y LATERAL VIEW explode(sequence(1, 100000)) AS z"""
UNENDING = """SELECT sum(aggregate(sequence(1, 1000000), 0L, (sum, x) ->
    sum + aggregate(sequence(1, 1000000), 0L, (s, y) -> s + x * y))) FROM serve.orders"""


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(PAIRS, id="pairs"),
        pytest.param(ONE_KEY, id="one key", marks=pytest.mark.faults),
        pytest.param(ELEMENTS, id="elements", marks=pytest.mark.faults),
    ],
)
def test_a_statement_of_hours_computes_nothing_once_its_client_has_left(
    sql: SqlServer, statement: str
) -> None:
    sql.until_idle()
    client = asked(sql, statement)
    sql.until_busy()

    client.close()

    sql.until_idle()


@pytest.fixture
def lost(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    server = SqlServer(home=released.lake.parent, scratch=tmp_path_factory.mktemp("lost"))
    with started(server):
        yield server


@pytest.mark.faults
@pytest.mark.parametrize(("path", "turns"), [("/query", LONG_AT_ONCE), ("/export", EXPORTS_AT_ONCE)])
def test_a_server_whose_turns_are_held_by_what_cannot_be_ended_ends_to_be_started_again(
    lost: SqlServer, path: str, turns: int
) -> None:
    before = lost.rows(SHORT)
    clients = [asked(lost, UNENDING, path) for _ in range(turns)]
    lost.until_busy(5.0 * turns)  # all of them: one that is planned yet can be ended
    for client in clients:
        client.close()
    assert lost.rows(SHORT) == before, "short statements have turns of their own"

    assert f"go on {LOST_S} s" in wait_for("it to end", lambda: said(lost, "cancelled"), 3 * LOST_S)


@pytest.mark.faults
def test_a_server_whose_slots_are_held_by_what_cannot_be_ended_ends_to_be_started_again(
    lost: SqlServer, analyst_jvm: Any
) -> None:
    connect = connected(lost, analyst_jvm)
    statements = [connect().createStatement() for _ in range(SLOTS)]

    def ask(statement: Any) -> None:
        with suppress(Exception):  # it is cancelled
            statement.executeQuery(UNENDING)

    with ThreadPoolExecutor(SLOTS) as clients:
        asked_for = [clients.submit(ask, statement) for statement in statements]
        lost.until_busy(20.0)
        for statement in statements:
            statement.cancel()
        for one in asked_for:
            one.result(60)

    assert f"held for {LOST_S} s" in wait_for("it to end", lambda: said(lost, "every slot"), 3 * LOST_S)


def said(server: SqlServer, words: str) -> str | None:
    return next((str(line) for line in server.logged() if words in str(line)), None)

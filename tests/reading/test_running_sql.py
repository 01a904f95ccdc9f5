"""What runs in the real SQL server, over HTTP and over JDBC, is listed, and cancelled by an operator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.reading.conftest import ALL, PASSWORD, Released, SqlServer
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import Asker
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.lake.catalog.audit_log import AuditLog
from twinlake.reading.client import ask
from twinlake.reading.facts_client import end, names, running

LONG = """SELECT count(*) FROM
    (SELECT a.id % 100000 k, count(*) n FROM range(100000000) a, range(1000) b GROUP BY k)"""
"""It groups for hours, and holds memory for it."""
SHORT = "SELECT count(*) AS orders FROM serve.orders"
WAIT_S = 120


def of(sql: SqlServer, user: str) -> Services:
    return replace(sql.services, sql_user=user)


class Sent:
    """A statement that a thread waits for; `error` is what it got."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.error: Exception | None = None

        def wait() -> None:
            try:
                work()
            except Exception as error:
                self.error = error

        self._thread = threading.Thread(target=wait, daemon=True)
        self._thread.start()

    def told(self) -> Exception:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive() and self.error is not None
        return self.error


def seen(services: Services, endpoint: str, memory: int = 1) -> dict[str, Any]:
    """The long statement there, once its tasks hold so much."""

    def found() -> dict[str, Any] | None:
        known = (one for one in running(services) if one["endpoint"] == endpoint and one["sql"] == LONG)
        one = next(known, None)
        return one if one and one["memory_bytes"] >= memory else None

    return wait_for(f"a statement over {endpoint}", found, WAIT_S)


def write_down(released: Released, query: dict[str, Any], why: str) -> None:
    """As the lake server does."""
    of_query = {name: query[name] for name in ("user", "endpoint", "sql")}
    asker = Asker(by="olga", via="console", why=why)
    AuditLog(released.lake).query_cancelled(query["id"], of_query, asker, "2026-01-31T12:00:00Z")


def test_a_long_statement_over_http_is_listed_with_user_age_and_memory_and_cancelled(
    sql: SqlServer, released: Released
) -> None:
    operator = of(sql, "olga")
    sent = Sent(lambda: ask(sql.services, LONG))

    one = seen(operator, "http")

    assert (one["user"], one["state"]) == ("analyst", "running") and one["seconds"] > 0
    assert running(of(sql, "ben")) == [], "it is another analyst's"
    with pytest.raises(NotFoundError):
        end(of(sql, "ben"), one["id"])
    with pytest.raises(UsageError, match="was not cancelled"):
        end(operator, one["id"])
    write_down(released, one, "the lake is needed")
    assert end(operator, one["id"])["id"] == one["id"]
    told = sent.told()
    assert isinstance(told, TwinlakeError) and told.what == "the query was stopped"
    assert told.why == "olga has cancelled it: the lake is needed" and "talk to olga" in told.remedy
    wait_for("nothing to run", lambda: running(operator) == [] or None, WAIT_S)
    assert sql.rows(SHORT) == [{"orders": ALL}]


def test_ones_own_statement_is_cancelled_by_oneself(sql: SqlServer) -> None:
    sent = Sent(lambda: ask(sql.services, LONG))

    end(sql.services, seen(sql.services, "http", memory=0)["id"])

    assert "analyst has cancelled it" in str(sent.told())


@pytest.mark.faults
def test_a_long_statement_over_jdbc_is_listed_with_user_age_and_memory_and_cancelled(
    sql: SqlServer, released: Released, jdbc: Callable[..., Any]
) -> None:
    operator = of(sql, "olga")
    with closing(jdbc("ben@elsewhere")) as connection:
        statement = connection.createStatement()
        sent = Sent(lambda: statement.executeQuery(LONG))

        one = seen(operator, "jdbc")

        assert (one["user"], one["state"]) == ("ben@elsewhere", "running") and one["seconds"] > 0
        assert running(of(sql, "ben")) == [], "it is another analyst's"
        assert [mine["id"] for mine in running(of(sql, "ben@elsewhere"))] == [one["id"]]
        write_down(released, one, "the lake is needed")
        end(operator, one["id"])
        why = "why: olga has cancelled it: the lake is needed"
        assert f"the query was stopped\n{why}\ndo:  talk to olga" in str(sent.told())
        wait_for("nothing to run", lambda: running(operator) == [] or None, WAIT_S)
        counted = connection.createStatement().executeQuery(SHORT)
        assert counted.next() and counted.getLong(1) == ALL


def test_names_are_those_that_a_reader_may_read(sql: SqlServer) -> None:
    found = names(sql.services)

    assert {"serve", "release_1"} <= set(found["schemas"]) and "meta" not in found["schemas"]
    columns = {one["name"]: one["columns"] for one in found["tables"]}
    assert {"name": "amount", "type": "decimal(12,2)"} in columns["orders"]
    assert "orders_quarantine" in columns


def test_it_asks_who_it_is(sql: SqlServer) -> None:
    url = f"{sql.url}/queries"
    assert httpx.get(url, trust_env=False).status_code == 401
    known = ("analyst", PASSWORD)
    assert httpx.post(f"{url}/0/cancel", auth=known, trust_env=False).status_code == 403, "without the header"

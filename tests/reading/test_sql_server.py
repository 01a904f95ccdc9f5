"""What readers meet at the SQL server: its views, its refusals, and no trace of a switch."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.reading.conftest import ALL, PAID, PASSWORD, Released, SqlServer
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.times import parse_moment, utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.reading.client import ask

TOTAL = "SELECT sum(orders) AS orders, count(DISTINCT region) AS regions FROM serve.sales_per_region"
PROMOTIONS = 32


def test_the_views_of_the_live_release_are_there(sql: SqlServer, released: Released) -> None:
    assert sql.rows(TOTAL) == [{"orders": ALL, "regions": 5}]
    assert sql.rows("SELECT count(*) AS n FROM release_1.orders") == [{"n": ALL}]
    newest = "SELECT customer, order_id, amount, ordered_at FROM serve.latest_order WHERE customer = 'c7'"
    assert sql.rows(newest) == [
        {"customer": "c7", "order_id": 1957, "amount": "19.57", "ordered_at": "2023-11-14T22:45:57Z"}
    ]
    assert list(sql.rows("SELECT * FROM serve.orders LIMIT 1")[0])[-4:] == [
        "_epoch", "_partition", "_offset", "_timestamp"
    ]  # fmt: skip
    assert sql.rows("SELECT * FROM serve.orders_quarantine") == [
        {"epoch": 0, "partition": 0, "offset": ALL, "timestamp": "2023-11-14T22:46:40Z", "key": b"c0".hex(),
         "value": "00ff", "verdict": "invalid", "reasons": ["malformed_body"], "contract": "1.0.0",
         "replay": False}
    ]  # fmt: skip


def test_a_window_is_final_once_the_watermark_has_passed_it_by_late_after(sql: SqlServer) -> None:
    # the watermark of the fixture is 22:13:20 + 12,000 s = 01:33:20; late_after is 3 hours
    rows = sql.rows("SELECT DISTINCT window_end, final FROM serve.sales_per_region ORDER BY window_end")

    assert [row["final"] for row in rows] == [row["window_end"] <= "2023-11-14T22:33:20Z" for row in rows]
    assert {row["final"] for row in rows} == {True, False}


def test_more_rows_than_asked_for_are_cut_and_it_says_so(sql: SqlServer) -> None:
    cut = sql.ask("SELECT * FROM serve.orders", limit=10).json()
    whole = sql.ask("SELECT * FROM range(10)", limit=10).json()

    assert (len(cut["rows"]), cut["truncated"]) == (10, True)
    assert (len(whole["rows"]), whole["truncated"]) == (10, False)


@pytest.mark.parametrize("statement", ["SELECT 1; SELECT 2", "SELECT nothing FROM serve.orders", "SELEKT 1"])
def test_a_wrong_statement_is_told_without_a_stack(sql: SqlServer, statement: str) -> None:
    answer = sql.ask(statement)

    assert answer.status_code == 400
    assert answer.json()["error"] == "UsageError"
    assert "at org.apache.spark" not in answer.text


def test_what_is_not_served_is_told(sql: SqlServer) -> None:
    answer = httpx.get(f"{sql.url}/query", auth=("analyst", PASSWORD), trust_env=False)

    assert (answer.status_code, answer.json()["what"]) == (405, "there is no GET /query")


def test_a_web_page_cannot_ask(sql: SqlServer) -> None:
    body = {"sql": "SELECT 1"}
    login = ("analyst", PASSWORD)
    without = httpx.post(f"{sql.url}/query", json=body, auth=login, trust_env=False)
    rebound = httpx.post(
        f"{sql.url}/query",
        json=body,
        auth=login,
        trust_env=False,
        headers={"X-Twinlake-Query": "1", "Host": "evil.example"},
    )

    assert (without.status_code, rebound.status_code) == (403, 403)


def test_the_command_tells_wrong_use_from_no_answer(sql: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlake.reading.client.AWAY_S", 1.0)
    with pytest.raises(UsageError, match="failed") as wrong:
        ask(sql.services, "SELECT * FROM serve.nothing")
    assert "TABLE_OR_VIEW_NOT_FOUND" in wrong.value.why
    with pytest.raises(UnreachableError):
        ask(Services(sql_url="http://127.0.0.1:9"), "SELECT 1")
    assert ask(sql.services, "SELECT 1.50 AS a")["rows"] == [{"a": "1.50"}]


def test_a_damaged_users_file_is_named_by_a_query_until_it_is_mended(
    sql: SqlServer, jdbc: Callable[[], Any]
) -> None:
    """Whoever asks, with whichever password: theirs is not wrong. Over JDBC Hive says no more than no."""
    file = sql.scratch / "password"
    whole = file.read_text()
    file.write_text(f"{whole}mallory\n")
    try:
        with pytest.raises(UsageError, match=f"the users in {file} cannot be read") as refused:
            ask(sql.services, "SELECT 1")
        stranger = httpx.get(f"{sql.url}/running", auth=("nobody", "guessed"), trust_env=False)
        with pytest.raises(Exception, match="Error validating the login"):
            jdbc()
    finally:
        file.write_text(whole)

    assert refused.value.why == f"line {len(whole.splitlines()) + 1} has not the form " + (
        "user:iterations:salt:hash:role"
    )
    assert "correct the line" in refused.value.remedy
    assert stranger.status_code == 503 and "mallory" not in stranger.text
    assert ask(sql.services, "SELECT 1 AS a")["rows"] == [{"a": 1}]


def test_jdbc_reads_the_same_views(sql: SqlServer, jdbc: Callable[[], Any]) -> None:
    connection = jdbc()
    statement = connection.createStatement()
    found = statement.executeQuery("SELECT count(*) FROM orders")

    assert found.next() and found.getLong(1) == ALL
    connection.close()


def test_what_it_logs_is_one_json_object_a_line(sql: SqlServer) -> None:
    *_, line = (  # of its last start
        line for line in sql.logged() if line["event"] == "JDBC is open" and line["port"] == sql.jdbc_port
    )

    assert (line["level"], line["logger"], line["host"]) == ("info", "__main__", "127.0.0.1")
    assert parse_moment(line["timestamp"]) <= utc_now()


def test_a_reader_sees_old_or_new_and_never_an_error_or_a_mixture(
    sql: SqlServer, released: Released, jdbc: Callable[[], Any]
) -> None:
    seen: list[Any] = []
    ending = threading.Event()

    def poll_http() -> None:
        while not ending.is_set():
            answer = sql.ask(TOTAL)
            seen.append(answer.json()["rows"][0]["orders"] if answer.is_success else answer.text)

    def poll_jdbc() -> None:
        connection = jdbc()
        statement = connection.createStatement()
        while not ending.is_set():
            try:
                found = statement.executeQuery(TOTAL)
                found.next()
                seen.append(found.getLong(1))
            except Exception as error:
                seen.append(str(error))
        connection.close()

    readers = [threading.Thread(target=poll) for poll in (poll_http, poll_jdbc)]
    for reader in readers:
        reader.start()
    follow_s = []
    for promotion in range(PROMOTIONS):
        made = released.promote((released.paid_orders, released.all_orders)[promotion % 2])
        began = time.monotonic()
        sql.wait_until(lambda status, number=made.number: status["release"] == number)  # type: ignore[misc]
        follow_s.append(time.monotonic() - began)
    ending.set()
    for reader in readers:
        reader.join(60)

    assert set(seen) == {ALL, PAID}
    assert len(seen) > PROMOTIONS / 2
    # held here: the follower does not wait for the readers; its speed depends on the machine
    assert sorted(follow_s)[len(follow_s) // 2] < 5.0


BOTH = """SELECT (SELECT sum(orders) FROM serve.sales_per_region) AS orders,
    (SELECT count_if(status = 'cancelled') FROM serve.latest_order) AS cancelled"""


def test_a_statement_over_two_tables_sees_them_in_one_release(
    sql: SqlServer, released: Released, jdbc: Callable[[], Any]
) -> None:
    """And the answer over HTTP names that release."""
    old, new = (released.all_orders,), (released.paid_orders, released.paid_latest)
    pairs: dict[int, set[tuple[bool, bool]]] = {}
    over_jdbc: set[tuple[bool, bool]] = set()
    ending = threading.Event()

    def poll_http() -> None:
        while not ending.is_set():
            answer = sql.ask(BOTH).json()
            (row,) = answer["rows"]
            both = (row["orders"] == PAID, row["cancelled"] == 0)
            pairs.setdefault(answer["release"], set()).add(both)

    def poll_jdbc() -> None:
        connection = jdbc()
        statement = connection.createStatement()
        while not ending.is_set():
            found = statement.executeQuery(f"SELECT orders, cancelled FROM ({BOTH})")
            assert found.next()
            over_jdbc.add((found.getLong(1) == PAID, found.getLong(2) == 0))
        connection.close()

    readers = [threading.Thread(target=poll) for poll in (poll_http, poll_http, poll_jdbc, poll_jdbc)]
    for reader in readers:
        reader.start()
    for promotion in range(8):
        made = released.promote(*(new, old)[promotion % 2])
        wait_for("an answer", lambda number=made.number: number in pairs or None, 120, every_s=0.05)  # type: ignore[misc]
    ending.set()
    for reader in readers:
        reader.join(60)

    assert all(len(seen) == 1 for seen in pairs.values()), pairs
    assert set().union(*pairs.values()) == over_jdbc == {(True, True), (False, False)}, (pairs, over_jdbc)
    made = released.promote(released.all_orders)
    sql.wait_until(lambda status: status["release"] == made.number)


def test_a_fixed_schema_never_changes(sql: SqlServer, released: Released) -> None:
    made = released.promote(released.paid_orders)
    sql.wait_until(lambda status: status["release"] == made.number)

    assert sql.rows("SELECT sum(orders) AS n FROM release_1.sales_per_region") == [{"n": ALL}]
    assert sql.rows(f"SELECT sum(orders) AS n FROM release_{made.number}.sales_per_region") == [{"n": PAID}]
    assert sql.rows("SELECT sum(orders) AS n FROM serve.sales_per_region") == [{"n": PAID}]


@pytest.mark.faults
def test_a_release_committed_while_it_was_dead_is_served_after_its_restart(
    sql: SqlServer, released: Released
) -> None:
    sql.kill()
    made = released.promote(released.all_orders)
    sql.start()
    sql.wait_until(lambda status: status["release"] == made.number)

    assert sql.rows(TOTAL) == [{"orders": ALL, "regions": 5}]

    def old() -> list[dict[str, Any]]:
        return sql.rows("SELECT count(*) AS n FROM release_1.latest_order")

    assert wait_for("the newest is served first", old, 60, unready=(AssertionError,)) == [{"n": 50}]


@pytest.mark.faults
def test_the_schema_of_a_release_goes_with_its_retired_versions(sql: SqlServer, released: Released) -> None:
    """Its files are deleted later: nobody must begin to read them."""
    old = released.promote(released.paid_orders)
    new = released.promote(released.all_orders)
    sql.wait_until(lambda status: status["release"] == new.number)
    asked = f"SELECT sum(orders) AS n FROM release_{old.number}.sales_per_region"
    wait_for("the older schema", lambda: sql.ask(asked).is_success or None, 120)
    assert sql.rows(asked) == [{"n": PAID}]

    files = released.paid_orders.path(released.lake)
    released.paid_orders.retired("2026-02-01T00:00:00Z").save(released.lake)
    try:
        gone = f"there is no schema release_{old.number}"  # not a statement that is analysed meanwhile
        refused = wait_for("it to go", lambda: got if gone in (got := sql.ask(asked)).text else None, 120)
        files.rename(files.with_name("deleted"))
        sql.kill()
        sql.start()
        time.sleep(3)  # it tries to follow several times
        assert sql.status()["error"] is None
        assert gone in sql.ask(asked).text
    finally:
        if not files.exists():
            files.with_name("deleted").rename(files)
        released.paid_orders.save(released.lake)

    assert gone in refused.text and not refused.is_success
    assert sql.rows(f"SELECT sum(orders) AS n FROM release_{new.number}.sales_per_region") == [{"n": ALL}]
    assert sql.rows("SELECT sum(orders) AS n FROM serve.sales_per_region") == [{"n": ALL}]


ELSEWHERE = """
import sys, twinlake
named = {"address": sys.argv[1], "user": "analyst", "password": sys.argv[2]}
rows = twinlake.read("latest_order", columns="customer", **named)
print(rows.num_rows, "pyspark" in sys.modules)
for wrong in ({"password": "no"}, {"address": "x"}, {"home": "."}, {"user": None}):
    try:
        twinlake.read("latest_order", **{**named, **wrong})
    except twinlake.TwinlakeError as error:
        print(error.what)
"""


def test_address_user_and_password_are_enough_where_there_is_no_data_directory(
    sql: SqlServer, released: Released, tmp_path: Path
) -> None:
    alone = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, sql.url, PASSWORD], cwd=tmp_path, env=alone, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip

    first, *refused = done.stdout.splitlines()
    assert first == f"{len(sql.rows('SELECT * FROM serve.latest_order'))} False", done.stderr
    assert [line.split(":")[0] for line in refused] == [
        "the request was refused", "'x' is not the address of a SQL server",
        "home and address are both given", "the SQL server was not asked",
    ]  # fmt: skip
    assert [*tmp_path.iterdir()] == []

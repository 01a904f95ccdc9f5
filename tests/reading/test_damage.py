"""Readers of a damaged table are told the file, what was expected and what can be done; others read on."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.damages import OF_COMMITS, OF_DATA
from tests.longer import some
from tests.reading.conftest import PASSWORD, Released, SqlServer
from tests.reading.test_doors import message
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.version import Version, version_file
from twinlake.lake.delta import delta
from twinlake.lake.delta.table_state import TableState

LATEST = "SELECT * FROM serve.latest_order ORDER BY customer"
NUMBERS = count(90)
OTHERS = "SELECT sum(orders) AS n FROM serve.sales_per_region"


@pytest.fixture
def copied(released: Released, sql: SqlServer) -> Iterator[list[Version]]:
    """Makes builds of the latest orders of their own to damage, as copies; afterwards nothing names them."""
    made: list[Version] = []
    yield made
    released.promote(released.all_orders)
    live = released.promote(released.all_orders)
    sql.wait_until(lambda status: status["release"] == live.number and not status["error"])
    for version in made:
        shutil.rmtree(version.path(released.lake), ignore_errors=True)
        version.retired("2026-02-01T00:00:00Z").save(released.lake)


def build(released: Released, copied: list[Version]) -> Version:
    """One more build, its rows a copy."""
    source = released.paid_latest
    number = next(NUMBERS)
    made = replace(source, build=number, fingerprint=f"{number:012x}")
    shutil.copytree(source.path(released.lake), made.path(released.lake))
    made.save(released.lake)
    copied.append(made)
    return made


def promoted(released: Released, sql: SqlServer, version: Version) -> None:
    live = released.promote(released.all_orders, version)
    sql.wait_until(lambda status: status["release"] == live.number)


def refused(sql: SqlServer, statement: str) -> dict[str, Any]:
    answer = sql.ask(statement)
    assert answer.status_code == 503, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ask(server: SqlServer, way: str, **body: Any) -> httpx.Response:
    return httpx.post(
        f"{server.url}/{way}", json=body, timeout=120, trust_env=False, headers={"X-Twinlake-Query": "1"},
        auth=("analyst", PASSWORD),
    )  # fmt: skip


KEY = {"customer": "c7"}


@pytest.mark.parametrize("case", OF_DATA)
def test_a_query_over_a_damaged_data_file_names_it_and_the_build_that_mends_it(
    released: Released, sql: SqlServer, jdbc: Callable[..., Any], copied: list[Version], case: str
) -> None:
    damage, found = OF_DATA[case]
    version = build(released, copied)
    file = max(version.path(released.lake).glob("*/*.parquet"), key=lambda file: file.stat().st_size)
    damage(file)
    promoted(released, sql, version)

    error = refused(sql, LATEST)

    assert error["error"] == "DamagedError" and error["file"] == str(file)
    assert error["belongs_to"] == f"version {version.name} of table latest_order"
    assert found in error["why"] and "bytes with " in error["expected"]
    assert error["remedy"].endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    then = ask(sql, "query", sql=LATEST, as_of="position:orders=1")
    assert (then.status_code, then.json()) == (503, error)
    assert ask(sql, "explain", table="latest_order", key=KEY).json() == error
    with closing(jdbc()) as connection, pytest.raises(Exception) as raised:
        connection.createStatement().executeQuery(LATEST)
    assert message(raised.value).strip().endswith("\ndo:  see `twinlake status`, which names what is damaged")
    assert sql.rows(OTHERS)[0]["n"] > 0


def moved(log: Path) -> Path:
    """The log's largest data file after it was written again under another name, as compaction does: readers
    keep what they have read of small ones."""
    state = TableState(log, appends=False)
    old, file = max(state.files.items(), key=lambda one: one[1].bytes)
    new = log / f"part-{uuid4()}.parquet"
    shutil.copy(log / old, new)
    told = {"path": new.name, "size": file.bytes, "stats": file.stats, "partitionValues": {}}
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE"}},
        {"remove": {"path": old, "deletionTimestamp": 0, "dataChange": False}},
        {"add": {**told, "modificationTime": 0, "dataChange": False}},
    ]
    commit = delta.commit_file(log / delta.LOG_FOLDER, state.version + 1)
    commit.write_text("\n".join(map(json.dumps, actions)))
    return new


@pytest.mark.parametrize("case", some(OF_DATA))
def test_a_damaged_file_of_a_log_is_named_by_all_that_read_it_and_they_go_on_once_it_is_restored(
    released: Released, sql: SqlServer, case: str
) -> None:
    damage, found = OF_DATA[case]
    orders = "SELECT count(DISTINCT event_id, amount, ordered_at) AS n FROM serve.orders"
    quarantined = "SELECT count(*) AS n FROM serve.orders_quarantine"
    moment = {"as_of": "position:orders=1"}
    questions: list[tuple[str, dict[str, Any]]] = [
        ("query", {"sql": orders}), ("query", {"sql": orders, **moment}),
        ("query", {"sql": quarantined}), ("query", {"sql": quarantined, **moment}),
        ("explain", {"table": "latest_order", "key": KEY}),
        ("explain", {"table": "latest_order", "key": KEY, **moment}),
    ]  # fmt: skip

    def told() -> list[dict[str, Any]]:
        """But for the seconds since a report: no lake server runs here."""
        return [{**ask(sql, way, **body).json(), "no_report": None} for way, body in questions]

    before = told()
    file = moved(released.lake / "logs" / "orders")
    whole = file.read_bytes()
    damage(file)

    answers = [ask(sql, way, **body) for way, body in questions]

    file.write_bytes(whole)
    for answer in answers:
        error = answer.json()
        assert (answer.status_code, error["error"], error["file"]) == (503, "DamagedError", str(file)), error
        assert error["belongs_to"] == "the log of topic orders" and found in error["why"]
        assert "bytes with " in error["expected"]
        assert error["remedy"].startswith("restore the file from a backup")
    assert told() == before


def test_a_reader_cannot_have_a_file_called_damaged(
    released: Released, sql: SqlServer, copied: list[Version]
) -> None:
    version = build(released, copied)
    file = next(version.path(released.lake).glob("*/*.parquet"))
    file.unlink()  # it is damaged indeed, but nothing of it was read

    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        for statement in (
            f"SELECT cast('[DAMAGED_FILE] {file}: gone' AS INT)",
            f"SELECT raise_error('[PATH_NOT_FOUND] Path does not exist: {file}')",
            f"SELECT raise_error('[PATH_NOT_FOUND] Path does not exist: hdfs://127.0.0.1:{port}/logs/t/x.parquet')",
            f"SELECT raise_error('FAILED_READ_FILE.NO_HINT', map('path', '{file}'))",
        ):
            answer = sql.ask(statement)
            assert (answer.status_code, answer.json()["error"]) == (400, "UsageError"), answer.text
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):  # nobody has come
            elsewhere.accept()


@pytest.mark.faults
def test_a_torn_commit_is_named_before_and_after_the_server_has_read_the_table(
    released: Released, sql: SqlServer, copied: list[Version]
) -> None:
    version = build(released, copied)
    promoted(released, sql, version)
    shown = sql.rows(LATEST)
    log = version.path(released.lake) / delta.LOG_FOLDER
    file = delta.commit_file(log, delta.newest_version(version.path(released.lake)) + 1)

    for torn in (b"", b'{"commitInfo":{"engineInfo":"Twin'):
        file.write_bytes(torn)
        error = refused(sql, LATEST)
        assert (error["error"], error["file"]) == ("DamagedError", str(file)), error
        assert sql.rows(OTHERS)[0]["n"] > 0
        file.unlink()
        wait_for("the table", lambda: sql.ask(LATEST).is_success or None, 60)  # it may be a new text by now
        assert sql.rows(LATEST) == shown

    other = build(released, copied)
    rows = other.path(released.lake)
    first = delta.commit_file(rows / delta.LOG_FOLDER, delta.newest_version(rows))
    kept = first.read_bytes()
    first.write_bytes(b"")
    promoted(released, sql, other)  # a table that it meets torn

    error = refused(sql, LATEST)
    assert (error["error"], error["file"]) == ("DamagedError", str(first)), error
    assert sql.rows(OTHERS)[0]["n"] > 0
    first.write_bytes(kept)
    wait_for("the view to be made", lambda: sql.ask(LATEST).is_success or None, 60)
    assert sql.rows(LATEST) == shown


@pytest.mark.parametrize("case", some(OF_COMMITS))
def test_a_commit_that_is_torn_in_the_middle_of_a_tables_log_is_named_by_all_that_read_it(
    released: Released, sql: SqlServer, jdbc: Callable[..., Any], copied: list[Version], case: str
) -> None:
    version = build(released, copied)
    log = version.path(released.lake) / delta.LOG_FOLDER
    file = delta.commit_file(log, delta.newest_version(version.path(released.lake)))
    (told,) = (line for line in file.read_text().splitlines() if "commitInfo" in line)
    closed = json.loads(told) | {"txn": {"appId": "test", "version": 2}}
    lines = (json.dumps({name: closed[name]}) for name in closed)
    delta.commit_file(log, int(file.stem) + 1).write_text("\n".join(lines))
    OF_COMMITS[case](file)
    promoted(released, sql, version)
    moment = {"as_of": "position:orders=1"}
    questions: list[tuple[str, dict[str, Any]]] = [
        ("query", {"sql": LATEST}), ("query", {"sql": LATEST, **moment}),
        ("explain", {"table": "latest_order", "key": KEY}),
        ("explain", {"table": "latest_order", "key": KEY, **moment}),
    ]  # fmt: skip

    for way, body in questions:
        error = ask(sql, way, **body).json()
        assert (error["error"], error["file"]) == ("DamagedError", str(file)), (way, body, error)
        assert "a whole commit" in error["expected"] and error["remedy"].endswith("`twinlake promote`")
    with closing(jdbc()) as connection, pytest.raises(Exception) as refused:
        connection.createStatement().executeQuery(LATEST).next()
    assert str(file) in message(refused.value)
    assert sql.rows(OTHERS)[0]["n"] > 0


def test_a_version_whose_file_is_torn_stops_no_other(
    released: Released, sql: SqlServer, copied: list[Version]
) -> None:
    version = build(released, copied)
    file = version_file(released.lake, version.table, version.name)
    file.write_text(file.read_text()[:100])
    promoted(released, sql, version)

    error = refused(sql, "SELECT customer FROM serve.latest_order")

    assert (error["error"], error["file"]) == ("DamagedError", str(file))
    assert sql.rows(OTHERS)[0]["n"] > 0

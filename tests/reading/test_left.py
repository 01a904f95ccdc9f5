"""A statement whose client leaves while it is planned ends; who does not log in is cut off."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from tests.reading.conftest import ALL, SqlServer, connected
from tests.reading.test_heavy import SHORT, asked
from twinlake.base.waiting import wait_for

COLUMNS = ", ".join(f"order_id + {number} AS c{number}" for number in range(1_000))
WIDE = f"SELECT {', '.join(['o.*'] * 10)} FROM o"
PLANNED = (
    f"WITH o AS (SELECT {COLUMNS} FROM serve.orders) SELECT count(*) FROM ({WIDE} UNION {WIDE} UNION {WIDE})"
)
"""As wide as may be: it is planned for a minute."""
RUNNING_S = 3.0
SOON_S = 30.0
"""Five seconds on a machine that does nothing else."""
IDLE = 0.02
"""Seconds of the processor's in two seconds: on however busy a machine, who computes gets more."""
PARSED_S = 0.6
"""Of the processor's: after it a statement is analysed or planned."""
OF_JDBC = "HiveServer2-Bac"
"""So begin the names of the threads that compute its statements."""
OTHERS = ("C1 ", "C2 ", "GC ", "ParGC", "VM ", "G1 ", "Sweeper")
"""Java's own threads: compiler and collector."""


def cpu_seconds(java: Path, of: str = "") -> dict[str, float]:
    """Of each thread whose name begins so, by its number, but for Java's own."""
    found = {}
    for task in (java / "task").iterdir():
        try:
            name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if name.startswith(of) and not name.startswith(OTHERS):
            found[task.name] = sum(map(int, fields.split()[11:13])) / 100
    return found


def busiest(java: Path, for_s: float) -> tuple[str, float]:
    """The thread that takes most of the processor meanwhile, and how much."""
    before = cpu_seconds(java)
    time.sleep(for_s)
    took = {name: now - before.get(name, 0) for name, now in cpu_seconds(java).items()}
    return max(took.items(), key=lambda one: one[1])


def is_idle(java: Path, thread: str) -> bool:
    before = cpu_seconds(java).get(thread, 0)
    time.sleep(2)
    return cpu_seconds(java).get(thread, 0) - before <= IDLE


def java_of(sql: SqlServer) -> Path:
    assert sql._process is not None
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = one.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name == "java" and int(fields.split()[1]) == sql._process.pid:
            return one.parent
    raise LookupError("the SQL server has no JVM")


def test_a_statement_that_is_planned_ends_when_its_client_leaves(sql: SqlServer) -> None:
    sql.rows(SHORT)
    java = java_of(sql)

    with closing(asked(sql, PLANNED)):
        time.sleep(RUNNING_S)  # until it has been parsed, which is done elsewhere
        planning, took = busiest(java, 2)
        is_planned = not is_idle(java, planning)
        beside = sql.rows(SHORT)
    left = time.monotonic()
    while not is_idle(java, planning):
        assert time.monotonic() - left < SOON_S, "it is planned on"

    assert is_planned, f"it was to be planned meanwhile: thread {planning} took {took} s"
    assert beside == [{"n": ALL}]


def test_who_does_not_log_in_is_cut_off(sql: SqlServer, jdbc: Callable[..., Any]) -> None:
    with closing(jdbc()) as connection, socket.create_connection(("127.0.0.1", sql.jdbc_port)) as silent:
        silent.settimeout(60)
        began = time.monotonic()

        assert silent.recv(1) == b""
        assert time.monotonic() - began > 5
        found = connection.createStatement().executeQuery(SHORT)
        assert found.next() and found.getLong(1) == ALL, "who has logged in stays, silent or not"


def by_kill(sql: SqlServer, connect: Callable[[], Any], tools: Callable[[str], Any]) -> Callable[[], None]:
    """The client's process is killed."""
    jars = Path(pyspark.__file__).parent / "jars"
    jvm = tools(f"{jars}/*")
    begin(connected(sql, jvm)().createStatement())
    process = psutil.Process(int(jvm.java.lang.ProcessHandle.current().pid()))
    return process.kill


def by_socket(sql: SqlServer, connect: Callable[[], Any], tools: Callable[[str], Any]) -> Callable[[], None]:
    """Its connection breaks while it waits: not a word of the protocol says that it leaves."""
    connection = connect()
    begin(connection.createStatement())
    transport = connection.getClass().getDeclaredField("transport")
    transport.setAccessible(True)
    closing_it: Callable[[], None] = transport.get(connection).close
    return closing_it


def by_cancel(sql: SqlServer, connect: Callable[[], Any], tools: Callable[[str], Any]) -> Callable[[], None]:
    statement = connect().createStatement()
    begin(statement)
    cancel: Callable[[], None] = statement.cancel
    return cancel


def by_timeout(sql: SqlServer, connect: Callable[[], Any], tools: Callable[[str], Any]) -> Callable[[], None]:
    statement = connect().createStatement()
    statement.setQueryTimeout(10)
    begin(statement)
    return lambda: None


def begin(statement: Any) -> None:
    def ask() -> None:
        with suppress(Exception):  # how it fails is another test's
            statement.executeQuery(PLANNED)

    threading.Thread(target=ask, daemon=True).start()


@pytest.mark.parametrize("leave", [by_kill, by_socket, by_cancel, by_timeout])
def test_a_statement_that_is_planned_ends_when_its_client_over_jdbc_leaves(
    sql: SqlServer, jdbc: Callable[[], Any], tools: Callable[[str], Any],
    leave: Callable[..., Callable[[], None]],
) -> None:  # fmt: skip
    java = java_of(sql)
    before = cpu_seconds(java, OF_JDBC)
    leaves = leave(sql, jdbc, tools)

    def planned() -> str | None:
        took = {name: now - before.get(name, 0) for name, now in cpu_seconds(java, OF_JDBC).items()}
        return next((name for name, seconds in took.items() if seconds > PARSED_S), None)

    planning = wait_for("the statement to be planned", planned, 60)
    leaves()
    left = time.monotonic()
    while not is_idle(java, planning):
        assert time.monotonic() - left < SOON_S, "it is planned on"

    assert sql.rows(SHORT) == [{"n": ALL}]

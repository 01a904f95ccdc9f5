"""A statement whose client leaves while it is planned ends; who does not log in is cut off."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.reading.conftest import ALL, SqlServer
from tests.reading.test_heavy import SHORT, asked

COLUMNS = ", ".join(f"order_id + {number} AS c{number}" for number in range(1_000))
PLANNED = f"SELECT {', '.join(['o.*'] * 38)} FROM (SELECT {COLUMNS} FROM serve.orders) o"
"""As wide as may be: it is planned for a minute."""
RUNNING_S = 3.0
SOON_S = 30.0
"""Five seconds on a machine that does nothing else."""
IDLE = 0.02
"""Seconds of the processor's in two seconds: on however busy a machine, who computes gets more."""
OTHERS = ("C1 ", "C2 ", "GC ", "ParGC", "VM ", "G1 ", "Sweeper")
"""Java's own threads: compiler and collector."""


def cpu_seconds(java: Path) -> dict[str, float]:
    """Of each thread, by its number, but for Java's own."""
    found = {}
    for task in (java / "task").iterdir():
        try:
            name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if not name.startswith(OTHERS):
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

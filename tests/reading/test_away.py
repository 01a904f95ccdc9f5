"""A SQL server that dies is waited for by our clients; a statement that it died of is sent again once."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import twinlake
from tests.broker import free_port
from tests.reading.conftest import ALL, PASSWORD, SqlServer
from tests.reading.test_heavy import MINUTES, SHORT
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.config.settings import Services, Settings
from twinlake.reading import client
from twinlake.reading.client import Waiting
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record
from twinlake.services.supervise.process import identity_of
from twinlake.services.supervise.record import check_sql_server_is_supervised

MANY = 100_000
SECONDS = f"SELECT count(*) AS n FROM range({MANY}) a CROSS JOIN range({MANY}) b WHERE (a.id * b.id) % 7 = 3"
"""Ten seconds or more."""
RUNNING_S = 4.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that runs all tests at once may take longer than a user's to start a server."""
    monkeypatch.setattr(client, "AWAY_S", 300.0)


@contextmanager
def supervised(sql: SqlServer, when: Callable[[], bool]) -> Iterator[list[float]]:
    """Kills the server RUNNING_S after each time that `when` says so, and starts it again, as `up` does."""
    ended, killed = threading.Event(), list[float]()

    def supervise() -> None:
        while not ended.wait(0.1):
            if when():
                time.sleep(RUNNING_S)
                sql.kill()
                killed.append(time.monotonic())
                sql.start()

    supervising = threading.Thread(target=supervise)
    supervising.start()
    try:
        yield killed
    finally:
        ended.set()
        supervising.join()


def residues() -> int:
    count = [len(range(rest, MANY, 7)) for rest in range(7)]
    return sum(count[a] * count[b] for a in range(7) for b in range(7) if a * b % 7 == 3)


@pytest.mark.faults
def test_a_statement_that_ran_when_the_server_was_killed_is_answered_by_the_next_one(sql: SqlServer) -> None:
    said: list[str] = []
    once = iter([True])

    with supervised(sql, lambda: next(once, False)) as killed:
        found = client.ask(sql.services, SECONDS, waiting=Waiting(said.append))

    assert len(killed) == 1 and "ended while it ran the statement" in said[0]
    assert "it is asked again for 300 s" in said[1]
    assert found["rows"] == [{"n": residues()}]


@pytest.mark.faults
def test_a_statement_of_which_the_server_dies_twice_is_named(sql: SqlServer) -> None:
    ran = iter([True])
    again: list[str] = []

    def running() -> bool:
        return next(ran, False) or (len(again) == 1 and again.append("once") is None)

    def waiting(text: str) -> None:
        if "sent once more" in text:
            again.append(text)

    with supervised(sql, running) as killed, pytest.raises(UnreachableError) as raised:
        client.ask(sql.services, MINUTES, waiting=Waiting(waiting))

    assert len(killed) == 2
    assert "ended twice" in raised.value.what and MINUTES in raised.value.why
    assert client.ask(sql.services, SHORT)["rows"] == [{"n": ALL}], "and the server is there for others"


@pytest.fixture
def home(sql: SqlServer) -> Path:
    """Of the server, as `up` leaves it, but that nobody has started it."""
    services = Services(sql_url=sql.url, sql_user="analyst", sql_password=PASSWORD)
    services.save(Settings(home=sql.home).services_file)
    return sql.home


@contextmanager
def supervisor_of(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is recorded as the supervisor."""
    folders = folders_of(Settings(home=home))
    folders.make()
    with subprocess.Popen(["sleep", "600"]) as process:
        found = record.Record(part="supervisor", identity=identity_of(process.pid))
        record.save(folders, found.become("ready"))
        try:
            yield process
        finally:
            process.kill()
            record.forget(folders, "supervisor")


def test_a_server_that_is_away_is_asked_again_until_it_is_there(sql: SqlServer, home: Path) -> None:
    said: list[str] = []
    sql.kill()
    starting = threading.Thread(target=sql.start)
    starting.start()

    with supervisor_of(home):
        read = twinlake.read("orders", home=home, columns="order_id")
    asked = client.ask(sql.services, SHORT, waiting=Waiting(said.append))

    starting.join()
    assert read.num_rows == asked["rows"][0]["n"] == ALL
    assert said == []


def test_a_server_that_nobody_will_start_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Services(sql_url=f"http://127.0.0.1:{free_port()}", sql_user="analyst", sql_password=PASSWORD)
    away.save(Settings(home=tmp_path).services_file)
    began = time.monotonic()

    with pytest.raises(UnreachableError, match="the supervisor has ended") as raised:
        twinlake.read("orders", home=tmp_path)

    assert time.monotonic() - began < 30
    assert raised.value.what == "the SQL server does not answer" and "`twinlake up`" in raised.value.remedy


def test_it_is_waited_for_until_the_supervisor_has_ended(tmp_path: Path) -> None:
    away = Services(sql_url=f"http://127.0.0.1:{free_port()}", sql_user="analyst", sql_password=PASSWORD)
    away.save(Settings(home=tmp_path).services_file)
    tries: list[bool] = []

    with supervisor_of(tmp_path) as supervisor, pytest.raises(UnreachableError, match="supervisor has ended"):

        def check() -> None:
            check_sql_server_is_supervised(Settings(home=tmp_path))
            tries.append(True)
            if len(tries) == 3:
                supervisor.kill()
                supervisor.wait()

        client.ask(away, SHORT, waiting=Waiting(lambda text: None, check))

    assert len(tries) == 3


def test_what_is_refused_is_not_asked_again(sql: SqlServer) -> None:
    said: list[str] = []
    wrong = Services(sql_url=sql.url, sql_user="analyst", sql_password="wrong")

    began = time.monotonic()
    with pytest.raises(UsageError, match="was refused"):
        client.ask(wrong, SHORT, waiting=Waiting(said.append))
    with pytest.raises(UsageError, match="was refused"):
        client.ask(sql.services, "DROP VIEW serve.orders", waiting=Waiting(said.append))

    assert said == [] and time.monotonic() - began < client.AWAY_S / 2


def test_a_server_that_stays_away_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "AWAY_S", 1.0)
    said: list[str] = []

    with pytest.raises(UnreachableError, match="does not answer") as raised:
        client.ask(Services(sql_url=f"http://127.0.0.1:{free_port()}"), SHORT, waiting=Waiting(said.append))

    assert len(said) == 1 and "it was asked again for 1 s" in raised.value.why

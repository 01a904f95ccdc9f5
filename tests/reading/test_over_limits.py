"""What a statement over a limit is told: over HTTP, by command and `read`, by drivers of JDBC and ADBC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from typer.testing import CliRunner

import twinlake
from benchmarks.beside import HEAVY
from tests.reading.adbc import Adbc, AdbcError
from tests.reading.conftest import ALL, Released, SqlServer, connected, started
from tests.reading.test_doors import message
from twinlake import remote
from twinlake.base.errors import BusyError, TwinlakeError, UsageError
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.reading import client
from twinlake.reading.export_client import open_batches

LIMIT_S = 3
OVER_TIME = f"it ran longer than {LIMIT_S} s"
LARGE = "SELECT repeat('x', 1000000) AS x FROM range(0, 300, 1, 8)"
RANDOM = "SELECT randstr(100000, 0) AS x FROM range(0, 6000, 1, 100)"
"""600 MB, which nothing makes smaller."""


@pytest.fixture
def command(sql: SqlServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("TWINLAKE_HOME", str(sql.home))
    sql.services.save(Settings(home=sql.home).services_file)
    return lambda *arguments: CliRunner().invoke(build_app(), ["query", *arguments])


def test_rows_over_the_limit_are_counted_out_and_named(
    sql: SqlServer, command: Callable[..., Any], jdbc: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "SELECT order_id FROM serve.orders"
    found = client.ask(sql.services, asked, limit=5)
    told = command(asked, "--limit", "5")
    monkeypatch.setattr(remote, "MOST_ROWS", 5)
    with pytest.raises(UsageError) as read:
        twinlake.read("orders", home=sql.home)
    with closing(jdbc()) as connection:
        rows = connection.createStatement().executeQuery(asked)
        count = sum(1 for _ in iter(rows.next, False))

    assert (len(found["rows"]), found["truncated"]) == (5, True)
    assert told.stderr.splitlines()[-1] == "only the first 5 rows; there are more, see --limit"
    assert (read.value.why, read.value.remedy) == (
        "it has more than 5 rows", "ask for less with `where`, or take `read_batches`",
    )  # fmt: skip
    assert count == ALL, "over JDBC all are fetched, piece by piece"


@pytest.mark.faults
def test_bytes_over_the_limit_are_an_error_that_says_what_to_do(
    sql: SqlServer, command: Callable[..., Any], jdbc: Callable[..., Any]
) -> None:
    with pytest.raises(UsageError) as http:
        client.ask(sql.services, LARGE)
    with pytest.raises(UsageError) as arrow:  # what `read` asks
        client.ask_arrow(sql.services, LARGE, 1_000_000)
    told = command(LARGE, "--json")
    with closing(jdbc()) as connection, pytest.raises(Exception) as over_jdbc:
        connection.createStatement().executeQuery(RANDOM)

    for error in (http.value, arrow.value, told.exception):
        assert isinstance(error, TwinlakeError)
        assert error.what == "the query was stopped"
        assert error.why == "the answer has more than 268,435,456 bytes"
        assert error.remedy == (
            "ask for fewer rows or columns, for a file (`twinlake query --format`), or use JDBC"
        )
    assert message(over_jdbc.value).splitlines() == [
        "the query was stopped", "why: its result has more than 512.0 MiB",
        "do:  ask for fewer rows or columns",
    ]  # fmt: skip
    assert sql.rows("SELECT count(*) AS n FROM serve.orders") == [{"n": ALL}]


@pytest.fixture(scope="module")
def limited(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    server = SqlServer(
        home=released.lake.parent, scratch=tmp_path_factory.mktemp("limited"),
        more=(
            "--query-seconds", str(LIMIT_S), "--jdbc-seconds", str(LIMIT_S), "--export-seconds", str(LIMIT_S),
        ),
    )  # fmt: skip
    with started(server):
        yield server


@pytest.mark.faults
def test_time_over_the_limit_is_an_error_that_says_what_to_do(
    limited: SqlServer, analyst_jvm: Any, adbc: Callable[..., Adbc], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(limited.home))
    limited.services.save(Settings(home=limited.home).services_file)
    with pytest.raises(BusyError) as http:
        client.ask(limited.services, HEAVY)
    told = CliRunner().invoke(build_app(), ["query", HEAVY])
    with pytest.raises(BusyError) as read:
        twinlake.read("orders", home=limited.home, where=f"order_id > ({HEAVY})")
    with closing(connected(limited, analyst_jvm)()) as connection, pytest.raises(Exception) as over_jdbc:
        connection.createStatement().executeQuery(HEAVY)
    with pytest.raises(BusyError) as export:
        open_batches(limited.services, HEAVY)
    with pytest.raises(AdbcError, match=rf"(?s)the query was stopped.*{OVER_TIME}.*query_seconds in"):
        adbc(limited.flight)("rows", sql=HEAVY)

    assert export.value.why == OVER_TIME and "export_seconds in [limits]" in export.value.remedy
    for error in (http.value, told.exception, read.value):
        assert isinstance(error, BusyError)
        assert (error.what, error.why) == ("the query was stopped", OVER_TIME)
        assert "query_seconds in [limits]" in error.remedy
    assert message(over_jdbc.value).splitlines() == [
        "the query was stopped", f"why: {OVER_TIME}",
        "do:  ask for less, or set jdbc_seconds in [limits] of twinlake.toml",
    ]  # fmt: skip

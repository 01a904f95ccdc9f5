"""`twinlake queries` lists what the SQL server runs, and cancels one once the lake server has noted it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.lake_server import TOKEN, Lake, listening
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.app import build_app
from twinlake.config.settings import Services

QUERY = {
    "id": "0123abcd4567", "user": "ben", "endpoint": "jdbc", "state": "running", "sql": "SELECT 1,\n  2",
    "started_at": "2026-01-31T11:58:30Z", "seconds": 90.4, "memory_bytes": 7 << 20,
}  # fmt: skip
COMMAND = Callable[..., Result]


class Writing(Lake):
    """A lake server that takes what is to be in the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/audit/queries/"):
            self.written.append((request.url.path, json.loads(request.content)))
            return httpx.Response(200, json={})
        return super().__call__(request)


class Sql:
    """What the SQL server is asked: by whom, what, and how many acts were written down by then."""

    def __init__(self, lake: Writing) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.found: list[dict[str, Any]] = [QUERY]
        sql = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.headers["X-Twinlake-Query"] == "1"
                known = httpx.BasicAuth("admin", "a-password")._auth_header
                user = "admin" if self.headers["Authorization"] == known else "another"
                sql.asked.append((user, f"{self.command} {self.path}", len(lake.written)))
                body = json.dumps(QUERY if self.command == "POST" else sql.found).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def lake() -> Writing:
    return Writing()


@pytest.fixture
def sql(lake: Writing) -> Iterator[Sql]:
    made = Sql(lake)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def run(tmp_path: Path, lake: Writing, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> Iterator[COMMAND]:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    monkeypatch.setattr("twinlake.cli.jobs.this_user", lambda: "anna")
    with listening(lake) as url:
        Services(
            api_url=url, api_token=TOKEN, sql_url=sql.url, sql_user="analyst", sql_password="no",
            console_user="admin", console_password="a-password",
        ).save(tmp_path / "services.json")  # fmt: skip
        yield lambda *words: CliRunner().invoke(build_app("queries"), ["queries", *words])


def test_all_that_run_are_listed_by_the_login_that_sees_them(run: COMMAND, sql: Sql) -> None:
    shown = run().stdout.splitlines()

    assert shown[0].split() == ["id", "user", "by", "state", "seconds", "memory", "statement"]
    assert shown[1].split(maxsplit=6) == [
        "0123abcd4567", "ben", "jdbc", "running", "90", "7,340,032", "bytes  SELECT 1, 2",
    ]  # fmt: skip
    assert json.loads(run("--json").stdout) == [QUERY]
    assert sql.asked == [("admin", "GET /queries", 0)] * 2


def test_none_is_said(run: COMMAND, sql: Sql) -> None:
    sql.found = []
    assert run().stdout == "no query is running\n"


def test_one_is_cancelled_once_it_is_written_down_in_the_name_of_who_asks(
    run: COMMAND, sql: Sql, lake: Writing
) -> None:
    done = run("cancel", str(QUERY["id"]), "--reason", "the lake is needed")

    assert done.exit_code == 0 and "query 0123abcd4567 of ben is ending" in done.stdout
    assert lake.written == [("/audit/queries/0123abcd4567", {
        "user": "ben", "endpoint": "jdbc", "sql": QUERY["sql"], "by": "anna", "via": "cli",
        "why": "the lake is needed",
    })]  # fmt: skip
    assert sql.asked[-1] == ("admin", "POST /queries/0123abcd4567/cancel", 1)


def test_one_of_ones_own_login_needs_no_entry(run: COMMAND, sql: Sql, lake: Writing) -> None:
    sql.found = [{**QUERY, "user": "admin"}]
    run("cancel", str(QUERY["id"]))

    assert lake.written == [] and sql.asked[-1][1].startswith("POST")


def test_one_that_has_ended_and_an_empty_reason_are_refused(run: COMMAND, sql: Sql, lake: Writing) -> None:
    assert isinstance(run("cancel", str(QUERY["id"]), "--reason", " ").exception, UsageError)
    sql.found = []
    assert "has ended" in str(run("cancel", str(QUERY["id"])).exception)
    assert lake.written == []


def test_a_server_that_is_away_is_said(run: COMMAND, sql: Sql) -> None:
    sql.server.shutdown()
    sql.server.server_close()

    assert isinstance(run().exception, UnreachableError)

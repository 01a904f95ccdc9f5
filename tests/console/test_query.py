"""Statements go to the SQL server with the login of who is signed in; their rows are text, also as CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.console.conftest import Browser
from twinlake.base.errors import UsageError
from twinlake.config.settings import Services
from twinlake.console import statement

SignIn = Callable[[str], Browser]
HOSTILE = "<img src=x onerror=alert(1)>"
COLUMNS = [{"name": HOSTILE, "type": "string"}, {"name": "amount", "type": "decimal(12,2)"}]
ROWS: list[dict[str, Any]] = [
    {HOSTILE: HOSTILE, "amount": "-12.50"},
    {HOSTILE: "=1+1", "amount": None},
    {HOSTILE: "a\u202eb", "amount": "1.00"},
]
HEAD = {"columns": COLUMNS, "truncated": False, "release": 3, "stalled": [], "no_report": None}


class Answering:
    """The SQL server, as its client gives its answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.head: dict[str, Any] = dict(HEAD)
        self.error: Exception | None = None

    def _heard(self, services: Services, *of_statement: Any) -> None:
        self.asked.append((services.sql_user, services.sql_password, *of_statement))
        if self.error:
            raise self.error

    def ask(
        self, services: Services, sql: str, limit: int, as_of: str | None, waiting: Any
    ) -> dict[str, Any]:
        self._heard(services, sql, limit, as_of)
        return {**self.head, "rows": ROWS}

    def ask_each(
        self, services: Services, sql: str, limit: int, as_of: str | None, take: Any, waiting: Any
    ) -> Any:
        self._heard(services, sql, limit, as_of)
        rows: Iterator[dict[str, Any]] = iter(ROWS)
        return take(self.head, rows)


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch) -> Answering:
    found = Answering()
    monkeypatch.setattr(statement, "ask", found.ask)
    monkeypatch.setattr(statement, "ask_each", found.ask_each)
    return found


def test_a_statement_is_sent_as_the_person_who_is_signed_in(
    signed_in: SignIn, sql: Answering, passwords: dict[str, str]
) -> None:
    made = signed_in("analyst")

    made.send("/query", "/query", sql="SELECT 1", as_of="release:3")
    made.send("/query.csv", "/query", sql="SELECT 2", as_of="")

    login = ("the-analyst", passwords["analyst"])
    assert sql.asked == [
        (*login, "SELECT 1", statement.SHOWN, "release:3"),
        (*login, "SELECT 2", statement.MOST_IN_CSV, None),
    ]


def test_rows_are_a_table_of_text(signed_in: SignIn, sql: Answering) -> None:
    page = signed_in("analyst").send("/query", "/query", sql=f"SELECT '{HOSTILE}'").text

    assert "<img" not in page and page.count(html.escape(HOSTILE)) >= 3
    assert "3 rows." in page and "Release 3." in page and r"a\u202eb" in page
    assert '<td class="null">NULL</td>' in page


def test_it_is_said_that_there_are_more_rows_and_that_rows_are_old(signed_in: SignIn, sql: Answering) -> None:
    stalled = [{"table": "sales", "version": "v-1", "why": "a division by zero", "position": {}}]
    sql.head |= {"truncated": True, "stalled": stalled, "no_report": {"why": "nothing for 34 s"}}

    page = signed_in("analyst").send("/query", "/query", sql="SELECT 1").text

    assert "The first 500 rows; there are more" in page
    assert "sales does not keep up with its log: a division by zero" in page
    assert "These rows may be old: nothing for 34 s" in page


def test_a_csv_has_the_values_and_nothing_that_a_spreadsheet_runs(signed_in: SignIn, sql: Answering) -> None:
    answer = signed_in("analyst").send("/query.csv", "/query", sql="SELECT 1")

    assert answer.headers["content-disposition"] == 'attachment; filename="twinlake.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    found = list(csv.reader(io.StringIO(answer.text)))
    assert found == [[HOSTILE, "amount"], [HOSTILE, "-12.50"], ["'=1+1", ""], ["a\u202eb", "1.00"]]


def test_a_csv_that_would_not_be_whole_is_none(signed_in: SignIn, sql: Answering) -> None:
    sql.head["truncated"] = True

    answer = signed_in("analyst").send("/query.csv", "/query", sql="SELECT 1")

    assert answer.status_code == 400 and "there are more than 100,000" in answer.text


def test_an_error_says_what_why_and_what_to_do_and_the_statement_stays(
    signed_in: SignIn, sql: Answering
) -> None:
    sql.error = UsageError("the query failed", "there is no table x", "see `SHOW TABLES IN serve`")

    answer = signed_in("analyst").send("/query", "/query", sql="SELECT * FROM x")

    assert answer.status_code == 400 and "there is no table x" in answer.text
    assert "<code>SHOW TABLES IN serve</code>" in answer.text and "SELECT * FROM x</textarea>" in answer.text


def test_an_empty_statement_is_not_sent(signed_in: SignIn, sql: Answering) -> None:
    assert signed_in("analyst").send("/query", "/query", sql=" \r\n ").status_code == 400
    assert sql.asked == []


def test_who_is_not_let_in_by_the_sql_server_learns_why(signed_in: SignIn, sql: Answering) -> None:
    sql.error = UsageError("the request was refused", "its user or password is missing or wrong", "")

    answer = signed_in("analyst").send("/query", "/query", sql="SELECT 1")

    assert answer.status_code == 403 and "does not let the-analyst in" in answer.text

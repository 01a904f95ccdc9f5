"""Statements go to the SQL server with the login of who is signed in; their rows are text, also as CSV."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from markupsafe import escape
from pyarrow import parquet

from tests.console.conftest import Browser
from tests.console.test_metrics import queries, scraped
from twinlake.base.errors import BusyError, UsageError
from twinlake.config import users
from twinlake.config.settings import Services
from twinlake.console import downloads, statement
from twinlake.console.console import Console
from twinlake.console.downloads import _harmless
from twinlake.console.sessions import Session

SignIn = Callable[[str], Browser]
HOSTILE = "<img src=x onerror=alert(1)>"
COLUMNS = [{"name": HOSTILE, "type": "string"}, {"name": "amount", "type": "decimal(12,2)"}]
ROWS: list[dict[str, Any]] = [
    {HOSTILE: HOSTILE, "amount": "-12.50"},
    {HOSTILE: "=1+1", "amount": None},
    {HOSTILE: "a\u202eb", "amount": "1.00"},
]
HEAD = {"columns": COLUMNS, "truncated": False, "release": 3, "stalled": [], "no_report": None}


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TYPED = pa.table({
    "amount": pa.array([Decimal("-12.50"), None, Decimal("1.00")], pa.decimal128(12, 2)),
    "at": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
    "lines": pa.array([[{"sku": "a"}], [], None], pa.list_(pa.struct({"sku": pa.string()}))),
    "tags": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
})  # fmt: skip
"""What Arrow and Parquet keep and CSV does not."""


class Answering:
    """The SQL server, as its client gives its answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.head: dict[str, Any] = dict(HEAD)
        self.rows = ROWS
        self.error: Exception | None = None
        self.table = TYPED

    def _heard(self, services: Services, *of_statement: Any) -> None:
        self.asked.append((services.sql_user, services.sql_password, *of_statement))
        if self.error:
            raise self.error

    def ask(
        self, services: Services, sql: str, limit: int, as_of: str | None, waiting: Any
    ) -> dict[str, Any]:
        self._heard(services, sql, limit, as_of)
        return {**self.head, "rows": self.rows}

    def ask_each(
        self, services: Services, sql: str, limit: int, as_of: str | None, take: Any, waiting: Any
    ) -> Any:
        self._heard(services, sql, limit, as_of)
        rows: Iterator[dict[str, Any]] = iter(ROWS)
        return take(self.head, rows)

    def ask_batches(
        self, services: Services, sql: str, limit: int, as_of: str | None, take: Any, waiting: Any
    ) -> Any:
        self._heard(services, sql, limit, as_of)
        facts = {"twinlake": json.dumps({"truncated": self.head["truncated"], "release": 3})}
        table = self.table.replace_schema_metadata(facts)
        take(table.slice(0, 1).to_reader())  # it broke off, and is asked again
        return take(table.to_reader(max_chunksize=2))


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch) -> Answering:
    found = Answering()
    monkeypatch.setattr(statement, "ask", found.ask)
    monkeypatch.setattr(downloads, "ask_each", found.ask_each)
    monkeypatch.setattr(downloads, "ask_batches", found.ask_batches)
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
        (*login, "SELECT 2", downloads.MOST_IN_CSV, None),
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

    assert "The first 3 rows; there are more" in page
    assert "sales does not keep up with its log: a division by zero" in page
    assert "These rows may be old: nothing for 34 s" in page


def test_rows_that_fill_a_page_are_fewer_and_what_turns_text_costs_no_time(
    signed_in: SignIn, sql: Answering
) -> None:
    sql.rows = [{"a": "\u202e" * 1_000_000} for _ in range(30)]
    began = time.monotonic()
    long = signed_in("analyst").send("/query", "/query", sql="SELECT 1").text
    took = time.monotonic() - began
    sql.rows = [{f"c{number}": "\u202e" * 2_000 for number in range(10)} for _ in range(500)]
    turning = signed_in("analyst").send("/query", "/query", sql="SELECT 1").text
    sql.rows = [{f"c{number}": "x" for number in range(1_990)} for _ in range(500)]
    wide = signed_in("analyst").send("/query", "/query", sql="SELECT 1").text

    assert "30 rows." in long and "… (1,000,000 characters)" in long and took < 5
    assert "The first 95 rows; there are more" in wide and len(wide) < 2 * statement.LARGEST_PAGE
    assert "The first 198 rows; there are more" in turning and len(turning) < 2 * statement.LARGEST_PAGE


def test_one_person_has_half_of_the_turns(console: Console) -> None:
    known = users.load(console.users_file)
    ann, ben = (
        Session(user=known[name], password="", began=0, used=0) for name in ("the-analyst", "the-operator")
    )
    go_on = threading.Event()

    async def ask() -> tuple[list[Any], str]:
        sent = console.statements.sent
        many = [asyncio.create_task(sent(go_on.wait, ann)) for _ in range(statement.OF_ONE)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="4 queries and files of the-analyst are under way"):
            await sent(lambda: "", ann)
        answer = await sent(lambda: "here", ben)
        go_on.set()
        return await asyncio.gather(*many), answer

    assert asyncio.run(ask()) == ([True] * statement.OF_ONE, "here")
    assert queries(scraped(console)) | {"busy": 1, "ok": statement.OF_ONE + 1} == queries(scraped(console))
    assert asyncio.run(console.statements.sent(lambda: "again", ann)) == "again"


def test_a_file_leaves_its_turn_whatever_became_of_it(signed_in: SignIn, sql: Answering) -> None:
    made = signed_in("analyst")
    answers = []
    for error in (*[None] * statement.OF_ONE, UsageError("wrong"), BusyError("busy"), None):
        sql.error = error
        answers.append(made.send("/query.csv", "/query", sql="SELECT 1").status_code)

    assert answers == [*[200] * statement.OF_ONE, 400, 409, 200]


def test_a_csv_has_the_values_and_nothing_that_a_spreadsheet_runs(signed_in: SignIn, sql: Answering) -> None:
    answer = signed_in("analyst").send("/query.csv", "/query", sql="SELECT 1")

    assert answer.headers["content-disposition"] == 'attachment; filename="twinlake.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    found = list(csv.reader(io.StringIO(answer.text)))
    assert found == [[HOSTILE, "amount"], [HOSTILE, "-12.50"], ["'=1+1", ""], ["a\u202eb", "1.00"]]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t1", " =1", "\n=1", "\uff1d1"])
def test_a_text_that_may_be_a_formula_begins_with_an_apostrophe(text: str) -> None:
    assert (_harmless(text), _harmless(f"a{text}")) == (f"'{text}", f"a{text}")


def test_a_csv_that_would_not_be_whole_is_none(signed_in: SignIn, sql: Answering) -> None:
    sql.head["truncated"] = True

    answer = signed_in("analyst").send("/query.csv", "/query", sql="SELECT 1")

    assert answer.status_code == 400 and "there are more than 100,000" in answer.text


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_of_too_many_bytes_is_none(
    signed_in: SignIn, sql: Answering, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(downloads, "MOST_BYTES", 3)

    answer = signed_in("analyst").send(f"/query.{ending}", "/query", sql="SELECT 1")

    assert answer.status_code == 400 and "they are more than 3 bytes" in answer.text


@pytest.mark.parametrize("groups", [1, downloads._GROUP_BYTES], ids=["many groups", "one group"])
def test_a_parquet_file_has_every_value_in_its_type(
    signed_in: SignIn, sql: Answering, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    monkeypatch.setattr(downloads, "_GROUP_BYTES", groups)

    answer = signed_in("analyst").send("/query.parquet", "/query", sql="SELECT 1", as_of="release:3")

    assert answer.headers["content-disposition"] == 'attachment; filename="twinlake.parquet"'
    assert parquet.read_table(io.BytesIO(answer.content)).equals(TYPED)
    assert sql.asked[-1][2:] == ("SELECT 1", downloads.MOST_ROWS, "release:3")


def test_an_arrow_file_has_every_value_in_its_type_and_what_is_known_of_them(
    signed_in: SignIn, sql: Answering
) -> None:
    answer = signed_in("analyst").send("/query.arrow", "/query", sql="SELECT 1")

    assert answer.headers["content-disposition"] == 'attachment; filename="twinlake.arrow"'
    found = pa.ipc.open_file(io.BytesIO(answer.content)).read_all()
    assert found.equals(TYPED)
    assert json.loads(found.schema.metadata[b"twinlake"]) == {"truncated": False, "release": 3}


def test_what_parquet_has_no_type_for_is_said(signed_in: SignIn, sql: Answering) -> None:
    sql.table = pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})

    answer = signed_in("analyst").send("/query.parquet", "/query", sql="SELECT 1")

    assert answer.status_code == 400 and "Parquet has no such type" in answer.text
    assert signed_in("analyst").send("/query.arrow", "/query", sql="SELECT 1").status_code == 200


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_would_not_be_whole_is_none(signed_in: SignIn, sql: Answering, ending: str) -> None:
    sql.head["truncated"] = True

    answer = signed_in("analyst").send(f"/query.{ending}", "/query", sql="SELECT 1")

    assert answer.status_code == 400 and "there are more than 1,000,000" in answer.text


def test_a_link_fills_the_editor_and_runs_nothing(signed_in: SignIn, sql: Answering) -> None:
    made = signed_in("analyst")
    statement_ = "SELECT '<b>&\"ä' AS a\nFROM serve.orders"
    ran = made.send("/query", "/query", sql=statement_, as_of="release:3")
    (link,) = re.findall(r'href="(/query\?[^"]+)"', ran.text)
    asked = len(sql.asked)

    page = made.get(html.unescape(link))

    assert f">\n{escape(statement_)}</textarea>" in page.text
    assert 'value="release:3"' in page.text and "has not run" in page.text
    assert len(sql.asked) == asked and 'aria-label="Rows"' not in page.text


def test_a_statement_that_is_too_long_has_no_link(signed_in: SignIn, sql: Answering) -> None:
    page = signed_in("analyst").send("/query", "/query", sql=f"SELECT '{'x' * statement.LONGEST_LINK}'").text

    assert "too long for a link" in page and "/query?" not in page


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

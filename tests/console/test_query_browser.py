"""The Query page in a real browser: completion by keyboard, links that run nothing, plots, what runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

import pytest

from tests import chromium
from tests.cli.test_query import laid_out
from tests.console import test_browser
from tests.console.conftest import HOSTILE
from tests.console.test_browser import INKED, refused, sign_in
from twinlake.base.waiting import wait_for

pytestmark = test_browser.pytestmark
# the same process and browser as there, over a SQL server of this file's own
address, browser, lake = test_browser.address, test_browser.browser, test_browser.lake
port, process = test_browser.port, test_browser.process

NAMES = {
    "schemas": ["serve", "release_3", "release_12"],
    "tables": [
        {"name": "orders",
         "columns": [{"name": "order_id", "type": "bigint"}, {"name": HOSTILE, "type": "string"}]},
        {"name": "sales", "columns": [{"name": "total", "type": "decimal(12,2)"}]},
    ],
}  # fmt: skip
COLUMNS = [
    {"name": "day", "type": "timestamp"}, {"name": HOSTILE, "type": "string"},
    {"name": "total", "type": "decimal(12,2)"}, {"name": "n", "type": "bigint"},
]  # fmt: skip
ROWS = [
    {"day": f"2026-01-{day:02}T00:00:00Z", HOSTILE: region, "total": f"{day * sign}.50", "n": None}
    for day in range(1, 31)
    for region, sign in (("north", 1), ("south", -1))
]
ANSWER = {"columns": COLUMNS, "rows": ROWS, "truncated": True, "release": 3, "stalled": [], "no_report": None}
RUNS = {
    "id": "0123abcd4567", "user": "admin", "endpoint": "http", "state": "running",
    "sql": f"SELECT '{HOSTILE}'", "started_at": "2026-01-31T11:58:30Z", "seconds": 90.0,
    "memory_bytes": 7 << 20,
}  # fmt: skip


class Sql:
    """A SQL server with one answer; `asked` are the statements that it was sent, `ended` the queries."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = ANSWER
        self.asked: list[str] = []
        self.running: list[dict[str, Any]] = []
        self.ended: list[str] = []
        sql = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known: dict[str, Any] = {"/names": NAMES, "/queries": sql.running}
                self.say(json.dumps(known[self.path]))

            def do_POST(self) -> None:
                if self.path == "/query":
                    sql.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["sql"])
                    self.say(laid_out(sql.answer))
                    return
                sql.ended.append(self.path)
                sql.running = []
                self.say(json.dumps(RUNS))

            def say(self, text: str) -> None:
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Sql]:
    made = Sql()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def sql(server: Sql) -> str:
    return f"http://127.0.0.1:{server.server.server_port}"


def suggested(browser: Any) -> list[str]:
    found = chromium.texts(browser, "#completions:not([hidden]) li")
    return [one.split("\n")[0] for one in found]


def until_suggested(browser: Any, text: str) -> None:
    wait_for(f"{text} to be suggested", lambda: any(text in one for one in suggested(browser)) or None, 30)


def is_as_wide_as_the_phone(browser: Any) -> bool:
    wide: int = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    return wide <= 0


def plotted(browser: Any, address: str) -> Any:
    """The canvas with the answer of the server, which an analyst has asked."""
    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/query")
    browser.find_element("id", "sql").send_keys("SELECT 1")
    browser.find_element("css selector", "main form button").click()
    wait_for("the plot", lambda: browser.find_elements("css selector", "canvas") or None, 30)
    return browser.find_element("css selector", "canvas")


def test_tables_and_columns_are_completed_by_keyboard_and_ctrl_enter_runs(
    browser: Any, address: str, server: Sql
) -> None:
    from selenium.webdriver.common.keys import Keys

    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/query")
    editor = browser.find_element("id", "sql")
    editor.send_keys("SELECT * FROM or")
    until_suggested(browser, "serve.orders")
    assert editor.get_attribute("aria-activedescendant") in (None, ""), "typing chooses nothing"
    editor.send_keys(Keys.ESCAPE)
    assert suggested(browser) == []
    editor.send_keys(Keys.CONTROL, " ")
    until_suggested(browser, "serve.orders")
    active = editor.get_attribute("aria-activedescendant")
    assert browser.find_element("id", active).get_attribute("aria-selected") == "true"
    editor.send_keys(Keys.ENTER)
    assert editor.get_attribute("value") == "SELECT * FROM serve.orders"

    editor.send_keys(" o WHERE o.")
    until_suggested(browser, "order_id")
    assert is_as_wide_as_the_phone(browser) and any(HOSTILE in one for one in suggested(browser))
    assert browser.find_elements("css selector", "img") == []
    editor.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER, " > 0")
    moments = browser.find_elements("css selector", "#moments option")
    assert [one.get_attribute("value") for one in moments] == ["release:12", "release:3"]
    assert server.asked == [] and refused(browser) == []

    editor.send_keys(Keys.CONTROL, Keys.ENTER)
    wait_for("the rows", lambda: browser.find_elements("css selector", "tbody tr") or None, 30)

    assert server.asked == ["SELECT * FROM serve.orders o WHERE o.order_id > 0"]


def test_a_link_shows_its_statement_and_runs_it_when_it_is_sent(
    browser: Any, address: str, server: Sql
) -> None:
    from selenium.webdriver.common.keys import Keys

    asked = f"SELECT '{HOSTILE}'\nFROM serve.orders"
    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/query?{urlencode({'sql': asked, 'as_of': 'release:3'})}")

    editor = browser.find_element("id", "sql")
    assert editor.get_attribute("value") == asked and "has not run" in browser.page_source
    assert browser.find_elements("css selector", "img, tbody") == [] and server.asked == []
    editor.send_keys(Keys.CONTROL, Keys.ENTER)
    wait_for("the rows", lambda: browser.find_elements("css selector", "tbody tr") or None, 30)
    assert server.asked == [asked]
    link = browser.find_element("partial link text", "Link to this query").get_attribute("href")
    browser.get(link)
    assert browser.find_element("id", "sql").get_attribute("value") == asked and len(server.asked) == 1


def test_numbers_are_plotted_over_time_with_a_line_for_each_text_and_by_text(
    browser: Any, address: str, server: Sql
) -> None:
    from selenium.webdriver.support.select import Select

    canvas = plotted(browser, address)

    assert canvas.get_attribute("aria-label") == "By day: north from 1.5 to 30.5; south from -30.5 to -1.5"
    inked = browser.execute_script(INKED, canvas)
    assert sum(inked) > 0.9 * len(inked), "a line over all of the time"
    note = browser.find_element("css selector", ".result-plot .age").text
    assert f"Of the first {len(ROWS)} rows" in note and "UTC" in note
    assert len(browser.find_elements("css selector", "tbody tr")) >= len(ROWS), "the table has all of it too"

    over, numbers, _ = (Select(one) for one in browser.find_elements("css selector", ".result-plot select"))
    over.select_by_visible_text(HOSTILE)
    numbers.select_by_visible_text("total")

    canvas = browser.find_element("css selector", "canvas")
    assert canvas.get_attribute("aria-label") == f"By {HOSTILE}: total from -25.5 to 25.5"
    assert "10 more rows are not drawn" in browser.find_element("css selector", ".result-plot .age").text
    assert browser.find_elements("css selector", "img") == [] and refused(browser) == []
    assert is_as_wide_as_the_phone(browser) and browser.title == "Query: Twinlake"


def test_a_plot_says_years_and_small_numbers_and_which_rows_it_leaves_out(
    browser: Any, address: str, server: Sql
) -> None:
    from selenium.webdriver.support.select import Select

    columns = [("month", "timestamp"), ("region", "string"), ("rate", "double"), ("open", "interval day")]
    rows = [
        {"month": f"{year}-{month:02}-01T00:00:00Z", "region": "north", "rate": 0.0004 * month, "open": "1"}
        for year in range(2020, 2026)
        for month in range(1, 13)
    ]
    server.answer = {
        **ANSWER, "columns": [{"name": name, "type": type_} for name, type_ in columns],
        "rows": [*rows, {**rows[-1], "rate": 0.0031}],
    }  # fmt: skip
    canvas = plotted(browser, address)

    assert canvas.get_attribute("aria-label") == "By month: north from 0.0004 to 0.0048"
    note = browser.find_element("css selector", ".result-plot .age").text
    assert "Not drawn, for another row has the place on the line: 1." in note
    over = Select(browser.find_elements("css selector", ".result-plot select")[0])
    assert [one.text for one in over.options] == ["month", "region"], "the only number is what is plotted"
    dates = 'import("/static/plots.js").then(({dates}) => arguments[0](dates([1577836800, 1640995200])))'
    found = browser.execute_async_script(dates)
    assert found == ["Jan 2020", "Jan 2022"] and refused(browser) == []


def test_what_runs_comes_and_goes_by_itself_and_is_cancelled(browser: Any, address: str, server: Sql) -> None:
    sign_in(browser, address, "admin", "secret")
    browser.get(f"{address}/queries")
    assert "No query is running." in browser.page_source
    server.running = [RUNS]
    wait_for("the query", lambda: browser.find_elements("id", "cancel-0123abcd4567") or None, 30)
    assert HOSTILE in " ".join(chromium.texts(browser, "tbody")) and is_as_wide_as_the_phone(browser)

    browser.find_element("id", "cancel-0123abcd4567").click()
    wait_for("the form", lambda: "Cancel query" in " ".join(chromium.texts(browser, "h1")) or None, 30)
    assert HOSTILE in " ".join(chromium.texts(browser, "pre"))
    browser.find_element("css selector", "main form button").click()
    wait_for("the list", lambda: "No query is running." in browser.page_source or None, 30)

    assert server.ended == ["/queries/0123abcd4567/cancel"]
    assert browser.find_elements("css selector", "img") == [] and refused(browser) == []

"""A real browser, the real process of the console, and a lake server that answers as the real one does.

What a browser alone shows: that its policy refuses code in a page, that a value is text and never a picture,
that the page refreshes itself, and grows old by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import chromium
from tests.broker import free_port
from tests.cli.lake_server import TOKEN, Lake, listening
from tests.console import release_answers, table_answers, topic_answers
from tests.console.conftest import HOSTILE, RUNNING, STATUS, VERSION, hostile
from tests.project import PROJECT
from twinlake.alarms.history import History, Point, TablePoint, TopicPoint
from twinlake.base.waiting import wait_for
from twinlake.config import users
from twinlake.config.settings import Services
from twinlake.releases.shown import as_shown
from twinlake.services.folders import Folders
from twinlake.services.supervise import record
from twinlake.services.supervise.process import identity_of

pytestmark = [pytest.mark.faults, chromium.needed]
REPORT = (
    "<!doctype html><style>p { width: 321px }</style><p>the report</p><img src='/static/icon.svg'>"
    "<script>document.querySelector('p').textContent = 'run'; top.document.title = 'run'</script>"
)
PHONE = (390, 844)
INKED = """
const [canvas] = arguments, plot = canvas.closest(".uplot"), over = plot.querySelector(".u-over");
const ratio = canvas.width / canvas.clientWidth, left = Math.round(over.offsetLeft * ratio);
const width = Math.round(over.clientWidth * ratio), height = Math.round(over.clientHeight * ratio);
const probe = document.createElement("canvas").getContext("2d");
probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--plot-0");
probe.fillRect(0, 0, 1, 1);
const ink = probe.getImageData(0, 0, 1, 1).data;
const top = Math.round(over.offsetTop * ratio);
const dots = canvas.getContext("2d").getImageData(left, top, width, height).data;
return Array.from({length: width}, (_, x) => {
  for (let y = 0; y < height; y++) {
    const at = 4 * (y * width + x);
    if (dots[at + 3] > 100 && [0, 1, 2].every((i) => Math.abs(dots[at + i] - ink[i]) < 40)) return true;
  }
  return false;
});
"""
"""By each column of a plot, from left to right, whether its first line is there."""
ASKED = """
return performance.getEntriesByType("resource").map((one) => one.name.replace(location.origin, ""));
"""


class Answering(Lake):
    """The lake server, with what a test gives it."""

    releases: list[dict[str, Any]] = release_answers.releases()
    plan = release_answers.facts()
    masked = staticmethod(lambda told: told)

    def __init__(self) -> None:
        super().__init__()
        self.status = STATUS

    def __call__(self, request: httpx.Request) -> httpx.Response:
        known: dict[str, Any] = {
            "/status": self.status, "/releases": self.releases[:1], "/plans": [self.plan.summary()],
            f"/plans/{self.plan.plan.id}": self.plan.to_json(), "/tables/sales": table_answers.table(),
            "/topics/orders": topic_answers.topic(),
        }  # fmt: skip
        if request.url.path in known:
            return httpx.Response(200, json=self.masked(known[request.url.path]))
        return httpx.Response(200, json=[RUNNING])


@pytest.fixture
def lake() -> Answering:
    return Answering()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def sql(lake: Answering) -> Iterator[str]:
    """The address of a SQL server that has one report, which would run if it could, and what it compares."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            if self.path.startswith("/comparisons/"):
                found = lake.masked([as_shown(one) for one in lake.plan.diffs])
                self.wfile.write(json.dumps(found).encode())
            elif self.path.startswith("/gates/"):
                assert lake.plan.gate is not None
                self.wfile.write(json.dumps(lake.masked(lake.plan.gate.to_json())).encode())
            else:
                self.wfile.write(REPORT.encode())

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def process(
    tmp_path: Path, lake: Answering, sql: str, port: int
) -> Iterator[subprocess.Popen[bytes]]:
    """That of a console, which asks this lake server."""
    file, folders = tmp_path / "access" / "users", Folders(home=tmp_path)
    with listening(lake) as url, open(tmp_path / "console.log", "wb") as out:
        Services(api_url=url, api_token=TOKEN, sql_url=sql).save(tmp_path / "services.json")
        folders.make()
        me = record.Record(part="supervisor", state="ready", identity=identity_of(os.getpid()))
        record.save(folders, me)  # this process: it ends the console, and starts nothing else
        users.ensure(file, {"admin": "secret", "analyst": "reader"}, "analyst")
        started = subprocess.Popen(
            [sys.executable, "-m", "twinlake.console", "--home", str(tmp_path), "--project", str(PROJECT),
             "--users", str(file), "--port", str(port)],
            cwd=PROJECT, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            yield started
        finally:
            started.terminate()
            started.wait(20)


@pytest.fixture
def address(process: subprocess.Popen[bytes], port: int) -> str:
    """Where it answers."""
    found = f"http://127.0.0.1:{port}"

    def answers() -> bool | None:
        return httpx.get(f"{found}/health", trust_env=False).is_success or None

    wait_for("the console", answers, 60, unready=(httpx.HTTPError,))
    return found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    driver = chromium.started(tmp_path / "profile", PHONE)
    try:
        yield driver
    finally:
        driver.quit()


def sign_in(browser: Any, address: str, name: str, password: str) -> None:
    """By keyboard alone."""
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{address}/sign-in")
    browser.switch_to.active_element.send_keys(name, Keys.TAB)
    browser.switch_to.active_element.send_keys(password, Keys.ENTER)
    wait_for("the page after the sign-in", lambda: "/sign-in" not in browser.current_url or None, 30)


def said(browser: Any) -> str:
    return " ".join(chromium.texts(browser, "h1"))


def refused(browser: Any) -> list[str]:
    """What the browser has refused because of the policy."""
    messages = [one["message"] for one in browser.get_log("browser")]
    return [one for one in messages if "Content Security Policy" in one]


def test_home_says_well_then_by_itself_what_is_stalled_and_then_that_it_is_not_known(
    browser: Any, address: str, lake: Answering
) -> None:
    sign_in(browser, address, "admin", "secret")
    wait_for("the first figures", lambda: said(browser) == "All is well." or None, 30)
    assert refused(browser) == []
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, "a phone would have to be pushed to and fro"

    error = {"what": HOSTILE, "why": HOSTILE, "remedy": HOSTILE}
    lake.status = {**STATUS, "versions": [{**VERSION, "stalled": True, "error": error}]}
    wait_for("the page to say so", lambda: "needs a person" in said(browser) or None, 30)

    assert HOSTILE in said(browser) and browser.find_elements("css selector", "img") == []
    assert browser.title == "Home: Twinlake"


def test_a_page_whose_console_has_died_does_not_say_well(
    browser: Any, address: str, process: subprocess.Popen[bytes]
) -> None:
    sign_in(browser, address, "admin", "secret")
    wait_for("the first figures", lambda: said(browser) == "All is well." or None, 30)

    process.kill()

    wait_for("the page to grow old", lambda: "has not answered for" in said(browser) or None, 60)


def test_an_analyst_is_refused_an_act_and_what_they_give_is_shown_as_text(
    browser: Any, address: str
) -> None:
    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/jobs")
    assert browser.find_elements("css selector", "td button") == []
    browser.execute_script(
        "const form = document.querySelector('.who'); form.action = '/jobs/j1/cancel'; form.submit()"
    )
    wait_for("the refusal", lambda: said(browser) == "That did not work" or None, 30)
    assert "analyst may not do that" in browser.find_element("css selector", "main").text

    browser.get(f"{address}/query")
    browser.find_element("id", "sql").send_keys(HOSTILE)
    browser.find_element("id", "as_of").send_keys(HOSTILE)
    browser.find_element("css selector", "main form button").click()
    wait_for("the answer", lambda: browser.find_elements("css selector", "[role=alert]") or None, 30)

    assert browser.find_element("id", "sql").get_attribute("value") == HOSTILE
    assert browser.find_elements("css selector", "img") == [] and browser.title == "Query: Twinlake"


def test_a_report_is_shown_in_its_style_and_what_it_has_in_it_does_not_run(
    browser: Any, address: str, lake: Answering
) -> None:
    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/plans/{lake.plan.plan.id}")
    assert refused(browser) == []  # of the page itself

    browser.execute_script("document.querySelector('iframe').closest('details').open = true")
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    text = browser.find_element("css selector", "p")
    assert (text.text, text.value_of_css_property("width")) == ("the report", "321px")
    assert browser.execute_script("return document.images[0].naturalWidth") == 0, "it was loaded"
    browser.switch_to.default_content()

    assert browser.title.startswith("Plan ")


def test_a_plan_is_plotted_blue_against_green_over_time(browser: Any, address: str, lake: Answering) -> None:
    sign_in(browser, address, "analyst", "reader")
    browser.get(f"{address}/plans/{lake.plan.plan.id}")
    wait_for("the plots", lambda: len(browser.find_elements("css selector", "canvas")) == 3 or None, 30)

    amount = browser.find_elements("css selector", ".chart")[0]
    assert amount.find_element("css selector", "h3").text == "Sum of amount per hour"
    names = [one.text for one in amount.find_elements("css selector", ".u-legend .u-label")]
    assert names[1:] == ["blue", "green"]
    inked = browser.execute_script(INKED, amount.find_element("css selector", "canvas"))
    thirds = [any(inked[len(inked) * n // 6 : len(inked) * (n + 1) // 6]) for n in range(1, 5)]
    assert thirds == [True] * 4, "blue goes from side to side"
    assert refused(browser) == []
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, "a phone would have to be pushed to and fro"

    lake.masked = hostile  # type: ignore[assignment]
    browser.refresh()
    wait_for("the texts", lambda: HOSTILE in " ".join(chromium.texts(browser, "main")) or None, 30)
    assert browser.find_elements("css selector", "img") == [] and browser.title.startswith("Plan ")


@pytest.mark.parametrize(
    "path", ["/releases", "/releases/4", "/plans/ID", "/plans/ID/promote", "/tables/sales", "/topics/orders"]
)
def test_what_others_have_written_is_text_on_every_page(
    browser: Any, address: str, lake: Answering, path: str
) -> None:
    lake.masked = hostile
    sign_in(browser, address, "admin", "secret")

    browser.get(address + path.replace("ID", lake.plan.plan.id))

    assert HOSTILE in browser.find_element("css selector", "main").text
    assert browser.find_elements("css selector", "img") == [] and "Twinlake" in browser.title
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0 and refused(browser) == []


def test_plots_are_drawn_with_gaps_for_what_is_not_known_and_names_are_text(
    browser: Any, address: str, tmp_path: Path
) -> None:
    history = History(tmp_path / "run" / "history")
    now = int(time.time())
    for minute in (*range(-600, -300), *range(-60, 0)):
        records = 600 * (minute + 600)
        topic = TopicPoint(
            records=records, valid=records, invalid=0, too_late=0, late=0, lag_records=9, lag_seconds=0.5
        )  # fmt: skip
        table = TablePoint(freshness_seconds=0.5, allowed_seconds=30.0)
        history.append(
            Point(at=now + 60 * minute, disk_free=10**10, topics={HOSTILE: topic}, tables={HOSTILE: table})
        )

    sign_in(browser, address, "analyst", "reader")
    wait_for("the plots", lambda: len(browser.find_elements("css selector", "canvas")) == 4 or None, 30)

    lag = browser.find_elements("css selector", ".chart")[1]
    legend = lag.find_element("css selector", ".u-legend")
    assert HOSTILE in legend.text and browser.find_elements("css selector", "img") == []
    assert browser.title == "Home: Twinlake" and refused(browser) == []
    assert HOSTILE in lag.find_element("css selector", "canvas").get_attribute("aria-label")
    inked = browser.execute_script(INKED, lag.find_element("css selector", "canvas"))
    by_hour = [any(inked[len(inked) * n // 24 : len(inked) * (n + 1) // 24]) for n in range(24)]
    assert by_hour[15:18] == [True] * 3, "the line of ten to five hours ago"
    assert by_hour[20:22] == [False] * 2, "the gap until an hour ago"
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, "a phone would have to be pushed to and fro"
    values = [one.text for one in legend.find_elements("css selector", ".u-value")]
    assert values[1] == "9", "the last value, while nobody points at another"
    wait_for("a refresh", lambda: "/part/home" in browser.execute_script(ASKED) or None, 30)
    asked = browser.execute_script(ASKED)
    assert [path for path in asked if "/part/history" in path] == ["/part/history?of=home&name=&days=1"]
    assert all(path.startswith("/") for path in asked), "something is loaded from elsewhere"

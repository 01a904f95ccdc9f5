"""What a scrape says of the real console: its process, its requests, statements to a real SQL server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.broker import free_port
from tests.metrics.scraping import Scraped, get, scrape
from tests.project import PROJECT
from tests.reading.conftest import PASSWORD, SCRAPER, SqlServer
from twinlake.base.waiting import wait_for
from twinlake.console.metrics import OUTCOMES
from twinlake.metrics.catalogue import CONSOLE, metrics_of
from twinlake.metrics.options import words


@pytest.fixture
def ports(sql: SqlServer, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Of the pages and of the metrics of a console that asks this SQL server, and lets in its readers."""
    sql.services.save(tmp_path / "services.json")
    page, metrics = free_port(), free_port()
    with open(tmp_path / "console.log", "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "twinlake.console", "--home", str(tmp_path), "--project", str(PROJECT),
             "--users", str(sql.scratch / "password"), "--port", str(page),
             *words("127.0.0.1", metrics, sql.scratch / "metrics")],
            cwd=PROJECT, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
    try:
        yield page, metrics
    finally:
        process.terminate()
        assert process.wait(20) in (0, -15)


def queries(found: Scraped) -> dict[str, float]:
    """By outcome."""
    samples = found.having("twinlake_console_queries_total")
    return {dict(of)["outcome"]: count for of, count in samples.items()}


def token(browser: httpx.Client, path: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', browser.get(path).text)
    assert found
    return found[1]


def test_a_scrape_has_every_metric_of_the_console_and_says_what_a_person_did(
    sql: SqlServer, ports: tuple[int, int]
) -> None:
    page, metrics = ports
    url = f"http://127.0.0.1:{metrics}/metrics"

    def ready() -> Scraped | None:
        now = scrape(url, SCRAPER)
        return now if now.value("twinlake_ready") == 1 else None

    before = wait_for("the console", ready, 90, unready=(httpx.HTTPError,))
    with httpx.Client(base_url=f"http://127.0.0.1:{page}", trust_env=False, timeout=120) as browser:
        given = {"name": "analyst", "password": PASSWORD, "form_token": token(browser, "/sign-in")}
        assert browser.post("/sign-in", data=given).status_code == 303
        for statement in ("SELECT count(*) AS orders FROM serve.orders", "SELECT * FROM serve.nothing"):
            sent = {"sql": statement, "as_of": "", "form_token": token(browser, "/query")}
            answer = browser.post("/query", data=sent)
        assert answer.status_code == 400
        wrong = browser.post("/query", data={"sql": "SELECT 1", "form_token": "x"})
        assert wrong.status_code == 403
        found = scrape(url, SCRAPER)

    assert {one.name: one.type for one in metrics_of(CONSOLE)}.items() <= before.families.items()
    assert queries(before) == dict.fromkeys(OUTCOMES, 0)
    assert queries(found) == {**queries(before), "ok": 1, "error": 1}
    assert (before.value("twinlake_console_sessions"), found.value("twinlake_console_sessions")) == (0, 1)
    of_query = {status: found.value("twinlake_console_requests_total", page="/query", status=status)
                for status in ("200", "400", "403")}  # fmt: skip
    assert of_query == {"200": 3, "400": 1, "403": 1}
    assert found.value("twinlake_console_requests_total", page="/sign-in", status="303") == 1
    assert found.value("twinlake_scrape_failed_groups") == 0
    memory = found.value("twinlake_python_resident_memory_bytes") or 0
    print(f"the console holds {memory / 1e6:.0f} MB")
    assert 20e6 < memory < 500e6
    hidden = (PASSWORD, SCRAPER[1], "analyst", "serve.", "SELECT", str(sql.home))
    assert [one for one in hidden if one in found.text] == []


def test_a_readers_login_opens_no_metrics_and_the_scrapers_no_page(ports: tuple[int, int]) -> None:
    page, metrics = ports
    url = f"http://127.0.0.1:{metrics}/metrics"

    def answered() -> int:
        return get(url).status_code

    assert wait_for("the console", answered, 90, unready=(httpx.HTTPError,)) == 401
    assert get(url, ("analyst", PASSWORD)).status_code == 401
    assert get(url, SCRAPER).status_code == 200
    assert get(f"http://127.0.0.1:{page}/metrics", SCRAPER).status_code == 404

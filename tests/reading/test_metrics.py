"""What a scrape of a running SQL server says of statements over each endpoint, however they end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.metrics.scraping import Scraped, get, scrape
from tests.reading.conftest import PASSWORD, SCRAPER, SqlServer
from twinlake.base.waiting import wait_for
from twinlake.metrics.catalogue import SQL, metrics_of
from twinlake.reading.metrics import JDBC, OUTCOMES

LONG = "SELECT sum(a.id * b.id % 7) AS n FROM range(3000000) a CROSS JOIN range(3000000) b"


def url(sql: SqlServer) -> str:
    return f"http://127.0.0.1:{sql.metrics_port}/metrics"


def queries(found: Scraped) -> dict[tuple[str, str], float]:
    """By endpoint and outcome."""
    samples = found.having("twinlake_queries_total")
    return {(dict(of)["endpoint"], dict(of)["outcome"]): count for of, count in samples.items()}


def test_statements_are_counted_by_how_they_end(sql: SqlServer, jdbc: Callable[[], Any]) -> None:
    before = queries(scrape(url(sql), SCRAPER))
    of_python = {(endpoint, one) for endpoint in ("http", "flight") for one in OUTCOMES}
    assert set(before) == of_python | {("jdbc", one) for one in JDBC}

    def more(found: Scraped) -> dict[tuple[str, str], float]:
        return {of: count - before[of] for of, count in queries(found).items() if count != before[of]}

    assert sql.ask("SELECT count(*) FROM serve.orders").is_success
    assert not sql.ask("SELECT * FROM serve.nothing").is_success
    assert not sql.ask("SELECT 1 / (id - id) FROM range(3)").is_success
    connection = jdbc()
    statement = connection.createStatement()
    assert statement.executeQuery("SELECT 1").next()
    with pytest.raises(Exception, match="nothing"):
        statement.executeQuery("SELECT * FROM nothing")
    connection.close()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{sql.url}/query", json={"sql": LONG}, headers={"X-Twinlake-Query": "1"}, timeout=2,
            auth=("analyst", PASSWORD), trust_env=False,
        )  # fmt: skip
    expected = {
        ("http", "ok"): 1, ("http", "error"): 2, ("http", "left"): 1, ("jdbc", "ok"): 1, ("jdbc", "error"): 1
    }  # fmt: skip

    def is_counted() -> Scraped | None:
        found = scrape(url(sql), SCRAPER)
        return found if more(found).keys() >= expected.keys() else None

    found = wait_for("the statements to be counted", is_counted, 60)
    assert more(found) == expected
    assert found.value("twinlake_queries_running") == 0
    assert (found.value("twinlake_query_seconds_count") or 0) >= 1


def test_a_scrape_has_every_metric_of_the_sql_server_and_no_secret(sql: SqlServer) -> None:
    took = []
    for _ in range(20):
        began = time.monotonic()
        found = scrape(url(sql), SCRAPER)
        took.append(time.monotonic() - began)
    print(f"scrape of the SQL server: median {statistics.median(took) * 1000:.0f} ms")

    assert {one.name: one.type for one in metrics_of(SQL)} == found.families
    assert found.value("twinlake_scrape_failed_groups") == 0
    assert (found.value("twinlake_ready"), found.value("twinlake_follow_error")) == (1, 0)
    assert found.value("twinlake_release_number") == sql.status()["release"]
    heap, most = (found.value(f"twinlake_jvm_heap_{name}_bytes") or 0 for name in ("used", "max"))
    assert 10e6 < heap < most < 2e9
    assert (found.value("twinlake_jvm_resident_memory_bytes") or 0) > 100e6
    assert (found.value("twinlake_disk_free_bytes", folder="scratch") or 0) > 0
    assert (found.value("twinlake_lake_server_silent_seconds") or 0) >= 0
    hidden = (PASSWORD, SCRAPER[1], str(sql.home), "serve.", "SELECT")
    assert [one for one in hidden if one in found.text] == []


def test_a_readers_login_opens_no_metrics_and_the_scrapers_no_tables(sql: SqlServer) -> None:
    readers = get(url(sql), ("analyst", PASSWORD))
    scrapers = httpx.get(f"{sql.url}/reports/p", auth=SCRAPER, trust_env=False)

    assert (readers.status_code, scrapers.status_code, get(url(sql)).status_code) == (401, 401, 401)

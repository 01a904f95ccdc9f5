"""What the console counts: each request by its page and status, each statement by how it ends, who is in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import generate_latest

from tests.console.conftest import Browser, World
from tests.metrics.scraping import Scraped, parsed
from twinlake.base.errors import (
    BusyError,
    DamagedError,
    DeniedError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
)
from twinlake.console.console import Console
from twinlake.console.metrics import OUTCOMES, outcome_of
from twinlake.console.sessions import IDLE_S
from twinlake.metrics.scrape import registry_of

SignIn = Callable[[str], Browser]


def scraped(console: Console) -> Scraped:
    collector = console.metrics.collector(lambda: True, console.sessions, {})
    return parsed(generate_latest(registry_of(collector)).decode())


def requests(found: Scraped) -> dict[tuple[str, str], float]:
    """By page and status."""
    samples = found.having("twinlake_console_requests_total")
    return {(dict(of)["page"], dict(of)["status"]): count for of, count in samples.items()}


def queries(found: Scraped) -> dict[str, float]:
    """By outcome."""
    samples = found.having("twinlake_console_queries_total")
    return {dict(of)["outcome"]: count for of, count in samples.items()}


def test_requests_are_counted_by_the_page_as_it_is_named_never_by_what_a_path_says(
    console: Console, browser: Callable[[], Browser]
) -> None:
    one = browser()
    one.client.follow_redirects = False
    for path in ("/health", "/health", "/static/console.css", "/", "/jobs/j1", "/part/home", "/.env", "/a/b"):
        one.get(path)
    one.get("/health", headers={"host": "elsewhere.example"})

    assert requests(scraped(console)) == {
        ("/health", "200"): 2, ("/health", "403"): 1, ("/static", "200"): 1, ("/", "303"): 1,
        ("/jobs/{id}", "303"): 1, ("/part/home", "401"): 1, ("other", "404"): 2,
    }  # fmt: skip


def test_what_fails_without_an_answer_is_a_500(
    console: Console, browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("an error of the console's")

    monkeypatch.setattr(console.sessions, "find", broken)
    with pytest.raises(RuntimeError):
        browser().get("/query")

    assert requests(scraped(console)) == {("/query", "500"): 1}


def test_sessions_are_those_that_go_on(console: Console, world: World, signed_in: SignIn) -> None:
    counts = [scraped(console).value("twinlake_console_sessions")]
    browsers = [signed_in("analyst"), signed_in("admin")]
    counts.append(scraped(console).value("twinlake_console_sessions"))
    browsers[0].send("/sign-out", "/query")
    counts.append(scraped(console).value("twinlake_console_sessions"))
    world.now += IDLE_S
    counts.append(scraped(console).value("twinlake_console_sessions"))

    assert counts == [0, 2, 1, 0]


def test_a_statement_that_meets_no_sql_server_and_one_that_is_none_are_counted_so(
    console: Console, signed_in: SignIn
) -> None:
    analyst = signed_in("analyst")
    assert queries(scraped(console)) == dict.fromkeys(OUTCOMES, 0)

    assert analyst.send("/query", "/query", sql="SELECT 1").status_code == 503
    assert analyst.send("/query.csv", "/query", sql="SELECT 1").status_code == 503
    assert analyst.send("/query", "/query", sql=" ").status_code == 400

    counted = queries(scraped(console))
    assert counted == {**dict.fromkeys(OUTCOMES, 0), "unreachable": 2, "error": 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BusyError("a"), "busy"), (UnreachableError("a"), "unreachable"), (UsageError("a"), "error"),
        (NotFoundError("a"), "error"), (DeniedError("a"), "error"), (DamagedError("a"), "failed"),
        (TwinlakeError("a"), "failed"),
    ],
)  # fmt: skip
def test_an_outcome_is_that_of_the_error(error: TwinlakeError, outcome: str) -> None:
    assert outcome_of(error) == outcome

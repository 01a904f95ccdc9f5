"""The plots of a page as its script gets them: whose they are, who may see them, how many lines there are."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tests.console.conftest import HOSTILE, Browser
from twinlake.alarms.history import History, Point, TablePoint, TopicPoint, history_folder
from twinlake.base.times import parse_moment
from twinlake.console.console import HISTORY_EVERY_S, Console
from twinlake.console.plots import MOST_LINES
from twinlake.console.thinning import MOST

SignIn = Callable[[str], Browser]
NOW = int(parse_moment("2026-01-31T12:00:00Z").timestamp())


def topic(minute: int, per_second: int = 10) -> TopicPoint:
    valid, rest = 60 * per_second * minute, 60 * minute
    return TopicPoint(
        records=valid + 2 * rest, valid=valid, invalid=rest, too_late=rest, late=0, lag_records=per_second,
        lag_seconds=0.5,
    )  # fmt: skip


def write(console: Console, minutes: int, *names: str, until: int = NOW) -> None:
    """So many points up to a time; each topic has ten records a second more than the one before."""
    history = History(history_folder(console.settings))
    for one in range(minutes):
        history.append(
            Point(
                at=until - 60 * (minutes - 1 - one),
                disk_free=20 * 10**9,
                topics={name: topic(one, 10 * n) for n, name in enumerate(names, 1)},
                tables={"sales": TablePoint(freshness_seconds=0.1, allowed_seconds=30.0)},
            )
        )


def lines(plot: dict[str, Any]) -> dict[str, list[float]]:
    """What is known of each."""
    return {one["name"]: [v for v in one["values"] if v is not None] for one in plot["curves"]}


def test_home_shows_the_last_day_of_topics_tables_and_the_disk(signed_in: SignIn, console: Console) -> None:
    write(console, 10, "orders", "returns")
    found = signed_in("analyst").get("/part/history?of=home").json()

    records, lag, freshness, disk = found["plots"]
    assert {name: {*line} for name, line in lines(records).items()} == {"orders": {12.0}, "returns": {22.0}}
    assert {name: {*line} for name, line in lines(lag).items()} == {"orders": {10}, "returns": {20}}
    assert {*lines(freshness)["sales"]} == {0.1} and {*lines(disk)["free"]} == {20.0}
    assert found["times"][-1] == NOW and NOW - 86_400 - 180 < found["times"][0] <= NOW - 86_400
    assert {len(one["values"]) for plot in found["plots"] for one in plot["curves"]} == {len(found["times"])}
    assert found["note"] == ""


def test_a_topic_has_its_verdicts_and_lag_and_a_table_its_bound(signed_in: SignIn, console: Console) -> None:
    write(console, 10, "orders", "returns")
    one = signed_in("analyst")

    verdicts, records, seconds = one.get("/part/history?of=topic&name=orders&days=7").json()["plots"]
    (freshness,) = one.get("/part/history?of=table&name=sales").json()["plots"]

    rates = {"valid": {10.0}, "invalid": {1.0}, "too late": {1.0}, "valid, but late": {0.0}}
    assert {name: {*line} for name, line in lines(verdicts).items()} == rates
    assert ({*lines(records)["lag"]}, {*lines(seconds)["lag"]}) == ({10}, {0.5})
    assert {(one["name"], one["is_bound"], one["values"][-1]) for one in freshness["curves"]} == {
        ("freshness", False, 0.1), ("allowed", True, 30.0),
    }  # fmt: skip


def test_a_day_of_minutes_is_thinned(signed_in: SignIn, console: Console) -> None:
    write(console, 24 * 60, "orders")
    one = signed_in("analyst")

    for days in (1, 7):
        found = one.get(f"/part/history?of=home&days={days}").json()
        assert MOST / 2 < len(found["plots"][0]["curves"][0]["values"]) <= MOST + 1
        assert {*lines(found["plots"][0])["orders"]} == {12.0}


def test_only_the_highest_are_drawn_and_the_rest_is_counted(signed_in: SignIn, console: Console) -> None:
    write(console, 5, *(f"t{n:02}" for n in range(11)))
    records = signed_in("analyst").get("/part/history?of=home").json()["plots"][0]

    assert list(lines(records)) == [f"t{n:02}" for n in range(3, 11)]
    assert (len(records["curves"]), records["others"]) == (MOST_LINES, 3)


def test_who_is_not_signed_in_gets_nothing_and_looking_keeps_nobody_signed_in(
    browser: Callable[[], Browser], signed_in: SignIn, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(console, 3, "orders")
    anybody = browser().get("/part/history?of=home")
    assert (anybody.status_code, anybody.content) == (401, b"")
    uses = []
    find = console.sessions.find
    monkeypatch.setattr(
        type(console.sessions), "find", lambda self, token, is_use: uses.append(is_use) or find(token, is_use)
    )  # fmt: skip

    signed_in("analyst").get("/part/history?of=home")

    assert uses[-1] is False


@pytest.mark.parametrize("query", ["", "?of=lake", "?of=home&days=8", "?of=home&days=1e9", "?of=home&days="])
def test_what_cannot_be_shown_is_refused(signed_in: SignIn, query: str) -> None:
    assert signed_in("analyst").get(f"/part/history{query}").status_code == 400


def test_a_name_that_nobody_has_is_empty(signed_in: SignIn, console: Console) -> None:
    write(console, 3, "orders")
    found = signed_in("analyst").get("/part/history", params={"of": "topic", "name": HOSTILE}).json()

    assert [plot["curves"] for plot in found["plots"]] == [[], [], []]


def test_a_history_that_ends_says_since_when_and_none_says_so(signed_in: SignIn, console: Console) -> None:
    one = signed_in("analyst")
    assert "a point a minute" in one.get("/part/history?of=home").json()["note"]
    write(console, 3, "orders", until=NOW - 3_600)

    assert "since 2026-01-31 11:00 UTC" in one.get("/part/history?of=home&days=7").json()["note"]


def test_a_history_that_cannot_be_read_is_said_and_home_is_shown(signed_in: SignIn, console: Console) -> None:
    (history_folder(console.settings) / "points.jsonl").mkdir(parents=True)
    one = signed_in("analyst")

    page = one.get("/")

    assert page.status_code == 200 and "The history cannot be read: IsADirectoryError" in page.text
    assert one.get("/part/history?of=home").json()["plots"] == []


def test_however_many_ask_the_files_are_read_once(
    signed_in: SignIn, console: Console, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    points = History.points
    monkeypatch.setattr(History, "points", lambda *given: read.append(given) or points(*given))
    browsers = [signed_in("analyst") for _ in range(2)]

    for _ in range(3):
        for one in browsers:
            one.get("/part/history?of=home")
    assert len(read) == 1
    world.now += HISTORY_EVERY_S[1]
    browsers[0].get("/part/history?of=home")

    assert len(read) == 2


def test_without_a_script_a_page_has_the_last_values_and_every_name_is_text(
    signed_in: SignIn, console: Console
) -> None:
    write(console, 5, HOSTILE, "orders")
    one = signed_in("analyst")

    home, orders, sales = (one.get(path).text for path in ("/?days=7", "/topics/orders", "/tables/sales"))

    table = home.partition("<noscript>\n")[2].partition("</noscript>")[0]
    rows = re.findall(r'<tr><td>(.*?)</td><th scope="row">(.*?)</th><td class="number">(.*?)</td>', table)
    assert ("Records a second, by topic", html.escape(HOSTILE), "12.0") in rows
    assert "<img" not in home and 'data-plots="/part/history?of=home&amp;name=&amp;days=7"' in home
    assert 'data-plots="/part/history?of=topic&amp;name=orders&amp;days=1"' in orders
    assert ">valid, but late<" in orders and ">allowed<" in sales


def test_what_others_have_written_is_as_they_have_published_it() -> None:
    """uPlot 1.6.32 of the npm registry; its licence goes with it."""
    static = files("twinlake.console") / "static"
    listed = dict(reversed(line.split()) for line in (static / "vendored.sha256").read_text().splitlines())

    found = {name: hashlib.sha256((static / name).read_bytes()).hexdigest() for name in listed}

    assert found == listed
    assert {*listed} == {one.name for one in static.iterdir() if one.name.startswith("uPlot")}
    assert "v1.6.32" in (static / "uPlot.iife.min.js").read_text()[:80]
    assert "The MIT License" in (static / "uPlot.LICENSE.txt").read_text()

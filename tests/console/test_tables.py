"""A table's page has what is known of it; its rows are read by who looks, and lead to what is behind them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.console import table_answers
from tests.console.conftest import HOSTILE, Browser, World, hostile
from tests.console.test_home import text
from twinlake.base.errors import UsageError
from twinlake.config import users
from twinlake.config.rights import Rights
from twinlake.config.settings import Services
from twinlake.console import statement
from twinlake.console.figures import LAKE_EVERY_S

SignIn = Callable[[str], Browser]


class Sql:
    """The SQL server, as its client gives its answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.masked: Callable[[Any], Any] = lambda told: told

    def ask(self, services: Services, sql: str, *_: Any) -> Any:
        self.asked.append((services.sql_user, services.sql_password, sql))
        if self.error:
            raise self.error
        return self.masked(table_answers.ROWS)

    def ask_why(self, services: Services, table: str, key: Any, *_: Any) -> Any:
        self.asked.append((services.sql_user, services.sql_password, table, key))
        return self.masked(table_answers.WHY)


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch) -> Sql:
    found = Sql()
    monkeypatch.setattr(statement, "ask", found.ask)
    monkeypatch.setattr(statement, "ask_why", found.ask_why)
    return found


def test_why_a_table_stalls_is_for_who_reads_everything_or_acts(
    signed_in: SignIn, world: World, tmp_path: Path
) -> None:
    error = {"what": "v-1 of sales is stalled", "why": "'secret' is no number", "remedy": "correct it"}
    live = next(one for one in world.status["versions"] if one["table"] == "sales")
    stalled = {**live, "state": "stalled", "stalled": True, "error": error}
    world.status = {**world.status, "versions": [stalled]}
    file = tmp_path / "access" / "users"
    for name in ("the-analyst", "the-operator"):
        users.set_rights(file, name, Rights(masks={"personal": "null"}))
    limited, acting = (text(signed_in(role).get("/tables/sales")) for role in ("analyst", "operator"))

    assert "secret" in acting and "correct it" in acting
    assert "v-1 of sales is stalled" in limited and "who reads everything sees why" in limited
    assert "secret" not in limited


def test_a_table_says_what_it_means_whether_it_is_right_and_what_it_is_made_of(signed_in: SignIn) -> None:
    page = signed_in("analyst").get("/tables/sales")

    shown = text(page)
    assert "Sales of each region per minute. One row per region and minute." in shown
    assert "v-1 (live) maintained 0 s 0 2 hours ago 4" in shown and "v-0 living 2 hours ago 3" in shown
    assert "sales decimal(38,2) without cancelled ones orders .amount by_day .total" in shown
    assert "Which rows there are is decided by orders .status" in shown
    assert '<a href="/topics/orders">orders</a>.amount' in page.text
    assert '<a href="/tables/by_day">by_day</a>.total' in page.text
    assert "v-1 verify equal 12,345 all of history" in shown and "v-1 verify different" in shown
    assert "Release 4 , 2 hours ago, promote approved by anna sales v-0 became v-1" in shown
    assert "status <> 'cancelled'" in shown


def test_late_rows_that_are_not_theirs_keep_no_others_from_them(
    signed_in: SignIn, sql: Sql, tmp_path: Path
) -> None:
    refused = UsageError("the query failed", "there is no such table that the-analyst may read")
    asked = sql.ask

    def ask(services: Services, text_of: str, *more: Any) -> Any:
        found = asked(services, text_of, *more)
        if "late" in text_of:
            raise refused
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(statement, "ask", ask)
        whole = signed_in("analyst").get("/tables/sales/rows")
        users.set_rights(tmp_path / "access" / "users", "the-analyst", Rights(tables=("serve.sales",)))
        limited = signed_in("analyst").get("/tables/sales/rows")

    assert whole.status_code == 400 and "may read" in whole.text
    assert limited.status_code == 200 and "north &amp; south" in limited.text
    assert "may read" not in limited.text


def test_home_leads_to_tables_topics_and_the_release(signed_in: SignIn) -> None:
    page = signed_in("analyst").get("/").text

    assert all(f'href="{path}"' in page for path in ("/tables/sales", "/topics/orders", "/releases/4"))


def test_rows_are_read_as_who_is_signed_in_and_each_leads_to_what_is_behind_it(
    signed_in: SignIn, sql: Sql, passwords: dict[str, str]
) -> None:
    made = signed_in("analyst")

    page = made.get("/tables/sales/rows")
    links = [html.unescape(one) for one in re.findall(r'<a href="([^"]*explain[^"]*)">', page.text)]
    found = [made.get(link) for link in links]

    login = ("the-analyst", passwords["analyst"])
    assert sql.asked[:2] == [
        (*login, "SELECT * FROM serve.`sales` LIMIT 50"),
        (*login, "SELECT * FROM serve.`sales_late` LIMIT 20"),
    ]
    assert sql.asked[2:] == [
        (*login, "sales", {"region": "north & south", "window_start": "2026-01-31T11:00:00Z"}),
        (*login, "sales", {"region": None, "window_start": "2026-01-31T11:01:00Z"}),
    ]
    assert "orders sales < orders 1 12 10 to 40 3 to 4" in text(found[0])
    assert "orders 1 17 3 2026-01-31T11:00:05Z e17" in text(found[0])


def test_rows_that_cannot_be_read_say_why(signed_in: SignIn, sql: Sql) -> None:
    sql.error = UsageError("the query failed", "a division by zero", "see `twinlake status`")

    page = signed_in("analyst").get("/tables/sales/rows")

    assert page.status_code == 400 and "a division by zero" in page.text


@pytest.mark.parametrize("key", ["", "x", "[1]", '{"region": 1}', "{"])
def test_what_names_no_row_is_not_asked_for(signed_in: SignIn, sql: Sql, key: str) -> None:
    answer = signed_in("analyst").get("/tables/sales/explain", params={"key": key})

    assert answer.status_code == 400 and sql.asked == []


@pytest.mark.parametrize("path", ["/tables/none", "/tables/none/rows", "/tables/..%2fstatus/rows"])
def test_what_is_no_table_is_said(signed_in: SignIn, sql: Sql, path: str) -> None:
    assert signed_in("analyst").get(path).status_code == 404
    assert sql.asked == []


@pytest.mark.parametrize(
    ("act", "fields", "params"),
    [
        ("verify", {}, {}),
        ("verify", {"from": "2026-01-31T00:00:00Z ", "to": ""}, {"from": "2026-01-31T00:00:00Z"}),
        ("rebuild", {"to": "2026-01-31T00:00:00Z"}, {"to": "2026-01-31T00:00:00Z"}),
        ("rebuild", {"repair": "on", "reason": "a bug"}, {"repair": True, "reason": "a bug"}),
        ("rebuild", {"reason": "not ticked"}, {}),
    ],
)
def test_an_operator_verifies_and_rebuilds(
    signed_in: SignIn, world: World, act: str, fields: dict[str, str], params: dict[str, Any]
) -> None:
    made = signed_in("operator")
    shown = text(made.get(f"/tables/sales/{act}"))

    page = made.fill(f"/tables/sales/{act}", **fields)

    assert "It is about version v-1, which is live." in shown and "equal, all of history" in shown
    assert page.url.path == "/jobs/new1"
    assert [(one["kind"], one["params"]) for one in world.submitted] == [(act, {"table": "sales", **params})]


def test_a_repair_without_a_reason_is_refused(signed_in: SignIn, world: World) -> None:
    page = signed_in("operator").fill("/tables/sales/rebuild", repair="on", reason=" ")

    assert "no reason is given" in text(page) and world.submitted == []


def test_what_goes_along_with_a_table_is_on_its_page(signed_in: SignIn, world: World) -> None:
    error = {
        "error": "TwinlakeError",
        "what": "sales is not written",
        "why": "no room",
        "remedy": "make some",
    }
    published = {"table": "sales", "folder": "/lake/published/sales", "state": "failing", "published_at": "",
                 "error": error}  # fmt: skip
    changelog = {"table": "sales", "topic": "sales-log", "state": "sending", "error": None,
                 "sent_at": "2026-01-31T12:00:00Z"}  # fmt: skip
    webhook = {"table": "sales", "host": "a.example", "state": "starting", "error": None, "sent_at": ""}
    made = signed_in("analyst")
    assert "For other engines" not in text(made.get("/tables/sales"))

    world.status = {
        **world.status, "published": [published, {**published, "table": "other", "state": "paused"}],
        "changelogs": [changelog], "webhooks": [webhook],
    }  # fmt: skip
    world.now += LAKE_EVERY_S
    shown = text(made.get("/tables/sales"))

    assert "For other engines /lake/published/sales, failing" in shown and "paused" not in shown
    assert "Changelog topic sales-log, sending, last sent" in shown
    assert "Webhook to a.example, starting" in shown and "last accepted" not in shown
    assert "sales is not written" in shown and "make some" in shown


def test_what_stores_no_rows_is_not_rebuilt_and_has_no_range(signed_in: SignIn, world: World) -> None:
    world.table = table_answers.table(stored=False, windows=False)
    made = signed_in("operator")

    page = made.get("/tables/sales/rebuild")

    assert "it stores no rows" in page.text and "<button>Rebuild" not in page.text
    assert "Rebuild…" not in made.get("/tables/sales").text
    assert 'name="from"' not in made.get("/tables/sales/verify").text


def test_an_act_on_another_version_than_was_shown_is_refused(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")
    form = made.hidden("/tables/sales/rebuild")
    world.table = table_answers.table(live="v-0")

    assert made.client.post("/tables/sales/rebuild", data=form).status_code == 409
    assert world.submitted == []


def test_an_analyst_has_no_act_on_a_table(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")

    assert "Verify" not in made.get("/tables/sales").text
    assert made.send("/tables/sales/verify", "/tables/sales").status_code == 403 and world.submitted == []


def test_every_value_of_a_table_is_shown_as_text(signed_in: SignIn, world: World, sql: Sql) -> None:
    world.masked = lambda told: {**hostile(told), "name": "sales"} if "name" in told else hostile(told)
    sql.masked = hostile
    made = signed_in("operator")

    for path in ("", "/rows", "/explain?key={}", "/verify"):
        page = made.get(f"/tables/sales{path}")
        assert page.status_code == 200, path
        assert "<img" not in page.text and html.escape(HOSTILE) in page.text, path

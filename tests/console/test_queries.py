"""What runs in the SQL server: seen by one's own login, and cancelled once that is written down."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest

from tests.console.conftest import HOSTILE, Browser, World
from tests.console.test_home import text
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.config.settings import Services
from twinlake.reading import facts_client

SignIn = Callable[[str], Browser]
QUERY = {
    "id": "0123abcd4567", "user": "ben", "endpoint": "jdbc", "state": "running",
    "sql": f"SELECT '{HOSTILE}'\n", "started_at": "2026-01-31T11:58:30Z", "seconds": 90.0,
    "memory_bytes": 7 << 20,
}  # fmt: skip
CANCEL = f"/queries/{QUERY['id']}/cancel"


class Running:
    """The SQL server, as its client gives its answers; `ended` with what was written down by then."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.found: list[dict[str, Any]] = [QUERY]
        self.asked: list[str] = []
        self.ended: list[tuple[str, int]] = []
        self.error: Exception | None = None

    def running(self, services: Services) -> list[dict[str, Any]]:
        self.asked.append(services.sql_user)
        if self.error:
            raise self.error
        return self.found

    def find(self, services: Services, id: str) -> dict[str, Any]:
        for one in self.running(services):
            if one["id"] == id:
                return one
        raise NotFoundError(f"no query {id} is running")

    def end(self, services: Services, id: str) -> dict[str, Any]:
        self.ended.append((services.sql_user, len(self.world.written)))
        return self.find(services, id)


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch, world: World) -> Running:
    found = Running(world)
    for name in ("running", "find", "end"):
        monkeypatch.setattr(facts_client, name, getattr(found, name))
    return found


def test_each_has_user_age_and_memory_and_its_statement_is_text(signed_in: SignIn, sql: Running) -> None:
    page = signed_in("operator").get("/queries")

    shown = text(page)
    assert "0123abcd4567 ben jdbc running 90 s 7.3 MB" in shown and f'href="{CANCEL}"' in page.text
    assert "<img" not in page.text and html.escape(HOSTILE) in page.text
    assert sql.asked == ["the-operator"]


def test_without_any_and_without_a_server_the_page_says_so(signed_in: SignIn, sql: Running) -> None:
    made = signed_in("analyst")
    sql.found = []
    assert "No query is running." in made.get("/queries").text

    sql.error = UsageError("the request was refused", "its user or password is missing or wrong")
    assert "does not let the-analyst in" in made.get("/part/queries").text


def test_an_operator_cancels_one_and_the_lake_server_has_it_in_writing_first(
    signed_in: SignIn, sql: Running, world: World
) -> None:
    made = signed_in("operator")
    shown = text(made.get(CANCEL))
    assert "ben runs by jdbc since 90 s" in shown and "names the-operator and the reason" in shown

    page = made.send(CANCEL, CANCEL, reason=" the lake is needed ")

    assert page.url.path == "/queries" and sql.ended == [("the-operator", 1)]
    assert world.written == [{
        "id": QUERY["id"], "user": "ben", "endpoint": "jdbc", "sql": QUERY["sql"], "by": "the-operator",
        "via": "console", "why": "the lake is needed",
    }]  # fmt: skip


def test_ones_own_is_cancelled_without_the_lake_server(signed_in: SignIn, sql: Running, world: World) -> None:
    sql.found = [{**QUERY, "user": "the-analyst"}]
    world.away = True
    made = signed_in("analyst")
    assert "you run by jdbc" in text(made.get(CANCEL))

    assert made.send(CANCEL, CANCEL).url.path == "/queries"
    assert sql.ended == [("the-analyst", 0)] and world.written == []


def test_what_cannot_be_written_down_is_not_done(signed_in: SignIn, sql: Running, world: World) -> None:
    made = signed_in("operator")
    token = made.token(CANCEL)
    world.away = True

    page = made.client.post(CANCEL, data={"form_token": token, "reason": "so"})

    assert page.status_code == 503 and "the lake server does not answer" in page.text
    assert sql.ended == [] and 'value="so"' in page.text


def test_one_that_has_ended_is_not_there(signed_in: SignIn, sql: Running) -> None:
    sql.found = []
    assert signed_in("operator").get(CANCEL).status_code == 404

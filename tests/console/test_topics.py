"""A topic's page has what its records promise and what became of them; operators replay and reload."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.console import topic_answers
from tests.console.conftest import HOSTILE, Browser, World, hostile
from tests.console.test_home import text
from tests.console.topic_answers import ACTIVE, EDITED, NEW, WRONG
from twinlake.base.errors import NotFoundError
from twinlake.config.settings import Services
from twinlake.console import statement
from twinlake.console.pages import raw

SignIn = Callable[[str], Browser]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Who has asked for which quarantine; a test that adds `hostile` is answered with what would run."""
    asked: list[Any] = []

    def quarantined(services: Services, *about: Any, waiting: Any) -> Any:
        asked.append((services.sql_user, services.sql_password, *about))
        return hostile(topic_answers.QUARANTINE) if "hostile" in asked else topic_answers.QUARANTINE

    monkeypatch.setattr(statement, "quarantined", quarantined)
    return asked


def test_a_topic_says_what_its_records_promise_and_what_became_of_them(signed_in: SignIn) -> None:
    page = signed_in("analyst").get("/topics/orders")

    shown = text(page)
    assert "Order events of the shop." in shown and "what its files say is active." in shown
    assert "running 0 5,000 4,990 4 2 3 0 1" in shown
    assert "equal in 5,000 records, at batch 7" in shown
    assert "amount decimal(12,2) at least 0 in euros sales .sales" in shown
    assert "2 orders.v2.avsc amount decimal(12,2) or null" in shown
    assert "Version 1.0.0 is active." in shown and '"late_after": "3 hours"' in shown
    assert '<a href="/tables/sales">sales</a>' in page.text


@pytest.mark.parametrize(
    ("files", "words"), [(EDITED, "have been edited, and are not active"), (WRONG, "visits.yaml: torn")]
)
def test_files_that_say_something_else_are_said(
    signed_in: SignIn, world: World, files: Any, words: str
) -> None:
    world.topic = topic_answers.topic(files=files)

    assert words in text(signed_in("analyst").get("/topics/orders"))


def test_a_quarantine_is_read_as_who_is_signed_in(
    signed_in: SignIn, held: list[Any], passwords: dict[str, str]
) -> None:
    page = signed_in("analyst").get("/topics/orders/quarantine")

    shown = text(page)
    assert "<td>k</td><td>&lt;img&gt;\\x00</td>" in page.text
    login = ("the-analyst", passwords["analyst"])
    assert held == [(*login, "orders", "orders_quarantine", "orders_replayed", 3)]
    assert "1,200 invalid, 2 too late." in shown
    assert "not_allowed:status the value is not one of those that the contract lists 1,200 invalid" in shown
    assert "invalid by contract 1.0.0" in shown and "0/1/17" in shown
    assert "invalid empty:region 1.0.0 valid 1.1.0 3 8 to 9" in shown and "Replay…" not in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"customer-1".hex(), "customer-1"),
        (b"\x00\x00\x01Hpaid\xff".hex(), r"\x00\x00\x01Hpaid\xff"),
        (HOSTILE.encode().hex(), HOSTILE),
        (None, ""),
    ],
    ids=["text", "bytes", "hostile", "null"],
)
def test_the_bytes_of_a_record_are_shown_as_text(value: str | None, shown: str) -> None:
    assert raw(value) == shown


def test_a_quarantine_that_cannot_be_read_says_why(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any, **__: Any) -> Any:
        raise NotFoundError("no quarantine is shown", "there is no log", "see `twinlake status`")

    monkeypatch.setattr(statement, "quarantined", none)

    page = signed_in("analyst").get("/topics/orders/quarantine")

    assert page.status_code == 404 and "there is no log" in page.text


@pytest.mark.parametrize("path", ["/topics/none", "/topics/none/quarantine", "/topics/..%2fstatus"])
def test_what_is_no_topic_is_said(signed_in: SignIn, held: list[Any], path: str) -> None:
    assert signed_in("analyst").get(path).status_code == 404 and held == []


def test_an_operator_replays_some_reasons(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")
    shown = text(made.get("/topics/orders/replay"))

    page = made.fill("/topics/orders/replay", reasons="not_allowed:status\r\n empty \r\n")

    assert "validated again by the active contract, 1.0.0" in shown and "take them: sales" in shown
    assert page.url.path == "/jobs/new1"
    params = {"topic": "orders", "reasons": ["not_allowed:status", "empty"]}
    assert [(one["kind"], one["params"]) for one in world.submitted] == [("replay", params)]


def test_a_replay_by_another_contract_than_was_shown_is_refused(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")
    form = made.hidden("/topics/orders/replay")
    world.topic["contract"] = {**world.topic["contract"], "version": "2.0.0"}

    assert made.client.post("/topics/orders/replay", data=form).status_code == 409
    assert world.submitted == []


def test_a_reload_says_first_what_it_would_change(signed_in: SignIn, world: World) -> None:
    world.topics, made = [EDITED.to_json(), NEW.to_json()], signed_in("operator")
    shown, form = text(made.get("/reload")), made.hidden("/reload")
    world.topics = [replace(EDITED, hash="saved again").to_json(), NEW.to_json()]

    refused = made.client.post("/reload", data=form)
    page = made.client.post("/reload", data=made.hidden("/reload"))

    assert "orders: edited, contract 1.0.0 becomes 1.1.0" in shown
    assert "returns: new, contract none becomes 1.0.0" in shown
    assert refused.status_code == 409 and page.url.path == "/jobs/new1"
    assert [(one["kind"], one["params"]) for one in world.submitted] == [("reload", {})]


@pytest.mark.parametrize(
    ("found", "why"),
    [([ACTIVE], "what the files say is active already"), ([EDITED, WRONG], "visits are wrong")],
)
def test_a_reload_that_would_do_nothing_or_be_refused_has_no_button(
    signed_in: SignIn, world: World, found: list[Any], why: str
) -> None:
    world.topics, made = [one.to_json() for one in found], signed_in("operator")

    page = made.get("/reload")
    sent = made.send("/reload", "/", shown="x")

    assert why in text(page) and "<button>Reload" not in page.text
    assert sent.status_code == 409 and world.submitted == []


def test_an_analyst_has_no_act_on_a_topic(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")
    shown = made.get("/topics/orders").text

    refused = [made.send(path, "/") for path in ("/topics/orders/replay", "/reload")]

    assert "Replay" not in shown and "Reload" not in shown
    assert [page.status_code for page in refused] == [403, 403] and world.submitted == []


def test_every_value_of_a_topic_is_shown_as_text(signed_in: SignIn, world: World, held: list[Any]) -> None:
    kept = ("counts", "state", "id", "name")
    world.masked, world.topics = (lambda told: hostile(told, kept)), [EDITED.to_json()]
    held.append("hostile")
    made = signed_in("operator")

    for path in ("/topics/orders", "/topics/orders/quarantine", "/topics/orders/replay", "/reload"):
        page = made.get(path)
        assert page.status_code == 200, path
        assert "<img" not in page.text and html.escape(HOSTILE) in page.text, path

"""Home says well only where everything is, by figures of now; what needs a person has its command."""

from __future__ import annotations

import asyncio
import html
import re
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.console.conftest import (
    CERTIFICATE,
    HOSTILE,
    PARTS,
    STATUS,
    URL,
    VERSION,
    Browser,
    World,
    hostile,
)
from twinlake.console import console as console_module
from twinlake.console.app import build_app
from twinlake.console.console import Console
from twinlake.console.figures import LAKE_EVERY_S, OLD_S

SignIn = Callable[[str], Browser]
STALLED = {
    **VERSION, "stalled": True,
    "error": {
        "what": "sales takes no step", "why": "a division by zero", "remedy": "see `twinlake logs lake`",
    },
}  # fmt: skip
PAUSED = {
    "kind": "table", "name": "sales", "what": "table sales", "by": "anna", "reason": "rubbish",
    "words": "paused since 2026-01-31T11:00:00Z, by anna: rubbish",
}  # fmt: skip


def text(page: Any) -> str:
    """What a person reads of it."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


def sentence(page: Any) -> tuple[str, str]:
    """Its state and its first words."""
    found = re.search(r'<h1 class="sentence (\w+)" role="status">(.*?)</h1>', page.text)
    assert found
    return found[1], html.unescape(found[2])


def test_home_is_one_sentence_and_the_figures_behind_it(signed_in: SignIn) -> None:
    page = signed_in("analyst").get("/")

    assert sentence(page) == ("well", "All is well.")
    shown = text(page)
    assert "sales v-1 (live) maintained 0 s 0 equal, 2 minutes ago all of history" in shown
    assert "orders running 0 5,000 4,990 4 2 3" in shown
    assert "Release 4 (promote), 2 hours ago, approved by anna" in shown
    assert "64.4 GB of 107.4 GB are free" in shown


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        ({"versions": [STALLED]}, "needs", "sales v-1 needs a person: sales takes no step."),
        ({"versions": [{**VERSION, "lag_seconds": 61.0}]}, "waits", "is 61 s behind its topic"),
        ({"paused": [PAUSED]}, "waits", "Nothing needs a person; table sales is paused by anna."),
        ({"paused": 2 * [PAUSED]}, "waits", "Nothing needs a person; 2 things wait."),
        ({"topics": [{**STATUS["topics"][0], "lag_records": None}]}, "unknown", "lag of topic orders"),
        ({"certificates": [{**CERTIFICATE, "equal": False}]}, "needs", "speed and batch differ"),
    ],
    ids=["stalled", "behind", "paused", "two paused", "unknown lag", "different"],
)
def test_what_is_not_well_is_said_first(
    signed_in: SignIn, world: World, status: dict[str, Any], state: str, words: str
) -> None:
    world.status = {**STATUS, **status}

    found = sentence(signed_in("analyst").get("/"))

    assert found[0] == state and words in found[1]


def test_what_needs_a_person_has_why_and_the_command(signed_in: SignIn, world: World) -> None:
    world.status = {**STATUS, "versions": [STALLED]}

    page = signed_in("analyst").get("/")

    assert "a division by zero" in page.text and "<code>twinlake logs lake</code>" in page.text


def test_a_service_that_does_not_answer_needs_a_person(signed_in: SignIn, world: World) -> None:
    world.parts = [PARTS[0], {**PARTS[1], "answers": False, "answer": "ConnectError: refused"}]

    page = signed_in("analyst").get("/")

    assert sentence(page) == ("needs", "lake needs a person: it does not answer.")
    assert "<code>twinlake logs lake</code>" in page.text


def test_nothing_is_well_on_old_figures_which_show_their_age(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")
    assert sentence(made.get("/"))[0] == "well"
    world.away = True
    world.now += OLD_S

    still = made.get("/part/home")
    world.now += 1
    old = made.get("/part/home")

    assert "Lake server asked 30 s ago" in text(still)
    assert sentence(old)[0] == "unknown" and "31 s old" in sentence(old)[1]
    assert "Lake server asked 31 s ago, which is old" in text(old)
    assert "Services asked 31 s ago, which is old" in text(old)


def test_what_was_never_heard_is_not_well(signed_in: SignIn, world: World) -> None:
    world.away = True

    page = signed_in("analyst").get("/")

    assert sentence(page)[0] == "unknown" and "twinlake up" in text(page)


def test_ten_browsers_cost_as_one_and_nobody_is_asked_while_none_looks(
    signed_in: SignIn, world: World
) -> None:
    browsers = [signed_in("analyst") for _ in range(3)]
    world.now += 60
    world.asked.clear()

    for one in browsers * 3:
        one.get("/part/home")
    at_once = list(world.asked)
    world.now += LAKE_EVERY_S
    browsers[0].get("/part/home")

    assert sorted(at_once) == ["GET /status", "services"]
    assert world.asked == [*at_once, "GET /status"]


def test_every_value_is_shown_as_text(signed_in: SignIn, world: World) -> None:
    world.status = hostile({**STATUS, "versions": [STALLED], "paused": [PAUSED]})
    world.parts = hostile([{**PARTS[0], "answers": False}])
    world.jobs = hostile([{**world.jobs[0], "error": STALLED["error"]}])
    made = signed_in("operator")

    pages = [made.get(path).text for path in ("/", "/part/home", "/jobs", "/part/jobs")]

    for page in pages:
        assert "<img" not in page and html.escape(HOSTILE) in page


def test_a_lake_server_that_hangs_does_not_take_home_with_it(
    console: Console, signed_in: SignIn, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times as many pages wait for it as may: the others are refused, and Home says what it knows."""
    monkeypatch.setattr(console_module, "PLACE_S", 0.5)
    cookies, goes_on = dict(signed_in("analyst").client.cookies.items()), threading.Event()
    world.before = lambda path: goes_on.wait(60) if path.startswith("/plans/") else None

    async def look() -> tuple[httpx.Response, list[httpx.Response]]:
        app = httpx.ASGITransport(app=build_app(console))
        async with httpx.AsyncClient(transport=app, base_url=URL, cookies=cookies) as client:
            pages = [asyncio.ensure_future(client.get("/plans/p")) for _ in range(4 * console_module.PLACES)]
            refused = [await one for one in pages[console_module.PLACES :]]
            home = await asyncio.wait_for(client.get("/"), 20)
            goes_on.set()
            await asyncio.gather(*pages)
        return home, refused

    home, refused = asyncio.run(look())

    assert home.status_code == 200 and "All is well" in home.text
    assert {page.status_code for page in refused} == {503}
    assert "the lake server was not asked" in refused[0].text

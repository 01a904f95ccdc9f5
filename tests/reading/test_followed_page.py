"""A browser that follows a table shows it as it changes, and says where it may be old: in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import chromium
from tests.reading.made_up import TABLE, Server
from twinlake.base.errors import BusyError
from twinlake.base.waiting import wait_for
from twinlake.reading.followed import Followed

pytestmark = chromium.needed
CUT_OFF = "not connected, these rows may be old"


class Page:
    """What the browser shows."""

    def __init__(self, driver: Any, server: Server) -> None:
        self.driver = driver
        driver.get(f"{server.url}/tables/{TABLE}/changes")

    def text(self, id_: str) -> str:
        (found,) = chromium.texts(self.driver, f"#{id_}")
        return found

    def rows(self) -> list[str]:
        return sorted(one.replace("\t", " ") for one in chromium.texts(self.driver, "tbody tr"))

    def shows(self, *rows: str, state: str, ended: str = "") -> None:
        def seen() -> tuple[Any, ...]:
            return self.rows(), self.text("state"), self.text("ended")

        expected = (sorted(rows), state, ended)
        wait_for("the page", lambda: seen() == expected or None, 60, remedy=str(seen()))


@pytest.fixture
def up() -> Iterator[ExitStack]:
    """Closed, the server is down."""
    with ExitStack() as made:
        yield made


@pytest.fixture
def server(up: ExitStack) -> Server:
    made = Server()
    up.enter_context(made.serving())
    return made


@pytest.fixture
def page(server: Server, tmp_path: Path) -> Iterator[Page]:
    driver = chromium.started(tmp_path / "profile", (800, 600))
    try:
        yield Page(driver, server)
    finally:
        driver.quit()


def at(rows: int, batch: int) -> str:
    return f'{rows} rows, release 1, {{"orders":{batch}}}'


def test_it_shows_the_table_as_it_changes_and_takes_no_value_for_html(server: Server, page: Page) -> None:
    page.shows("a 1", state=at(1, 1))
    server.table.states.append({"<b>b</b>": 2, "c": 3})
    page.shows("<b>b</b> 2", "c 3", state=at(2, 2))

    assert page.driver.find_element("tag name", "h1").text == TABLE
    assert page.driver.find_elements("css selector", "tbody b") == []
    assert not [one for one in page.driver.get_log("browser") if "Content Security" in one["message"]]


def test_what_has_ended_it_stays_until_the_table_goes_on(server: Server, page: Page) -> None:
    """The browser comes back by itself, with its position, and is told that alone: it says nothing new."""
    page.shows("a 1", state=at(1, 1))
    for one in list(server.running._here.values()):
        one.end(BusyError("it was cancelled", "olga has done it", "ask her"))
    sent = 3 + 1 + 1  # the whole, why it ended, and the position again
    wait_for("it to come back", lambda: server.measured()[1] == sent or None, 60)
    page.shows("a 1", state=at(1, 1), ended="it was cancelled: olga has done it; ask her")

    server.table.states.append({"c": 4})
    page.shows("c 4", state=at(1, 2))
    assert server.table.made[-1] == ("1", "2")


def test_whose_rights_have_changed_is_shown_what_they_see_now(server: Server, page: Page) -> None:
    server.table.states[0]["anna"] = 2
    page.driver.refresh()
    page.shows("a 1", "anna 2", state=at(2, 1))
    server.table.states[0] = {"a": 1}  # as for who may not see the other one
    server.table.rights = "less"

    page.shows("a 1", state=at(1, 1))


def test_it_says_that_it_is_cut_off_and_comes_back_by_itself_from_its_position(
    up: ExitStack, server: Server, page: Page
) -> None:
    """A browser gives up whom a starting server has answered 503: the page asks again."""
    page.shows("a 1", state=at(1, 1))
    up.close()
    page.shows("a 1", state=CUT_OFF)
    server.table.followed = Followed()
    up.enter_context(server.serving())
    page.driver.get_log("browser")
    wait_for(
        "the browser to be refused",
        lambda: any("503" in one["message"] for one in page.driver.get_log("browser")) or None, 60,
    )  # fmt: skip
    page.shows("a 1", state=CUT_OFF)
    server.table.states.append({"a": 1, "b": 2})
    server.table.followed = Followed(ready=True)

    page.shows("a 1", "b 2", state=at(2, 2))
    assert server.table.made == [("", "1"), ("1", "2")]

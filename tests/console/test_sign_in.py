"""Who gets in, who does not, and when somebody is out again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.console import release_answers
from tests.console.conftest import PORT, Browser, World
from twinlake.config import users
from twinlake.console import sessions, sign_in, slowdown
from twinlake.console.console import Console
from twinlake.console.sessions import IDLE_S, LONGEST_S

Make = Callable[[], Browser]
SignIn = Callable[[str], Browser]
PLAN = f"/plans/{release_answers.PLAN.id}"


def test_who_is_not_signed_in_sees_the_sign_in_and_no_figure(browser: Make, world: World) -> None:
    stranger = browser()

    paths = ("/", "/jobs", "/jobs/j1", "/query", "/releases", "/releases/4", "/releases/3/rollback", PLAN)
    pages = [stranger.get(path) for path in (*paths, f"{PLAN}/report", f"{PLAN}/promote")]

    assert {page.url.path for page in pages} == {"/sign-in"}
    assert [stranger.get(path).status_code for path in ("/part/home", "/part/jobs")] == [401, 401]
    assert world.asked == []


def test_a_user_signs_in_and_out(browser: Make, passwords: dict[str, str]) -> None:
    made = browser()

    home = made.sign_in("the-analyst", passwords["analyst"])
    assert home.url.path == "/" and "the-analyst (analyst)" in home.text
    made.send("/sign-out", "/")

    assert made.get("/").url.path == "/sign-in"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    browser: Make, passwords: dict[str, str]
) -> None:
    made = browser()
    made.client.follow_redirects = False

    said = made.sign_in("the-analyst", passwords["analyst"]).headers.get_list("set-cookie")

    (session,) = (one for one in said if one.startswith(f"twinlake-{PORT}="))
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in session.split(";")}
    assert passwords["analyst"] not in " ".join(said)


def test_the_sign_in_leads_to_the_page_that_was_asked_for(browser: Make, passwords: dict[str, str]) -> None:
    made = browser()
    form = made.get(f"{PLAN}?days=7")
    assert form.url.path == "/sign-in"

    wrong = made.send("/sign-in", "/sign-in", name="the-analyst", password="no", next=f"{PLAN}?days=7")
    there = made.send(
        "/sign-in", "/sign-in", name="the-analyst", password=passwords["analyst"], next=f"{PLAN}?days=7"
    )  # fmt: skip

    assert f'name="next" value="{PLAN}?days=7"' in form.text and f"{PLAN}?days=7" in wrong.text
    assert str(there.url).endswith(f"{PLAN}?days=7")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example/", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/a\\b", "/ b",
        "\t//evil.example", "/\t/evil.example", "/" + "a" * sign_in.LONGEST_PAGE, "jobs", "",
    ],
)  # fmt: skip
def test_the_sign_in_leads_to_no_other_site(elsewhere: str) -> None:
    assert sign_in.page_of_ours(elsewhere) == "/"


@pytest.mark.parametrize("name", ["the-analyst", "nobody", "<img src=x onerror=alert(1)>", ""])
def test_a_wrong_password_lets_nobody_in_and_a_name_is_shown_as_text(browser: Make, name: str) -> None:
    made = browser()

    page = made.sign_in(name, "wrong")

    assert page.status_code == 401 and sign_in.WRONG in page.text and "<img" not in page.text
    assert made.get("/").url.path == "/sign-in"


def test_wrong_passwords_wait_ever_longer_and_the_right_one_ends_that(
    browser: Make, passwords: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(sign_in.asyncio, "sleep", sleep)
    made = browser()
    tries = [*["wrong"] * 8, passwords["operator"], passwords["analyst"], passwords["analyst"]]
    for at, password in enumerate(tries):
        made.client.cookies.clear()
        made.sign_in("the-operator" if at == 8 else "the-analyst", password)

    assert waited == [0, 0.5, 1, 2, 4, 8, 8, 8, 0, 8, 0]


def test_a_session_ends_with_its_idle_time_and_a_page_that_refreshes_itself_is_no_use_of_it(
    signed_in: SignIn, world: World
) -> None:
    made = signed_in("analyst")
    world.now += IDLE_S - 1
    assert made.get("/part/home").status_code == 200
    world.now += 2

    assert made.get("/part/home").status_code == 401


def test_a_session_ends_however_much_it_is_used(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")
    ends = world.now + LONGEST_S
    while world.now < ends - IDLE_S:
        world.now += IDLE_S - 1
        assert made.get("/").url.path == "/"
    world.now = ends + 1

    assert made.get("/").url.path == "/sign-in"


def test_who_signs_in_again_and_again_signs_out_nobody_else(console: Console) -> None:
    known = users.load(console.users_file)
    ben = console.sessions.begin(known["the-operator"], "b")
    words = [console.sessions.begin(known["the-analyst"], "a") for _ in range(2 * sessions.MOST)]

    assert console.sessions.find(ben) and console.sessions.count() == sessions.MOST + 1
    assert console.sessions.find(words[-1]) and not console.sessions.find(words[0])


def test_who_is_removed_or_has_another_password_is_out_and_another_role_holds_at_once(
    console: Console, signed_in: SignIn
) -> None:
    removed, changed, lowered = signed_in("analyst"), signed_in("admin"), signed_in("operator")

    users.remove(console.users_file, "the-analyst")
    users.new_password(console.users_file, "the-admin")
    users.set_role(console.users_file, "the-operator", "analyst")

    assert removed.get("/").url.path == changed.get("/").url.path == "/sign-in"
    assert "the-operator (analyst)" in lowered.get("/").text


def test_a_file_of_users_that_cannot_be_read_lets_nobody_in_and_keeps_nobody_in(
    console: Console, signed_in: SignIn, browser: Make, passwords: dict[str, str]
) -> None:
    made = signed_in("admin")
    with open(console.users_file, "a") as file:
        file.write("mallory\n")

    refused = browser().sign_in("the-admin", passwords["admin"])

    assert made.get("/").url.path == "/sign-in"
    assert refused.status_code == 400 and "line 4" in refused.text


def test_guesses_at_many_names_make_nobody_forget_those_at_one() -> None:
    made = slowdown.Slowdown(lambda: 0.0)
    for _ in range(9):
        made.was_wrong("admin")
    for number in range(2 * slowdown.MOST_NAMES):
        made.was_wrong(f"nobody{number}")

    with made.trying("admin") as admin, made.trying(f"nobody{2 * slowdown.MOST_NAMES - 1}") as newest:
        assert (admin, newest) == (slowdown.LONGEST_S, slowdown.FIRST_S)

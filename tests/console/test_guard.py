"""What no request gets past, and what every answer carries."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tests.console import release_answers
from tests.console.conftest import URL, Browser, World

Make = Callable[[], Browser]
SignIn = Callable[[str], Browser]


@pytest.mark.parametrize("path", ["/", "/sign-in", "/health", "/static/console.js", "/nothing", "/part/home"])
def test_every_answer_forbids_what_no_page_needs(browser: Make, path: str) -> None:
    headers = browser().get(path).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
    kept = "no-cache" if path.startswith("/static") else "no-store"
    assert headers["cache-control"] == kept


def test_no_page_has_code_or_style_of_its_own_or_names_another_host() -> None:
    """What the policy would refuse, and what would not be there without Internet."""
    folder = files("twinlake.console")
    held = [one for name in ("templates", "static") for one in (folder / name).iterdir()]
    assert len(held) > 8
    for one in held:
        text = one.read_text()
        assert "|safe" not in text and "autoescape false" not in text, one
        if one.name.endswith(".html"):
            assert re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|javascript:", text) is None, one
        outside = re.findall(r"https?://[\w./]+", text)
        assert set(outside) <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}, one


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.2:18070"])
def test_another_name_of_this_machine_is_refused(signed_in: SignIn, host: str) -> None:
    answer = signed_in("admin").get("/", headers={"Host": host})

    assert answer.status_code == 403 and "the-admin" not in answer.text


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({}, {}),
        ({"form_token": ""}, {}),
        ({"form_token": "guessed"}, {}),
        ({"form_token": "ä"}, {}),
        (None, {"Origin": "http://127.0.0.1:9999"}),
        (None, {"Origin": "null"}),
        (None, {"Sec-Fetch-Site": "same-site"}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_a_form_of_another_page_is_refused(
    signed_in: SignIn, world: World, fields: dict[str, str] | None, headers: dict[str, str]
) -> None:
    made = signed_in("operator")
    sent: Any = {"form_token": made.token("/jobs")} if fields is None else fields
    world.asked.clear()

    answers = [
        made.client.post(path, data=sent, headers=headers)
        for path in (
            "/jobs/j1/cancel", "/query", "/query.csv", "/query.parquet", "/query.arrow", "/queries/0/cancel",
            "/sign-out", "/releases/3/rollback", f"/plans/{release_answers.PLAN.id}/promote",
        )
    ]  # fmt: skip

    assert [answer.status_code for answer in answers] == [403] * 9
    assert world.asked == [] and made.get("/").url.path == "/"


def test_nobody_is_signed_in_by_a_form_that_this_browser_was_not_given(
    browser: Make, passwords: dict[str, str]
) -> None:
    token, other = browser().token("/sign-in"), browser()
    sent = {"form_token": token, "name": "the-admin", "password": passwords["admin"]}

    answer = other.client.post("/sign-in", data=sent)

    assert answer.status_code == 403 and other.get("/").url.path == "/sign-in"


def test_a_form_from_our_own_page_passes(signed_in: SignIn) -> None:
    made = signed_in("operator")
    sent = {"form_token": made.token("/jobs")}

    headers = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
    answer = made.client.post("/jobs/j1/cancel", data=sent, headers=headers)

    assert answer.status_code == 200 and answer.url.path == "/jobs/j1"


def test_what_is_too_large_or_no_form_is_refused(signed_in: SignIn) -> None:
    made = signed_in("operator")

    large = made.client.post("/query", content=b"x" * (2 << 20))
    none = made.client.post("/query", content=b"\xff\xfe")
    fields = made.client.post("/query", content="&".join(f"a{n}=1" for n in range(50)).encode())

    assert [answer.status_code for answer in (large, none, fields)] == [413, 400, 400]
    made.client.cookies.clear()
    unknown = made.client.post("/sign-in", content=b"user=a&password=" + b"x" * (1 << 14))
    assert unknown.status_code == 413

"""What `webhook` asks and prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import Answers, lines
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.services.problems import problems

Twinlake = Callable[..., Result]

ON: dict[str, Any] = {
    "table": "t", "host": "example.com", "state": "sending", "release": 3, "version": "v-1",
    "position": {"orders": 7}, "rows": 1_234, "way": "touched keys", "sent_at": "2026-01-31T12:00:00Z",
    "tries": 0, "error": None,
}  # fmt: skip
STARTING = {**ON, "table": "u", "state": "starting", "release": None, "position": {}, "sent_at": ""}
FAILING = {**ON, "state": "failing", "tries": 3, "error": TwinlakeError("not delivered", "503").to_json()}


def test_it_is_started_stopped_and_shown(twinlake: Twinlake) -> None:
    answers = Answers(webhook=STARTING)

    done = twinlake(answers, "webhook", "u", "--url", "https://example.com/c", "--from", "beginning")
    assert done.exit_code == 0, done.output
    assert lines(done)[-1] == "u           example.com  starting"
    assert twinlake(answers, "webhook", "u", "--stop").exit_code == 0
    assert [one["params"] for one in answers.asked] == [
        {"table": "u", "url": "https://example.com/c", "from": "beginning"}, {"table": "u", "stop": True}
    ]  # fmt: skip


def test_those_that_are_on_are_listed_with_how_often_they_were_tried(twinlake: Twinlake) -> None:
    answers = Answers()
    answers.status = {"webhooks": [FAILING, STARTING]}

    head, first, second, *why = lines(twinlake(answers, "webhook"))
    assert why == ["", "webhook of t: not delivered", "why: 503"]
    assert head.split("  ")[0] == "webhook of" and second.split() == ["u", "example.com", "starting"]
    assert "failing, tried 3 times" in first and "1,234 by touched keys" in first
    assert json.loads(twinlake(answers, "webhook", "u", "--json").stdout) == [STARTING]
    assert lines(twinlake(answers, "webhook", "v")) == ["the webhook of v is not on"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("t", "--stop", "--url", "https://example.com"), "--stop goes with no other option"),
        (("t", "--from", "beginning"), "nothing says where to post"),
        (("--stop",), "no table is named"),
    ],
)
def test_what_makes_no_sense_is_refused(twinlake: Twinlake, arguments: tuple[str, ...], says: str) -> None:
    answers = Answers()

    done = twinlake(answers, "webhook", *arguments)

    assert isinstance(done.exception, UsageError)
    assert says in done.exception.what and answers.asked == []


def test_one_that_fails_is_a_problem() -> None:
    lake = {"changelogs": [], "topics": [], "versions": [], "certificates": [], "damaged": []}

    found = problems([], {**lake, "webhooks": [FAILING, STARTING]})

    assert found == [("webhook", "t", "webhook of t", FAILING["error"])]

"""What `publish` asks and prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.cli.answers import Answers, Ended, lines
from twinlake.base.errors import UsageError
from twinlake.services.problems import problems

Twinlake = Callable[..., Result]

ON: dict[str, Any] = {
    "table": "t", "folder": "/lake/published/t", "state": "published", "release": 3, "version": "v-1",
    "position": {"orders": 7}, "behind": {"orders": 2}, "files": 2, "bytes": 1_000, "changed": 1_234,
    "way": "touched keys", "published_at": "2026-01-31T12:00:00Z", "error": None,
}  # fmt: skip
STARTING = {
    **ON, "table": "u", "folder": "/lake/published/u", "state": "starting", "release": None, "position": {},
    "behind": {}, "published_at": "",
}  # fmt: skip


def test_a_table_is_published_and_shown(twinlake: Twinlake) -> None:
    answers = Answers(publish=STARTING)

    done = twinlake(answers, "publish", "u")

    assert done.exit_code == 0, done.output
    assert answers.asked == [{"kind": "publish", "params": {"table": "u"}}]
    assert lines(done)[-1].split() == ["u", "starting", "/lake/published/u"]


def test_it_is_stopped(twinlake: Twinlake) -> None:
    answers = Answers(publish={**ON, "state": "stopped"})

    assert twinlake(answers, "publish", "t", "--stop").exit_code == 0
    assert answers.asked == [{"kind": "publish", "params": {"table": "t", "stop": True}}]


def test_those_that_are_published_are_listed(twinlake: Twinlake) -> None:
    answers = Answers()
    answers.published = [ON, STARTING]

    shown = lines(twinlake(answers, "publish"))

    assert shown[1].split("  ")[0] == "t" and "2 batches" in shown[1] and "1,234 by touched keys" in shown[1]
    assert len(shown) == 3
    assert json.loads(twinlake(answers, "publish", "u", "--list", "--json").stdout) == [STARTING]
    assert lines(twinlake(answers, "publish", "v", "--list")) == ["table v is not published"]
    assert answers.asked == []


def test_one_that_fails_is_shown_with_why_until_it_is_stopped(twinlake: Twinlake) -> None:
    failing = {**ON, "state": "failing", "error": UsageError("it was dropped").to_json()}
    answers = Answers(publish={**failing, "state": "stopped"})
    answers.published = [failing]

    assert lines(twinlake(answers, "publish"))[-1] == "published t: it was dropped"
    assert "it was dropped" not in twinlake(answers, "publish", "t", "--stop").output


def test_what_the_server_refuses_is_told(twinlake: Twinlake) -> None:
    refused = Ended(error=UsageError("table t cannot be published", "column a has the type x", "cast it"))

    done = twinlake(Answers(publish=refused), "publish", "t")

    assert isinstance(done.exception, UsageError) and done.exception.why == "column a has the type x"


def test_options_without_a_table_and_opposites_are_refused(twinlake: Twinlake) -> None:
    nothing = twinlake(Answers(), "publish", "--stop").exception
    both = twinlake(Answers(), "publish", "t", "--stop", "--list").exception

    assert isinstance(nothing, UsageError) and nothing.what == "no table is named"
    assert isinstance(both, UsageError) and "opposites" in both.what


def test_what_fails_is_a_problem_and_what_stands_still_with_its_version_is_named_once() -> None:
    error = {"error": "TwinlakeError", "what": "w", "why": "y", "remedy": "r"}
    lake: dict[str, Any] = {
        "topics": [], "versions": [], "certificates": [], "changelogs": [], "damaged": [],
        "published": [{**ON, "state": "failing", "error": error}],
    }  # fmt: skip
    version = {"table": "t", "version": "v-1", "stalled": True, "error": error}

    (found,) = problems([], lake)
    stalled = problems(
        [], {**lake, "versions": [version], "published": [{**ON, "state": "stalled", "error": error}]}
    )

    assert (found.kind, found.about, found.title) == ("published", "t", "published t")
    assert [one.kind for one in stalled] == ["version"]

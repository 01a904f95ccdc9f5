"""What `changelog` asks and prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from pydantic import ValidationError

from tests.cli.answers import Answers, Ended, lines
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.server.job_models import ChangelogParams
from twinlake.services.problems import problems

Twinlake = Callable[..., Result]

ON: dict[str, Any] = {
    "table": "t", "topic": "changes", "state": "sending", "release": 3, "version": "v-1",
    "position": {"orders": 7}, "records": 1_234, "way": "touched keys", "sent_at": "2026-01-31T12:00:00Z",
    "error": None,
}  # fmt: skip
STARTING = {**ON, "table": "u", "state": "starting", "release": None, "position": {}, "sent_at": ""}
HEAD = "changelog of  topic    state     release  position        records sent last"
SHOWN = (
    "t             changes  sending   3        orders batch 7  1,234 by touched keys, 2026-01-31T12:00:00Z"
)


def test_a_changelog_is_asked_for_and_shown(twinlake: Twinlake) -> None:
    answers = Answers(changelog=STARTING)

    done = twinlake(answers, "changelog", "u", "--topic", "changes")

    assert done.exit_code == 0, done.output
    assert answers.asked == [{"kind": "changelog", "params": {"table": "u", "topic": "changes"}}]
    assert lines(done)[-1] == "u             changes  starting"


def test_it_is_stopped(twinlake: Twinlake) -> None:
    answers = Answers(changelog={**ON, "state": "stopped"})

    assert twinlake(answers, "changelog", "t", "--stop").exit_code == 0
    assert answers.asked == [{"kind": "changelog", "params": {"table": "t", "stop": True}}]


def test_those_that_are_on_are_listed(twinlake: Twinlake) -> None:
    answers = Answers()
    answers.changelogs = [ON, STARTING]

    assert lines(twinlake(answers, "changelog")) == [HEAD, SHOWN, "u             changes  starting"]
    assert lines(twinlake(answers, "changelog", "t"))[-1].startswith("t             changes  sending")
    assert json.loads(twinlake(answers, "changelog", "u", "--json").stdout) == [STARTING]
    assert lines(twinlake(answers, "changelog", "v")) == ["the changelog of v is not on"]


def test_one_that_fails_is_shown_with_what_why_and_what_to_do(twinlake: Twinlake) -> None:
    answers = Answers()
    error = UnreachableError("the changelog of t was not sent to changes", "no broker answers", "start it")
    answers.changelogs = [{**ON, "state": "failing", "error": error.to_json()}, STARTING]

    _, _, _, *more = lines(twinlake(answers, "changelog"))

    assert more == [
        "", "changelog of t: the changelog of t was not sent to changes", "why: no broker answers",
        "do:  start it",
    ]  # fmt: skip


def test_what_the_server_refuses_is_told(twinlake: Twinlake) -> None:
    refused = Ended(error=UsageError("topic 'orders' is taken", "tables are made from it", "name another"))

    done = twinlake(Answers(changelog=refused), "changelog", "t", "--topic", "orders")

    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "topic 'orders' is taken"


def test_an_empty_topic_is_asked_for_and_not_taken_for_none(twinlake: Twinlake) -> None:
    answers = Answers(changelog=STARTING)

    twinlake(answers, "changelog", "u", "--topic", "")

    assert answers.asked == [{"kind": "changelog", "params": {"table": "u", "topic": ""}}]


@pytest.mark.parametrize(
    "given",
    [
        ("t", "--topic", "x", "--stop"),
        ("--topic", "x"),
        ("--stop",),
        ("t", "--topic", "x", "--resend"),
        ("t", "--key", "a"),
        ("t", "--format", "json"),
        ("t", "--topic-from", "a", "--topics", "a,,b"),
    ],
)
def test_options_that_make_no_sense_are_refused(twinlake: Twinlake, given: tuple[str, ...]) -> None:
    answers = Answers()

    assert isinstance(twinlake(answers, "changelog", *given).exception, UsageError)
    assert answers.asked == []


def test_status_has_a_failing_changelog_among_its_problems() -> None:
    error = UnreachableError("the changelog of t was not sent to changes").to_json()
    lake: dict[str, Any] = {name: [] for name in ("topics", "versions", "certificates", "damaged")}

    found = problems([], {**lake, "changelogs": [ON, {**ON, "state": "failing", "error": error}]})

    assert found == [("changelog", "t", "changelog of t", error)]


def test_events_are_asked_for_with_all_that_says_how(twinlake: Twinlake) -> None:
    answers = Answers(changelog={**STARTING, "topic": "a, b", "topics": ["a", "b"]})

    done = twinlake(
        answers, "changelog", "u", "--topic-from", "route", "--topics", "a, b", "--other-topic", "c",
        "--key", "x,y", "--partition-by", "source", "--format", "json", "--headers", "none", "--from",
        "beginning", "--position-topic", "p",
    )  # fmt: skip

    assert done.exit_code == 0, done.output
    (asked,) = answers.asked
    assert asked["params"] == {
        "table": "u", "topic_from": "route", "topics": ["a", "b"], "other_topic": "c", "key": ["x", "y"],
        "partition_by": "source", "format": "json", "headers": "none", "from": "beginning",
        "position_topic": "p",
    }  # fmt: skip
    ChangelogParams.model_validate(asked["params"])
    assert lines(done)[-1] == "u             a, b   starting"


def test_all_is_asked_for_again(twinlake: Twinlake) -> None:
    answers = Answers(changelog=ON)

    assert twinlake(answers, "changelog", "t", "--resend").exit_code == 0
    assert answers.asked == [{"kind": "changelog", "params": {"table": "t", "resend": True}}]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "give one of topic, topic_from, resend and stop"),
        ({"topic": "a", "stop": True}, "give one of"),
        ({"topic": "a", "topic_from": "b", "topics": ["c"]}, "give one of"),
        ({"topic_from": "b"}, r"topic_from \(--topic-from\) and topics \(--topics\) go together: give both"),
        ({"topic": "a", "topics": ["c"]}, "go together"),
        ({"topic": "a", "other_topic": "c"}, r"other_topic \(--other-topic\) .*: give topic_from \(--"),
        ({"topic_from": "b", "topics": ["c", "d", "c"]}, r"topics \(--topics\) has c twice: give it once"),
        ({"topic": "a", "key": ["b", "b"]}, r"key \(--key\) has b twice"),
        ({"topic": "a", "partition_by": "key"}, r"partition_by \(--partition-by\) is key, .*with key \(--"),
        ({"resend": True, "format": "json"}, r"format \(--format\): give that when it is started"),
        ({"stop": True, "from": "beginning"}, r"from \(--from\): give that when it is started"),
        ({"topic": "a", "format": "xml"}, "format"),
        ({"topic": "a", "from": "yesterday"}, "from"),
    ],
)
def test_parameters_that_make_no_sense_together_are_refused(params: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ChangelogParams.model_validate({"table": "t", **params})

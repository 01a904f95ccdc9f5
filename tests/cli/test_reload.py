"""What `reload` asks and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import Answers, Ended
from twinlake.base.errors import UsageError
from twinlake.services import topics

Twinlake = Callable[..., Result]

DONE: dict[str, Any] = {
    "added": ["clicks"], "edited": ["orders"], "removed": ["old"], "unchanged": ["users"], "applied": True,
    "classified": [],
}  # fmt: skip
NOTHING = {**DONE, "added": [], "edited": [], "removed": [], "unchanged": ["orders"]}


def test_what_has_changed_is_printed(twinlake: Twinlake) -> None:
    answers = Answers(reload=DONE)

    done = twinlake(answers, "reload")

    assert answers.asked == [{"kind": "reload", "params": {}}]
    assert done.stdout.splitlines() == [
        "topic clicks is read now", "topic orders goes on with its new files", "topic old is read no more",
        "unchanged: users",
    ]  # fmt: skip


def test_that_nothing_has_is_said(twinlake: Twinlake) -> None:
    done = twinlake(Answers(reload=NOTHING), "reload")

    assert done.stdout == "unchanged: orders\n" and "the files say nothing new" in done.stderr


def test_what_is_classified_otherwise_is_said_for_it_changes_who_sees_what(twinlake: Twinlake) -> None:
    told = ["latest_order.customer is classified as nothing", "orders.customer is classified personal"]
    done = twinlake(Answers(reload={**NOTHING, "classified": told}), "reload")

    assert done.stdout.splitlines() == ["unchanged: orders", *told] and done.stderr.count("nothing new") == 0


def test_of_a_locked_broker_the_topics_are_made_once_the_files_are_known_to_be_right(
    twinlake: Twinlake, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "twinlake.toml").write_text('[kafka]\nsecurity = "SASL_SSL"\n')
    made: list[int] = []
    answers = Answers(reload=NOTHING)
    monkeypatch.setattr(topics, "prepare", lambda context: made.append(len(answers.asked)))

    twinlake(answers, "reload")

    assert [one["params"] for one in answers.asked] == [{"check": True}, {}] and made == [1]
    refused = Answers(reload=Ended(error=UsageError("nothing was reloaded", "a file is wrong", "")))
    assert twinlake(refused, "reload").exception and made == [1]

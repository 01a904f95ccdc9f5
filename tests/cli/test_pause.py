"""What `pause` and `resume` ask and print, and how `status` shows what is paused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.cli.answers import Answers
from twinlake.cli.pause import show_paused
from twinlake.lake.catalog.paused import Paused
from twinlake.services.problems import problems

Twinlake = Callable[..., Result]

PAUSED = Paused(
    kind="table", name="sales", since="2026-01-31T12:00:00Z", by="anna", reason="wrong totals",
    versions=("s-1",),
).to_json()  # fmt: skip
WORDS = "paused since 2026-01-31T12:00:00Z, by anna: wrong totals"
DONE: dict[str, Any] = {
    "kind": "table", "name": "sales", "changed": True, "paused": PAUSED, "position": {"s-1": {"orders": 7}},
}  # fmt: skip


def test_a_pause_is_asked_for_with_its_reason_and_shown(twinlake: Twinlake) -> None:
    answers = Answers(pause=DONE)

    done = twinlake(answers, "pause", "sales", "--table", "--reason", "wrong totals", "--by", "anna")

    asked = {"name": "sales", "by": "anna", "kind": "table", "reason": "wrong totals"}
    assert answers.asked == [{"kind": "pause", "params": asked}]
    assert done.stdout.splitlines() == [f"table sales is {WORDS}", "  version s-1 stands at orders batch 7"]


def test_a_second_pause_says_so_and_does_not_fail(twinlake: Twinlake) -> None:
    done = twinlake(Answers(pause={**DONE, "changed": False, "position": None}), "pause", "sales")

    assert (done.exit_code, done.stdout.splitlines()) == (0, [f"table sales was already {WORDS}"])
    again = Answers(pause={**DONE, "changed": False, "position": None})
    told = twinlake(again, "pause", "sales", "--reason", "other").stderr
    assert "its reason stays as it is" in told and "its reason" not in done.stderr


def test_what_goes_on_is_said_and_what_was_not_paused(twinlake: Twinlake) -> None:
    changelog = {"kind": "changelog", "name": "sales", "changed": True, "paused": None, "position": None}
    topic = {**changelog, "kind": "topic", "changed": False}

    def said(result: dict[str, Any]) -> str:
        return twinlake(Answers(resume=result), "resume", "sales").stdout

    assert said(changelog) == "changelog of sales goes on\n"
    assert said(topic) == "topic sales is not paused\n"


def test_one_thing_is_meant(twinlake: Twinlake) -> None:
    done = twinlake(Answers(), "pause", "sales", "--topic", "--table")

    assert "--topic and --table exclude each other" in str(done.exception)


def test_what_is_paused_is_shown_and_is_no_problem(capsys: Any) -> None:
    show_paused([PAUSED])
    version = {"table": "sales", "version": "s-1", "stalled": True, "error": {"what": "no step"}}
    lake = {"topics": [], "certificates": [], "changelogs": [], "damaged": []}

    assert capsys.readouterr().out == f"table sales is {WORDS}\n"
    assert problems([], {**lake, "versions": [{**version, "paused": PAUSED}]}) == []
    assert problems([], {**lake, "versions": [version]}) == [
        ("version", "sales", "sales s-1", {"what": "no step"})
    ]

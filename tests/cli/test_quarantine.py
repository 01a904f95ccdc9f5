"""What `quarantine` asks readers' door and shows, and what `replay` asks the lake server and says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import Answers, lines
from tests.cli.json_shapes import wrong
from tests.project import OURS
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.config.settings import Settings
from twinlake.lake.log.active_topics import publish
from twinlake.reading import quarantined
from twinlake.reference.json_output import COMMANDS
from twinlake.topics.topic import Topic, load_topic

Twinlake = Callable[..., Result]

SAMPLE = {"epoch": 0, "partition": 2, "offset": 17, "timestamp": "t2", "key": "00", "value": None}
GROUP = {"verdict": "invalid", "reason": "empty:region", "contract": "1.0.0"}
COPIES = {
    "first_verdict": "invalid", "first_reasons": ["empty:region"], "first_contract": "1.0.0",
    "verdict": "valid", "reasons": [], "contract": "1.1.0", "records": 1500, "first_batch": 8,
    "last_batch": 9,
}  # fmt: skip
ROWS: dict[str, list[dict[str, Any]]] = {
    "records": [{"verdict": "too_late", "records": 1}, {"verdict": "invalid", "records": 3000}],
    "groups": [{**GROUP, "records": 3000, "first": "t1", "last": "t2"}],
    "samples": [{**GROUP, **SAMPLE}],
    "replayed": [COPIES],
}
REPLAYED = {
    "topic": "orders", "contract": "1.1.0", "judged": 3001, "replayed": 1500, "batches": [8, 9],
    "verdicts": {"valid": 1499, "invalid": 0, "duplicate": 1, "too_late": 0},
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the door was sent, in order; it answers each with its rows."""
    sent: list[str] = []

    def answer(services: Any, sql: str, waiting: Any) -> dict[str, Any]:
        sent.append(sql)
        return {"rows": list(ROWS.values())[len(sent) - 1]}

    monkeypatch.setattr(quarantined, "ask", answer)
    return sent


def test_a_quarantine_is_shown_by_reason_and_version_with_coordinates_and_what_was_replayed(
    twinlake: Twinlake, asked: list[str]
) -> None:
    done = twinlake(Answers(), "quarantine", "orders")

    assert (done.exit_code, [line.split() for line in lines(done)]) == (0, [
        "orders: 3,001 in quarantine: 3,000 invalid, 1 too_late".split(),
        "reason contract records first last samples (epoch/partition/offset)".split(),
        "empty:region 1.0.0 3,000 t1 t2 0/2/17".split(),
        "empty:region: a field that must not be empty is the empty string".split(),
        ["replayed:"],
        "was by contract became by contract records batches".split(),
        "invalid empty:region 1.0.0 valid 1.1.0 1,500 8 to 9".split(),
    ])  # fmt: skip
    assert all("serve.`orders_quarantine`" in sql for sql in asked[:3])
    assert "serve.`orders_replayed`" in asked[3] and "number <= 3" in asked[2]


def test_as_json_each_group_has_its_samples(twinlake: Twinlake, asked: list[str]) -> None:
    done = twinlake(Answers(), "quarantine", "orders", "--reason", "empty", "--limit", "1", "--json")

    assert wrong(COMMANDS["quarantine"], json.loads(done.stdout)) == []
    assert json.loads(done.stdout) == {
        "topic": "orders", "records": {"too_late": 1, "invalid": 3000},
        "groups": [{**ROWS["groups"][0], "samples": [SAMPLE]}], "replayed": [COPIES],
    }  # fmt: skip
    assert all("startswith(reason, 'empty:')" in sql for sql in asked)


def test_what_is_no_reason_is_refused_before_anybody_is_asked(twinlake: Twinlake, asked: list[str]) -> None:
    answers = Answers(replay=REPLAYED)
    for one in (("quarantine", "orders", "--reason", "x' OR true"), ("replay", "orders", "--reason", "x"),
                ("replay", "orders", "--reason", "already_seen")):  # fmt: skip
        assert isinstance(twinlake(answers, *one).exception, UsageError)

    assert asked == answers.asked == []


def test_a_topic_without_a_quarantine_that_is_shown_is_not_found(
    twinlake: Twinlake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(services: Any, sql: str, waiting: Any) -> Any:
        raise UsageError("[TABLE_OR_VIEW_NOT_FOUND] The table or view cannot be found")

    monkeypatch.setattr(quarantined, "ask", refuse)

    assert isinstance(twinlake(Answers(), "quarantine", "nothing").exception, NotFoundError)


def test_a_replay_says_what_became_of_the_records(twinlake: Twinlake) -> None:
    answers = Answers(replay=REPLAYED)
    done = twinlake(answers, "replay", "orders", "--reason", "empty", "--reason", "too_late", "--key", "k")
    as_json = twinlake(answers, "replay", "orders", "--json")
    nothing = twinlake(Answers(replay={**REPLAYED, "replayed": 0, "batches": []}), "replay", "orders")

    empty = Answers(replay={**REPLAYED, "judged": 0, "replayed": 0, "batches": []})
    single = Answers(replay={**REPLAYED, "judged": 1, "replayed": 0, "batches": []})

    one = lines(twinlake(single, "replay", "orders"))[1]
    assert one.startswith("orders: 1 record in quarantine was validated again")
    assert lines(twinlake(empty, "replay", "orders"))[1:] == ["orders: nothing is in quarantine"]
    asked = ("replay", "orders", "--reason", "empty", "--reason", "too_late")
    assert lines(twinlake(empty, *asked))[1:] == ["orders: nothing is in quarantine for empty or too_late"]
    judged = "orders: 3,001 records in quarantine were validated again by contract 1.1.0"
    assert lines(done)[1:] == [f"{judged}: 1,500 changed, now 1,499 valid, 1 duplicate (log batch 8 to 9)"]
    assert json.loads(as_json.stdout) == {"job": "replay", **REPLAYED}
    assert lines(nothing)[1:] == [f"{judged}; all of them stay there"]
    assert answers.asked == [
        {"kind": "replay", "params": {"topic": "orders", "reasons": ["empty", "too_late"]}, "key": "k"},
        {"kind": "replay", "params": {"topic": "orders"}},
    ]  # fmt: skip


def test_a_contract_that_was_edited_and_is_not_in_force_is_told(home: Path, twinlake: Twinlake) -> None:
    topic = load_topic("orders", OURS)
    lake = Settings(home=home).lake
    stored = topic.to_json()
    answers = Answers(replay=REPLAYED)

    publish(lake, topic)
    same = twinlake(answers, "replay", "orders")
    publish(lake, Topic.from_json({**stored, "contract": {**stored["contract"], "late_after": "1 hour"}}))
    edited = twinlake(answers, "replay", "orders")

    assert "contract in force" not in same.stderr
    assert "contracts/orders.yaml says other things than the active contract" in edited.stderr
    assert edited.exit_code == 0

"""What `topic accept` asks and prints."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from tests.cli.answers import Answers, Ended, lines
from twinlake.base.errors import UsageError
from twinlake.ingest.accept import Accepted

Twinlake = Callable[..., Result]

ACCEPTED = Accepted(topic="orders", epoch=2, batch=9, topic_id="id", change="recreated", lost={}).to_json()


def test_accept_names_the_epoch_that_begins(twinlake: Twinlake) -> None:
    answers = Answers(accept=ACCEPTED)
    done = twinlake(answers, "topic", "accept", "orders")
    as_json = twinlake(answers, "topic", "accept", "orders", "--json")

    assert (done.exit_code, lines(done)) == (0, ["topic orders is accepted as epoch 2"])
    assert json.loads(as_json.stdout) == ACCEPTED
    assert answers.asked == [{"kind": "accept", "params": {"topic": "orders"}}] * 2


def test_accept_names_what_is_lost(twinlake: Twinlake) -> None:
    accepted = {**ACCEPTED, "epoch": 0, "change": "lost", "lost": {"3": [1, 3]}}
    done = twinlake(Answers(accept=accepted), "topic", "accept", "orders")

    assert lines(done) == [
        "topic orders is accepted as epoch 0", "lost before they were read: partition 3 offsets 1 to 2"
    ]  # fmt: skip


def test_what_cannot_be_accepted_ends_with_its_error(twinlake: Twinlake) -> None:
    error = UsageError("there is nothing to accept", "the topic is the one that the log knows", "go on")
    done = twinlake(Answers(accept=Ended(error=error)), "topic", "accept", "orders")

    assert isinstance(done.exception, UsageError) and done.exception.to_json() == error.to_json()

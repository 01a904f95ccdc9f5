"""A topic's certificate is made once at a position, and again where the witness could not be asked there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from twinlake.base.job import Run
from twinlake.batch import witnessing_topics
from twinlake.batch.witnessing_topics import witness_topics
from twinlake.lake.catalog.topic_certificates import TopicCertificates
from twinlake.witness.answer import EQUAL, GONE, NOT_WITNESSED
from twinlake.witness.ingest.question import TopicAnswer

SILENT = TopicAnswer(topic="orders", verdict=NOT_WITNESSED, why="the registry did not answer")
LIMIT = TopicAnswer(topic="orders", verdict=NOT_WITNESSED, why="it takes more than 3600 s", seed=7)
CLEANED = TopicAnswer(topic="orders", verdict=NOT_WITNESSED, why=GONE, seed=7)
SAME = TopicAnswer(topic="orders", verdict=EQUAL, seed=8, sampled=3, compared=3, records=3)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """Of one topic, whose log is at batch 5."""
    return SimpleNamespace(
        certificates=SimpleNamespace(topics=TopicCertificates(tmp_path)),
        logs={"orders": SimpleNamespace(end=lambda: 5)},
        clock=lambda: datetime(2026, 1, 31, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [(SILENT, SAME), (CLEANED, SAME), (LIMIT, LIMIT), (SAME, SAME)],
    ids=["no registry", "a file is gone twice", "a limit", "equal"],
)
def test_another_job_at_the_position_asks_again_where_the_witness_could_not_be_asked(
    lake: Any, monkeypatch: pytest.MonkeyPatch, first: TopicAnswer, second: TopicAnswer
) -> None:
    answers = iter((*([first] * (2 if first.is_gone else 1)), SAME))
    monkeypatch.setattr(witnessing_topics, "_answer", lambda *_: next(answers))

    found = [witness_topics(lake, ["orders"], Run(id=job))[0].answer for job in ("a", "a", "b")]

    assert found == [first, first, second]


def test_a_file_that_is_gone_is_asked_about_once_more(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter((CLEANED, SAME))
    log = SimpleNamespace(path=Path("/"), end=lambda: 5)
    monkeypatch.setattr(witnessing_topics, "_schemas", lambda *_: {})
    monkeypatch.setattr(witnessing_topics, "question", lambda *_: SimpleNamespace(to_json=dict, seed=7))
    monkeypatch.setattr(witnessing_topics, "ask", lambda *_, **__: next(answers))
    lake.logs["orders"] = log

    (made,) = witness_topics(lake, ["orders"], Run(id="a"))

    assert made.answer == SAME

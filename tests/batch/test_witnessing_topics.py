"""A topic's certificate is made once at a position, and again where the witness could not be asked there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from twinlake.base.job import Run
from twinlake.batch import witnessing_topics
from twinlake.batch.witnessing_topics import last_undecidable, witness_topics
from twinlake.lake.catalog.topic_certificates import TopicCertificates
from twinlake.witness.answer import EQUAL, GONE, NOT_WITNESSED
from twinlake.witness.ingest.question import Era, TopicAnswer

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


HOUR_S = 3_600


def test_duplicates_are_decided_by_how_long_ids_were_unique_when_they_came(spark: SparkSession) -> None:
    """A record an hour after the last deleted one was judged while ids were unique for two hours."""
    rows = [(batch, datetime.fromtimestamp((batch - 1) * HOUR_S, UTC)) for batch in range(2, 8)]
    records = spark.createDataFrame(rows, "batch BIGINT, timestamp TIMESTAMP")
    start = SimpleNamespace(batch=1, until=0)
    log: Any = SimpleNamespace(start=start, end=lambda: 7, all=lambda *_: records)
    two, one, never = (Era(after=0, contract=said, fields=()) for said in (
        {"unique_within": "2 hours"}, {"unique_within": "1 hour"}, {},
    ))  # fmt: skip

    found = {
        "two hours": last_undecidable(log, [two]),
        "two, then one after batch 2": last_undecidable(log, [two, replace(one, after=2)]),
        "two, then one after batch 3": last_undecidable(log, [two, replace(one, after=3)]),
        "never": last_undecidable(log, [never]),
        "one, then never": last_undecidable(log, [one, replace(never, after=2)]),
    }

    assert found == {"two hours": 3, "two, then one after batch 2": 2, "two, then one after batch 3": 3,
                     "never": 1, "one, then never": 2}  # fmt: skip
    log.start = None
    assert last_undecidable(log, [two]) == 0

"""Topic certificates are kept in the lake; the newest of each topic is never forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlake.lake.catalog import topic_certificates as module
from twinlake.lake.catalog.topic_certificates import TopicCertificate, TopicCertificates
from twinlake.lake.delta import ledger
from twinlake.witness.answer import EQUAL
from twinlake.witness.ingest.question import TopicAnswer


def certificate(topic: str, position: int) -> TopicCertificate:
    answer = TopicAnswer(topic=topic, verdict=EQUAL, engine="json", seed=7, sampled=3, compared=3, records=3)
    return TopicCertificate(
        topic=topic, job="j1", position=position, created_at="2026-01-31T12:00:00Z", answer=answer
    )


def test_the_newest_of_each_topic_outlives_those_of_a_busy_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP", 2)
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 3)
    quiet, busy = certificate("returns", 1), [certificate("orders", number) for number in range(1, 6)]
    kept = TopicCertificates(tmp_path)
    for one in (quiet, *busy):
        kept.add(one)

    assert kept.compact()

    again = TopicCertificates(tmp_path)
    assert (again.newest("returns"), again.newest("orders")) == (quiet, busy[-1])
    assert again.all() == kept.all()

"""Owns the verdicts of a case's records: what ingest would decide of them, as they came."""

from __future__ import annotations

from twinlake.topics.topic import Topic
from twinlake.topics.verdict import VALID
from twinlake.unit_tests.records import Record


def judged(topic: Topic, records: list[Record]) -> list[Record]:
    """The same records, each with its verdict, its reasons, and whether it is late."""
    return [one.judged(VALID, (), False) for one in records]

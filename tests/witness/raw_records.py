"""Raw records for the witness of ingest, and what holds for a topic of the platform's in its words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from twinlake.topics.topic import Topic
from twinlake.witness.ingest.record import Raw, Rules
from twinlake.witness.question import Field

NOW = 1_769_904_000_000_000
"""2026-02-01."""


def rules_of(topic: Topic, schemas: Mapping[int, Mapping[str, Any]] = {}) -> Rules:
    fields = tuple(map(Field.of, topic.newest.fields))
    return Rules(contract=topic.contract.to_json(), fields=fields, schemas=schemas)


def raw(value: bytes | None, key: bytes | None = None, timestamp: int = NOW, **place: int) -> Raw:
    return Raw(value=value, key=key, timestamp=timestamp, **place)


def micros(moment: datetime) -> int:
    """Since 1970; of an aware moment."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

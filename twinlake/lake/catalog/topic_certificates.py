"""Topic certificates: what a second decoder and evaluator of contracts has found of a topic's ingest."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from twinlake.base.location import Location
from twinlake.lake.delta.ledger import Ledger
from twinlake.witness.ingest.question import TopicAnswer

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("topic", "job", "created_at", "answer")),
        *((name, pa.int64()) for name in ("position", "sequence")),
    ]
)
KEEP = 1_000


@dataclass(frozen=True, kw_only=True)
class TopicCertificate:
    """The answer about the log up to the batch `position`."""

    topic: str
    job: str
    position: int
    created_at: str
    answer: TopicAnswer

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TopicCertificate:
        """The inverse of `to_json`."""
        return cls(**{**data, "answer": TopicAnswer.from_json(data["answer"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def key(self) -> str:
        """What it is called among tables."""
        return f"topic {self.topic}"

    @property
    def is_lasting(self) -> bool:
        """Whether the witness has answered, and would say the same at the same position."""
        return bool(self.answer.seed) and not self.answer.is_wrong and not self.answer.is_gone

    @property
    def words(self) -> str:
        return f"{self.answer.words}, at batch {self.position}"

    def summary(self) -> dict[str, Any]:
        """For status: without the records that differ."""
        return {
            "topic": self.topic, "position": self.position, "created_at": self.created_at,
            "words": self.words, "equal": self.answer.is_equal, "disputed": self.answer.is_wrong,
            "seed": self.answer.seed, "sampled": self.answer.sampled,
        }  # fmt: skip


class TopicCertificates:
    """`<lake>/topic_certificates`, and the newest of each topic in memory."""

    def __init__(self, lake: Location) -> None:
        self._ledger = Ledger(lake / "topic_certificates", SCHEMA)
        self._lock = threading.Lock()
        self._newest: dict[str, TopicCertificate] = {}
        self._sequence = 0
        for row in sorted(self._ledger.rows(), key=lambda row: row["sequence"]):
            self._sequence = row.pop("sequence")
            made = TopicCertificate.from_json({**row, "answer": json.loads(row["answer"])})
            self._newest[made.topic] = made

    def add(self, made: TopicCertificate) -> TopicCertificate:
        """On return it is kept."""
        with self._lock:
            self._sequence += 1
            row = {**made.to_json(), "answer": json.dumps(made.answer.to_json()), "sequence": self._sequence}
            self._ledger.append([row])
            self._newest[made.topic] = made
            return made

    def newest(self, topic: str) -> TopicCertificate | None:
        with self._lock:
            return self._newest.get(topic)

    def all(self) -> list[TopicCertificate]:
        """The newest of each topic."""
        with self._lock:
            return sorted(self._newest.values(), key=lambda made: made.topic)

    def compact(self) -> bool:
        """Now and then forgets the older ones, but never the newest of a topic."""
        with self._lock:
            return self._ledger.compact(self._kept)

    def _kept(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        newest: dict[str, int] = {}
        for row in rows:
            newest[row["topic"]] = max(row["sequence"], newest.get(row["topic"], 0))
        least = self._sequence - KEEP
        return [row for row in rows if row["sequence"] > least or row["sequence"] == newest[row["topic"]]]

"""Runs: the record of every job of this lake, persisted before it is believed, all of them in memory."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from jobs.lake.ledger import Ledger

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]
ENDED = ("succeeded", "failed", "cancelled", "interrupted")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One asked-for piece of work; `attempt` counts how often it was started under the same key.

    Moments are RFC 3339, UTC. `progress` is never persisted.
    """

    id: str
    kind: str
    params: dict[str, Any]
    key: str | None = None
    state: State = "queued"
    progress: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    attempt: int = 1

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        *[(name, pa.string()) for name in ("id", "kind", "params", "key", "state", "result", "error")],
        *[(name, pa.string()) for name in ("created_at", "started_at", "ended_at")],
        ("attempt", pa.int64()),
    ]
)
_NESTED = ("params", "result", "error")


class Runs:
    """`<lake>/runs`. Safe between threads; one process writes it, the one that holds the lake's lock."""

    def __init__(self, lake: Path) -> None:
        self._ledger = Ledger(lake / "runs", SCHEMA)
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, str] = {}
        self._sequence = 0
        for row in sorted(self._ledger.rows(), key=lambda row: row["sequence"]):
            self._sequence = row.pop("sequence")
            self._remember(Job(**{**row, **{name: json.loads(row[name]) for name in _NESTED}}))

    def put(self, job: Job) -> Job:
        """Persist the job as it is now, then remember it; on return it survives a kill."""
        with self._lock:
            row = {name: value for name, value in asdict(job).items() if name != "progress"}
            row |= {name: json.dumps(row[name]) for name in _NESTED}
            self._sequence += 1
            self._ledger.append([{**row, "sequence": self._sequence}])
            self._remember(job)
        return job

    def show(self, job: Job) -> None:
        """Remember the job's progress; a kill forgets it."""
        with self._lock:
            self._jobs[job.id] = job

    def get(self, id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(id)

    def with_key(self, key: str) -> Job | None:
        """The job that was asked for under this idempotency key."""
        with self._lock:
            return self._jobs.get(self._keys.get(key, ""))

    def all(self) -> list[Job]:
        """Newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: job.created_at, reverse=True)

    def compact(self) -> bool:
        return self._ledger.compact()

    def _remember(self, job: Job) -> None:
        self._jobs[job.id] = job
        if job.key:
            self._keys[job.key] = job.id

"""Runs: the record of every job of this lake, persisted before it is believed, all of them in memory."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from jobs.lake.ledger import Ledger
from jobs.run import Job

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
            # without the Z a whole second comes before its own fractions
            return sorted(self._jobs.values(), key=lambda job: job.created_at.rstrip("Z"), reverse=True)

    def compact(self) -> bool:
        return self._ledger.compact()

    def _remember(self, job: Job) -> None:
        self._jobs[job.id] = job
        if job.key:
            self._keys[job.key] = job.id

"""Runs: the record of the jobs of this lake, persisted before it is believed, all of them in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict

import pyarrow as pa

from twinlake.base.job import Job
from twinlake.base.location import Location
from twinlake.lake.delta.ledger import Ledger, Row

SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        *[(name, pa.string()) for name in ("id", "kind", "params", "key", "state", "result", "error")],
        *[(name, pa.string()) for name in ("created_at", "started_at", "ended_at")],
        ("attempt", pa.int64()),
    ]
)
_NESTED = ("params", "result", "error")
KEEP_ENDED = 20_000
"""Of scheduled jobs; five each quarter of an hour make some weeks. With their results they take megabytes."""
KEPT_FOR_EVER = ("build", "promote", "rollback")
"""Seldom, and part of the tables' history. The key of an old promotion must find it and not make another."""


class Runs:
    """`<lake>/runs`. Safe between threads; one process writes it, the one that holds the lake's lock."""

    def __init__(self, lake: Location) -> None:
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
            row = {name: value for name, value in asdict(job).items() if name in SCHEMA.names}
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
        """Now and then forgets all but a job's last state, and of the jobs that have ended the older ones."""
        with self._lock:
            ended = [  # in the order in which they were put
                job
                for job in self._jobs.values()
                if job.ended and job.kind not in KEPT_FOR_EVER and not job.params.get("reason")
            ]
            gone = {job.id for job in ended[:-KEEP_ENDED]}
            if not self._ledger.compact(lambda rows: _last(row for row in rows if row["id"] not in gone)):
                return False
            self._jobs = {id: job for id, job in self._jobs.items() if id not in gone}
            self._keys = {key: id for key, id in self._keys.items() if id not in gone}
            return True

    def _remember(self, job: Job) -> None:
        self._jobs.pop(job.id, None)  # so that the last one in order is the last that was put
        self._jobs[job.id] = job
        if job.key:
            self._keys[job.key] = job.id


def _last(rows: Iterable[Row]) -> list[Row]:
    """The last state of each job."""
    return list({row["id"]: row for row in sorted(rows, key=lambda row: row["sequence"])}.values())

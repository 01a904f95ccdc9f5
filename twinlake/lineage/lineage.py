"""Owns when events are made: of what streams, as the status shows it now and then, and of jobs as they begin
and end.

A run of `ingest.<topic>` or `advance.<table>.<version>` begins when it is first seen running, says every few
minutes how far it came, and ends where it stops or fails; one of `rebuild.<table>`, `build` or `release` is a
job. What a killed server had begun is never ended: a later run of the same job takes its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import structlog

from twinlake.base.job import Job
from twinlake.base.location import Location
from twinlake.config.settings import Settings
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import is_stored
from twinlake.lake.catalog.version import Version, load, version_file
from twinlake.lineage.sender import Sender
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from twinlake.lineage.events import Events

journal = structlog.get_logger(__name__)

EVERY_S = 300.0
"""So often a stream that goes on says so."""
LOOK_S = 5.0
RUNNING = "running"
Sides = tuple[list[Any], list[Any]]
"""The data sets that are read, and those that are written."""
Topics = Callable[[], Mapping[str, Topic]]


@dataclass
class _Stream:
    run: str
    said_at: float
    said: int
    """How far it was then: records of a log, batch numbers of a version."""


def of_lake(settings: Settings, lake_id: str, topics: Topics) -> Lineage:
    """Of the lake of these settings, as `[lineage]` says; `topics` gives those that are open."""
    given = settings.values.lineage
    file = settings.home / "logs" / "lineage.jsonl" if given.file == "on" else None
    sender = Sender(file, given.url, given.api_key_file)
    return Lineage(settings.lake, lake_id, lambda: settings.services().bootstrap_servers, topics, sender)


class Lineage:
    """Of one lake server. Nothing that fails here may reach what it is about."""

    def __init__(
        self, lake: Location, lake_id: str, kafka: Callable[[], str], topics: Topics, sender: Sender
    ) -> None:
        self._lake, self._lake_id, self._kafka, self._sender = lake, lake_id, kafka, sender
        self._topics = topics
        self._made: Events | None = None
        self._streams: dict[str, _Stream] = {}
        self._looked_at = -LOOK_S
        self._lock = threading.Lock()

    @property
    def _events(self) -> Events:
        """Made at the first event: OpenLineage's client takes half a second to import."""
        if self._made is None:
            from twinlake.lineage.events import Events

            self._made = Events(self._lake, self._lake_id, self._kafka())
        return self._made

    def look(
        self, status: Callable[[], Mapping[str, Any]], versions: Callable[[], Iterable[Version]]
    ) -> None:
        """By what `/status` shows now, and the living versions; most calls ask for neither."""
        if not self._sender.is_on or time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at = time.monotonic()
        try:
            with self._lock:
                self._look(status(), {(one.table, one.name): one for one in versions()})
        except Exception:
            journal.exception("the lineage of what runs is not known")

    def job(self, job: Job) -> None:
        """A job has begun, or has ended."""
        try:
            if self._sender.is_on:
                self._job(job)
        except Exception:
            journal.exception("the lineage of the job is not known", job=job.id)

    def stop(self) -> None:
        """Ends the runs of what streams; what is not sent after a few seconds stays in the file alone."""
        try:
            with self._lock:
                for key, stream in self._streams.items():
                    self._send("COMPLETE", stream.run, key, [], [])
                self._streams.clear()
        except Exception:
            journal.exception("the end of what ran is not known")
        self._sender.stop()

    def _look(self, status: Mapping[str, Any], versions: Mapping[tuple[str, str], Version]) -> None:
        seen, topics = set(), self._topics()
        for one in status["topics"]:
            if one["name"] in topics:
                topic, key = topics[one["name"]], f"ingest.{one['name']}"
                seen.add(key)
                is_running = one["state"] == RUNNING
                sides = partial(self._events.ingest, topic)
                self._stream(key, is_running, one["error"], one["records"] or 0, sides)
        for one in status["versions"]:
            version = versions.get((one["table"], one["version"]))
            if version is None or not version.topics or not _is_stored(version):
                continue
            if set(version.topics) <= topics.keys():
                key = f"advance.{version.table}.{version.name}"
                seen.add(key)
                at = sum(one["position"].values())
                sides = partial(self._advanced, version, topics)
                error = None if one.get("paused") else one["error"]  # somebody wanted it
                self._stream(key, not one["stalled"], error, at, sides)
        for key in self._streams.keys() - seen:  # dropped, or retired
            self._send("COMPLETE", self._streams.pop(key).run, key, [], [])

    def _advanced(self, version: Version, topics: Mapping[str, Topic], batches: int | None) -> Sides:
        """How many batches is no number of rows, and so is not said."""
        return self._events.version(version, topics)

    def _stream(
        self, key: str, is_running: bool, error: Mapping[str, Any] | None, at: int,
        sides: Callable[[int | None], Sides],
    ) -> None:  # fmt: skip
        """`at` is how far it is; `sides` is given how much that is more than at the last event. What cannot
        be said of one is tried again after a while, and keeps nothing of the others back."""
        known, now = self._streams.get(key), time.monotonic()
        new = 0 if known is None else max(0, at - known.said)  # a log that was put back begins again
        try:
            if not is_running:
                if known is not None:
                    del self._streams[key]
                    state, why = ("FAIL", str(error["what"])) if error else ("COMPLETE", None)
                    self._send(state, known.run, key, *sides(new), error=why)
            elif known is None:
                begun = _Stream(str(uuid4()), now, at)
                self._send("START", begun.run, key, *sides(None))
                self._streams[key] = begun
            elif at != known.said and now - known.said_at >= EVERY_S:
                known.said_at = now
                self._send("RUNNING", known.run, key, *sides(new))
                known.said = at
        except Exception as failed:
            journal.warning("the lineage of a stream is not known", stream=key, why=str(failed))

    def _job(self, job: Job) -> None:
        if job.kind not in _JOBS or job.state not in _STATES:
            return
        run = str(uuid5(NAMESPACE_OID, f"{self._lake_id}/{job.id}/{job.attempt}"))
        error = job.error["what"] if job.error else None
        versions, name = list(self._versions(job)), _JOBS[job.kind]
        if job.kind == "rebuild":
            name = f"{name}.{job.params['table']}"
        topics = self._topics()
        ready = [one for one in versions if set(one.topics) <= topics.keys()]
        inputs, outputs = list[Any](), list[Any]()
        if name == "release":
            inputs, outputs = self._events.release(ready, topics)
        else:
            for one in filter(_is_stored, ready):
                read, written = self._events.version(one, topics)
                inputs += [each for each in read if each not in inputs]
                outputs += written
        self._send(_STATES[job.state], run, name, inputs, outputs, batch=True, error=error)

    def _versions(self, job: Job) -> Iterable[Version]:
        """Those that a job is about, as far as is known by now."""
        result = job.result or {}
        if job.kind == "rebuild":
            named = {job.params["table"]: (result.get("certificate") or {}).get("version")}
        else:
            named = result.get("greens") or result.get("tables") or {}
        for table, version in named.items():
            if version:
                yield load(version_file(self._lake, table, version))

    def _send(
        self, state: str, run: str, name: str, inputs: list[Any], outputs: list[Any],
        batch: bool = False, error: str | None = None,
    ) -> None:  # fmt: skip
        processing = "BATCH" if batch else "STREAMING"
        self._sender.put(self._events.event(state, run, name, processing, inputs, outputs, error))


_JOBS = {"rebuild": "rebuild", "build": "build", "promote": "release", "rollback": "release"}
"""By kind of job, the name under which its runs are known."""
_STATES = {
    "running": "START", "succeeded": "COMPLETE", "failed": "FAIL", "cancelled": "ABORT",
}  # fmt: skip


def _is_stored(version: Version) -> bool:
    return is_stored(from_json(version.definition))

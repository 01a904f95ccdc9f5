"""A lake server that has the answer to every question: a job ends as soon as it is asked for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import httpx
from click.testing import Result

from twinlake.base.errors import NotFoundError, TwinlakeError
from twinlake.base.job import Asker, Failed
from twinlake.lake.catalog.plans import Change, Plan

PLAN = Plan(
    id="b" * 12,
    release_before=1,
    changes=(
        Change(table="t", action="changed", fingerprint="f", blue="b-1", why=("where: a -> b",),
               records=1_000_000, bytes=9_000_000, minutes_estimate=0.5),
    ),
    definitions={},
    created_at="2026-01-31T12:00:00Z",
)  # fmt: skip
ENDED: dict[str, Any] = {
    "key": None, "progress": {}, "created_at": "2026-01-31T12:00:00Z", "started_at": "2026-01-31T12:00:01Z",
    "ended_at": "2026-01-31T12:00:03.500000Z", "attempt": 1, "idle_minutes": None,
}  # fmt: skip


WORDS = re.compile(r"next: |\w+( \w+)? \(job \w+\): ")
"""What is not a result: how a job goes on, and the next command."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job that has no result, only an error."""

    error: TwinlakeError
    state: str = "failed"


def lines(done: Result) -> list[str]:
    """What the command told a person; the cells of a table are filled up with blanks.

    Results are on stdout; progress, and what to do next, are not.
    """
    assert not [line for line in done.stdout.splitlines() if WORDS.match(line)]
    assert not [line for line in done.stderr.splitlines() if not WORDS.match(line)]
    return [line.rstrip() for line in done.output.splitlines()]


class Answers:
    """A lake server where every kind of job ends at once: with this result, or failed.

    A job's id is its kind. What is not among the answers is not known.
    """

    def __init__(self, **results: dict[str, Any] | Failed | Ended) -> None:
        self.results = results
        self.asked: list[dict[str, Any]] = []
        self.askers: list[Asker] = []
        """Who has asked, by each client that was made."""
        self.cancelled: list[str] = []
        self.changelogs: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        self.webhooks: list[dict[str, Any]] = []
        self.ready = True
        self.status: dict[str, Any] = {}
        self.tables: dict[str, dict[str, Any]] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/status":
            said = {
                "ready": self.ready, "changelogs": self.changelogs, "published": self.published,
                "webhooks": self.webhooks,
            }  # fmt: skip
            return httpx.Response(200, json={**said, **self.status})
        place = request.url.path.split("/")[2:]
        if request.url.path.startswith("/tables/"):
            if place[0] in self.tables:
                return httpx.Response(200, json=self.tables[place[0]])
            return httpx.Response(404, json=NotFoundError(f"there is no table {place[0]!r}").to_json())
        if request.method == "POST" and not place:
            self.asked.append(json.loads(request.content))
            return self._told(self.asked[-1]["kind"], self.asked[-1]["params"])
        if not place:
            return httpx.Response(200, json=[self._job(kind, {"table": "t"}) for kind in self.results])
        if place[1:] == ["cancel"]:
            self.cancelled.append(place[0])
        return self._told(place[0], {"table": "t"})

    def _told(self, kind: str, params: dict[str, Any]) -> httpx.Response:
        if kind not in self.results:
            return httpx.Response(404, json=NotFoundError(f"there is no job {kind!r}").to_json())
        return httpx.Response(200, json=self._job(kind, params))

    def _job(self, kind: str, params: dict[str, Any]) -> dict[str, Any]:
        found = self.results[kind]
        job = {**ENDED, "id": kind, "kind": kind, "params": params}
        if isinstance(found, Ended):
            if found.state == "cancelled" and kind not in self.cancelled:
                return {**job, "state": "running", "ended_at": None, "result": None, "error": None}
            return {**job, "state": found.state, "result": None, "error": found.error.to_json()}
        if isinstance(found, Failed):
            failed = {"result": found.result.to_json(), "error": found.error.to_json()}
            return {**job, "state": "failed", **json.loads(json.dumps(failed))}
        return {**job, "state": "succeeded", "result": found, "error": None}

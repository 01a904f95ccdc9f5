"""LakeClient: how commands and Airflow tasks ask the lake server and follow a job to its end. No Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from jobs.errors import NotFoundError, TimedOutError, UnreachableError, error_of
from jobs.run import Job
from jobs.settings import Services
from jobs.waiting import wait_for

TIMEOUT_S = 30.0
WAIT_S = 2.0
"""One look at a job waits so long for a change; progress is shown as often."""
AGAIN_S = 0.1
TOLD_S = 5.0
AWAY_S = 120.0
"""A restarting lake server is waited for so long while a job is followed."""


class LakeClient:
    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S,
            transport=transport, trust_env=False,
        )  # fmt: skip

    @classmethod
    def of(cls, services: Services) -> LakeClient:
        if not services.api_url:
            raise UnreachableError(
                "the lake server is not running", "it has no address", "start it with `twinlake up`"
            )
        return cls(services.api_url, services.api_token)

    def status(self) -> dict[str, Any]:
        """What the server knows now: topics, versions, release, certificates."""
        return self._ask("GET", "/status")

    def submit(self, kind: str, params: Mapping[str, Any], key: str | None = None) -> Job:
        """Ask for a job; the same key finds the same job, or starts a failed one again."""
        asked = {"kind": kind, "params": dict(params), **({"key": key} if key else {})}
        return Job.from_json(self._ask("POST", "/jobs", json=asked))

    def jobs(self, limit: int = 100) -> list[Job]:
        """Newest first."""
        return [Job.from_json(told) for told in self._ask("GET", "/jobs", params={"limit": limit})]

    def job(self, id: str, wait_s: float = 0) -> Job:
        """The job now, or after so many seconds if it has not ended before."""
        return Job.from_json(self._ask("GET", f"/jobs/{_checked(id)}", params={"wait": wait_s}))

    def cancel(self, id: str) -> Job:
        return Job.from_json(self._ask("POST", f"/jobs/{_checked(id)}/cancel"))

    def follow(self, id: str, on_progress: Callable[[Job], None] = lambda job: None) -> Job:
        """The job once it has ended, however it did.

        A server that restarts meanwhile is waited for; the job is then found as it was left.
        """
        shown: Any = None
        while True:
            job = self._job_of_restarting_server(id)
            if (job.state, job.progress) != shown:
                on_progress(job)
                shown = (job.state, job.progress)
            else:
                time.sleep(AGAIN_S)  # it may have been answered at once
            if job.ended:
                return job

    def _job_of_restarting_server(self, id: str) -> Job:
        try:
            return wait_for(
                "the lake server to come back", lambda: self.job(id, WAIT_S), AWAY_S, every_s=1,
                unready=(UnreachableError,), remedy="see `twinlake status` and `twinlake logs lake`",
            )  # fmt: skip
        except TimedOutError as error:
            raise UnreachableError(error.what, error.why, error.remedy) from error

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise UnreachableError(
                "the lake server does not answer",
                f"{self._http.base_url}: {error or type(error).__name__}",
                "see `twinlake status` and `twinlake logs lake`, or start it with `twinlake up`",
            ) from error
        if answer.is_success:
            return answer.json()
        try:
            told = answer.json()
        except ValueError:
            told = {"what": f"the lake server answered {answer.status_code}", "why": answer.text[:300]}
        raise error_of(told)


def _checked(id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", id):
        raise NotFoundError(f"there is no job {id!r}", "that is no id of a job", "see `twinlake jobs list`")
    return id


def now_and_then(tell: Callable[[Job], None]) -> Callable[[Job], None]:
    """For logs: tells of every new state, and of progress every `TOLD_S` seconds."""
    told: dict[str, Any] = {"state": None, "at": 0.0}

    def tell_if_due(job: Job) -> None:
        if job.state != told["state"] or time.monotonic() - told["at"] >= TOLD_S:
            told.update(state=job.state, at=time.monotonic())
            tell(job)

    return tell_if_due

"""LakeClient: how commands and Airflow tasks ask the lake server and follow a job to its end. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import httpx

from jobs.errors import (
    ContractError,
    DefinitionError,
    TimedOutError,
    TwinlakeError,
    UnreachableError,
)
from jobs.settings import Services
from jobs.waiting import wait_for

TIMEOUT_S = 30.0
WAIT_S = 2.0
"""One look at a job waits so long for a change; progress is shown as often."""
AWAY_S = 120.0
"""A restarting lake server is waited for so long while a job is followed."""
ENDED = ("succeeded", "failed", "cancelled", "interrupted")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the lake server tells it; moments are RFC 3339, UTC."""

    id: str
    kind: str
    params: dict[str, Any]
    key: str | None
    state: str
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    attempt: int

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Job:
        return cls(**{field.name: told[field.name] for field in fields(cls)})

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def succeeded(self) -> dict[str, Any]:
        """Its result; a job that ended otherwise raises its error, of the class that it was there."""
        if self.state == "succeeded":
            return self.result or {}
        raise error_of(self.error or {"what": f"job {self.id} is {self.state}"})


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
        """What the server knows now: topics, versions, release, certificate."""
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
        return Job.from_json(self._ask("GET", f"/jobs/{id}", params={"wait": wait_s}))

    def cancel(self, id: str) -> Job:
        return Job.from_json(self._ask("POST", f"/jobs/{id}/cancel"))

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
            if job.state in ENDED:
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


def error_of(told: Mapping[str, Any]) -> TwinlakeError:
    """The error that the server told, of the class that it was there (so that its exit code is the same)."""
    kind = _classes().get(str(told.get("error")), TwinlakeError)
    error = kind.__new__(kind)
    what, remedy = str(told.get("what", "")), str(told.get("remedy", ""))
    facts = {name: str(value) for name, value in told.items() if name not in ("error", "what", "remedy")}
    # a file's error says why within what already, and repeats it among its facts
    why = "" if issubclass(kind, (ContractError, DefinitionError)) else facts.pop("why", "")
    TwinlakeError.__init__(error, what, why, remedy, facts)
    return error


def _classes() -> dict[str, type[TwinlakeError]]:
    found: dict[str, type[TwinlakeError]] = {}
    open_ = [TwinlakeError]
    while open_:
        kind = open_.pop()
        found[kind.__name__] = kind
        open_ += kind.__subclasses__()
    return found

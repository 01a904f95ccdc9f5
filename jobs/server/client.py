"""LakeClient: how commands and Airflow tasks ask the lake server and follow a job to its end. No Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from jobs.errors import TwinlakeError, UnreachableError
from jobs.settings import Services

Job = dict[str, Any]

TIMEOUT_S = 30.0
WAIT_S = 2.0
"""One look at a job waits so long for a change; progress is shown as often."""
AWAY_S = 120.0
"""A restarting lake server is waited for so long while a job is followed."""
ENDED = ("succeeded", "failed", "cancelled", "interrupted")


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
        return self._ask("POST", "/jobs", json=asked)

    def jobs(self, limit: int = 100) -> list[Job]:
        """Newest first."""
        found: list[Job] = self._ask("GET", "/jobs", params={"limit": limit})
        return found

    def job(self, id: str, wait_s: float = 0) -> Job:
        """The job now, or after so many seconds if it has not ended before."""
        return self._ask("GET", f"/jobs/{id}", params={"wait": wait_s})

    def cancel(self, id: str) -> Job:
        return self._ask("POST", f"/jobs/{id}/cancel")

    def follow(self, id: str, on_progress: Callable[[Job], None] = lambda job: None) -> Job:
        """The succeeded job. One that did not succeed raises its error, with the job itself as `error.job`.

        A server that restarts meanwhile is waited for; the job is then found as it was left.
        """
        shown: Any = None
        away_since: float | None = None
        while True:
            try:
                job = self.job(id, WAIT_S)
                away_since = None
            except UnreachableError:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > AWAY_S:
                    raise
                time.sleep(1)
                continue
            seen = (job["state"], job["progress"])
            if seen != shown:
                on_progress(job)
                shown = seen
            if job["state"] == "succeeded":
                return job
            if job["state"] in ENDED:
                error = error_of(job["error"] or {"what": f"job {id} is {job['state']}"})
                error.job = job  # type: ignore[attr-defined]
                raise error

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
    TwinlakeError.__init__(
        error, str(told.get("what", "")), str(told.get("why", "")), str(told.get("remedy", ""))
    )
    return error


def _classes() -> dict[str, type[TwinlakeError]]:
    found: dict[str, type[TwinlakeError]] = {}
    open_ = [TwinlakeError]
    while open_:
        kind = open_.pop()
        found[kind.__name__] = kind
        open_ += kind.__subclasses__()
    return found

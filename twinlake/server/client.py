"""LakeClient: how commands and Airflow tasks ask the lake server and follow a job to its end. No Spark."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import httpx

from twinlake.base.errors import (
    NotFoundError,
    TimedOutError,
    TwinlakeError,
    UnreachableError,
    UsageError,
    error_of,
)
from twinlake.base.job import NOBODY, Asker, Job
from twinlake.base.version import VERSION, is_compatible
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services

TIMEOUT_S = 30.0
WAIT_S = 2.0
"""One look at a job waits so long for a change; progress is shown as often."""
AGAIN_S = 0.1
_TOKEN = re.compile(r"[!-~]*")
SAID_EVERY_S = 5.0
AWAY_BEHIND_A_PROXY = (502, 503, 504)
"""What a proxy says when the server that it stands before does not answer."""
AWAY_S = 120.0
"""A restarting lake server is waited for so long while a job is followed."""


class LakeClient:
    """`ca_file` has the certificates that an https address is trusted by; the system's unless given.

    `asker` is who asks, for the audit log, where a call does not name another. `renewed` is asked for the
    token once the server refuses the one of before, which may have been rotated meanwhile.
    """

    def __init__(
        self, url: str, token: str, transport: httpx.BaseTransport | None = None, ca_file: str | None = None,
        asker: Asker = NOBODY, timeout_s: float = TIMEOUT_S, renewed: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        self._asker, self._token, self._renewed = asker, token, renewed
        if not _TOKEN.fullmatch(token):  # httpx would say so with the token, in a form that no log masks
            raise UsageError(
                "the lake server's token cannot be sent",
                "it has an end of line, or other characters that no token has",
                "give the `api_token` of services.json alone",
            )
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=timeout_s,
            transport=transport, trust_env=False, verify=_trusted(ca_file) if _is_tls(url) else True,
        )  # fmt: skip

    @classmethod
    def of(
        cls, services: Services, asker: Asker = NOBODY, timeout_s: float = TIMEOUT_S,
        read_again: Callable[[], Services] | None = None,
    ) -> LakeClient:  # fmt: skip
        """`read_again` is where the services were read."""
        if not services.api_url:
            raise UnreachableError(
                "the lake server is not running", "it has no address", "start it with `twinlake up`"
            )
        renewed = (lambda: read_again().api_token) if read_again else None
        return cls(services.api_url, services.api_token, asker=asker, timeout_s=timeout_s, renewed=renewed)

    def refuse_other_version(self, remedy: str) -> None:
        """UsageError, with this remedy, where the server is of a version that this client does not know."""
        health = self._ask("GET", "/health")
        theirs = str(health.get("version") or "an older one") if isinstance(health, dict) else "none"
        if not is_compatible(theirs):
            raise UsageError(
                "this code and the lake server do not understand each other",
                f"its version is {VERSION}, that of the lake server {theirs}",
                remedy,
            )

    def status(self) -> dict[str, Any]:
        """What the server knows now: topics, versions, release, certificates."""
        found: dict[str, Any] = self._ask("GET", "/status")
        return found

    def status_when_ready(self) -> dict[str, Any]:
        """The same; UnreachableError while the server starts and does not know all of it yet."""
        found = self.status()
        if not found["ready"]:
            raise UnreachableError(
                "the lake server is starting", "it has not read yet which tables and changelogs there are",
                "ask again in a moment; `twinlake status` shows how far it is, `twinlake logs lake` why",
            )  # fmt: skip
        return found

    def submit(
        self, kind: str, params: Mapping[str, Any], key: str | None = None, asker: Asker | None = None
    ) -> Job:
        """Ask for a job; the same key finds the same job, or starts a failed one again."""
        asked = {"kind": kind, "params": dict(params), **({"key": key} if key else {}), **self._who(asker)}
        return Job.from_json(self._ask("POST", "/jobs", json=asked))

    def jobs(self, limit: int = 100) -> list[Job]:
        """Newest first."""
        return [Job.from_json(data) for data in self._ask("GET", "/jobs", params={"limit": limit})]

    def find(self, key: str) -> Job | None:
        """The job that has this key, as it is; it is not started again."""
        found = self._ask("GET", "/jobs", params={"key": key})
        return Job.from_json(found[0]) if found else None

    def job(self, id: str, wait_s: float = 0) -> Job:
        """The job now, or after so many seconds if it has not ended before."""
        return Job.from_json(self._ask("GET", f"/jobs/{_checked(id)}", params={"wait": wait_s}))

    def acts(self, limit: int = 100) -> list[dict[str, Any]]:
        """Who asked for what, the newest first."""
        found: list[dict[str, Any]] = self._ask("GET", "/audit", params={"limit": limit})
        return found

    def query_cancelled(self, query: Mapping[str, Any], asker: Asker | None = None) -> None:
        """Has it written down that this query, as the SQL server lists it, is cancelled."""
        of = {name: query[name] for name in ("user", "endpoint", "sql")}
        self._ask("POST", f"/audit/queries/{_checked(query['id'])}", json={**of, **self._who(asker)})

    def user_changed(
        self, user: str, change: str, role: str | None = None, rights: Mapping[str, Any] | None = None
    ) -> None:
        """Has it written down that a user is changed."""
        what = {"role": role, "rights": rights}
        of = {"user": user, "change": change, **{name: to for name, to in what.items() if to is not None}}
        self._ask("POST", "/audit/users", json={**of, **self._who(None)})

    def secrets_rotated(self, secrets: Iterable[str]) -> None:
        """Has it written down that secrets of these names are rotated."""
        self._ask("POST", "/audit/rotations", json={"secrets": [*secrets], **self._who(None)})

    def upgraded(self, what: Mapping[str, str]) -> None:
        """Has it written down that the data directory was upgraded, or is about to go back."""
        self._ask("POST", "/audit/upgrades", json={**what, **self._who(None)})

    def cancel(self, id: str, asker: Asker | None = None) -> Job:
        return Job.from_json(self._ask("POST", f"/jobs/{_checked(id)}/cancel", json=self._who(asker)))

    def _who(self, asker: Asker | None) -> dict[str, Any]:
        """What a request says of who asks, as far as it is not what is taken of one that says nothing."""
        said = asdict(asker or self._asker)
        return {name: value for name, value in said.items() if value != getattr(NOBODY, name)}

    def releases(self, limit: int = 50, number: int | None = None) -> list[dict[str, Any]]:
        """Newest first, with what each changed; with `number` that one alone."""
        asked = {"limit": limit, **({} if number is None else {"number": number})}
        found: list[dict[str, Any]] = self._ask("GET", "/releases", params=asked)
        return found

    def plans(self, limit: int = 10) -> list[dict[str, Any]]:
        """Newest first, each with how far it has come."""
        found: list[dict[str, Any]] = self._ask("GET", "/plans", params={"limit": limit})
        return found

    def plan(self, id: str) -> dict[str, Any]:
        """What it changes, its gate, its differences."""
        found: dict[str, Any] = self._ask("GET", f"/plans/{_checked(id, 'plan', 'twinlake plan')}")
        return found

    def table(self, name: str) -> dict[str, Any]:
        """What it means, its versions, certificates, releases, and what it is made of."""
        found: dict[str, Any] = self._ask("GET", f"/tables/{_checked(name, 'table', 'twinlake status')}")
        return found

    def topics(self) -> list[dict[str, Any]]:
        """Every topic, with what the project's files say of it beside what is active."""
        found: list[dict[str, Any]] = self._ask("GET", "/topics")
        return found

    def topic(self, name: str) -> dict[str, Any]:
        """Its contract, schemas, columns with what is made of them, and the views that readers have."""
        found: dict[str, Any] = self._ask("GET", f"/topics/{_checked(name, 'topic', 'twinlake status')}")
        return found

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

    def _has_other_token(self) -> bool:
        token = self._renewed() if self._renewed else self._token
        if token == self._token or not _TOKEN.fullmatch(token):
            return False
        self._token = token
        self._http.headers["Authorization"] = f"Bearer {token}"
        return True

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = self._http.request(method, path, **more)
            if answer.status_code == httpx.codes.UNAUTHORIZED and self._has_other_token():
                answer = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            if (untrusted := _untrusted(error)) is not None:
                raise UsageError(
                    "the certificate of the lake server's address is not trusted",
                    f"{self._http.base_url}: {untrusted.verify_message}",
                    "name the file with the certificates to trust (`ca_file`), or fix the address",
                ) from error
            raise UnreachableError(
                "the lake server does not answer",
                f"{self._http.base_url}: {error or type(error).__name__}",
                "see `twinlake status` and `twinlake logs lake`, or start it with `twinlake up`",
            ) from error
        try:
            body = answer.json()
        except ValueError as error:
            away = answer.status_code in AWAY_BEHIND_A_PROXY
            raise (UnreachableError if away else TwinlakeError)(
                f"the lake server answered {answer.status_code}, which is not JSON",
                answer.text[:300],
                f"see what answers at {self._http.base_url}",
            ) from error
        if answer.is_success:
            return body
        raise error_of(body if isinstance(body, dict) else {"what": f"it answered {answer.status_code}"})


def _is_tls(url: str) -> bool:
    return url.lower().startswith("https:")


def _trusted(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an SSLError is one, too
        raise UsageError(
            f"the certificates in {ca_file} cannot be read", error.strerror or str(error),
            "name a file with certificates in PEM",
        ) from error  # fmt: skip


def _untrusted(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """What the TLS library said, somewhere below what httpx makes of it."""
    at: BaseException | None = error
    while at is not None and not isinstance(at, ssl.SSLCertVerificationError):
        at = at.__cause__ or at.__context__
    return at


def _checked(id: str, what: str = "job", command: str = "twinlake jobs list") -> str:
    """What goes into a path, and reaches nothing else by it."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", id):
        raise NotFoundError(f"there is no {what} {id!r}", f"it does not name a {what}", f"see `{command}`")
    return id


def now_and_then(tell: Callable[[Job], None]) -> Callable[[Job], None]:
    """For logs: tells of every new state, of what is waited for, of progress every `SAID_EVERY_S` seconds."""
    last: dict[str, Any] = {"news": None, "at": 0.0}

    def tell_if_due(job: Job) -> None:
        news = (job.state, job.progress.get("waiting_for"))
        if news != last["news"] or time.monotonic() - last["at"] >= SAID_EVERY_S:
            last.update(news=news, at=time.monotonic())
            tell(job)

    return tell_if_due

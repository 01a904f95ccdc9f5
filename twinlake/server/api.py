"""The lake server's HTTP API on loopback. Every request but /health carries the bearer token."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Protocol

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from twinlake.base import http_errors
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.http_errors import LimitedBody
from twinlake.base.job import Asker, Via
from twinlake.base.strict import Plain
from twinlake.base.times import Clock, format_moment, utc_now
from twinlake.base.version import VERSION
from twinlake.config.users import ROLES
from twinlake.lake.catalog.audit_log import AuditLog
from twinlake.lake.open_lake import OpenLake
from twinlake.server import read_routes
from twinlake.server.job_models import Person, Reason
from twinlake.server.jobs import Jobs
from twinlake.server.read_routes import Digits
from twinlake.server.tokens import Accepted

LONGEST_WAIT_S = 60.0
MOST_WAITS = 20
"""More are answered at once: the threads that wait are those that everybody else needs, too."""
LARGEST_BODY = 4 << 20
MOST_ACTS = 10_000
LONGEST_SQL = 10_000
TOKEN = "take api_token from the lake server's services.json; for an Airflow elsewhere see docs/airflow.md"


class Served(Protocol):
    """What the API shows: the lake server."""

    ready: bool
    lake_id: str
    jobs: Jobs
    audit: AuditLog

    @property
    def error(self) -> TwinlakeError | None:
        """Why it is about to end."""

    @property
    def lake(self) -> OpenLake:
        """BusyError before it is open."""

    def status(self) -> dict[str, Any]: ...


class Asked(Plain):
    """Who asks, by which way, and why: for the audit log."""

    by: Person | None = None
    via: Via = "api"
    why: Reason | None = None

    def asker(self) -> Asker:
        return Asker(by=self.by, via=self.via, why=self.why)


class NewJob(Asked):
    kind: str = Field(max_length=40)
    params: dict[str, Any] = Field(default_factory=dict)
    key: str | None = Field(default=None, min_length=1, max_length=300)


class CancelledQuery(Asked):
    """What the SQL server says of a query that is to end."""

    user: Person
    endpoint: Literal["http", "jdbc", "flight"]
    sql: str = Field(max_length=LONGEST_SQL)


class ChangedUser(Asked):
    """What `twinlake users` is about to do."""

    user: Person
    change: Literal["add", "remove", "role", "password", "rights", "disable", "enable"]
    role: str | None = Field(default=None, pattern=f"^({'|'.join(ROLES)})$")
    rights: dict[str, Any] | None = None
    """As `config/rights.py` has them."""


class RotatedSecrets(Asked):
    """The names of what `twinlake rotate` is about to change."""

    secrets: list[Annotated[str, Field(pattern="^[a-z_]{1,40}$")]] = Field(min_length=1, max_length=20)


class Upgraded(Asked):
    """What `twinlake upgrade` has done, or is about to do."""

    change: Literal["upgrade", "back"]
    from_: str = Field(alias="from", max_length=60)
    to: str = Field(max_length=60)


def build_app(server: Served, tokens: str | Accepted, now: Clock = utc_now) -> FastAPI:
    """`tokens` is the one that lets in, or says at each request which do."""
    waits = threading.BoundedSemaphore(MOST_WAITS)
    app = FastAPI(title="Twinlake lake server", openapi_url=None, docs_url=None, redoc_url=None)
    # the one added last is asked first: an unauthenticated body is not read
    app.add_middleware(LimitedBody, most=LARGEST_BODY)

    @app.middleware("http")
    async def _admit(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.headers.get("authorization", "").encode()
        accepted = [tokens] if isinstance(tokens, str) else tokens()
        is_one = any([secrets.compare_digest(given, f"Bearer {token}".encode()) for token in accepted])
        if request.url.path != "/health" and not is_one:
            return _error(401, "the token is missing or wrong", "", TOKEN)
        return await go_on(request)

    def status_of(error: TwinlakeError) -> int:
        return 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 409

    http_errors.install(app, status_of, "see `twinlake logs lake`")

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Whether it is ready, which lake it serves, by which version of Twinlake, why it is about to end."""
        error = server.error.to_json() if server.error else None
        return {
            "ready": server.ready and not error,
            "lake_id": server.lake_id,
            "version": VERSION,
            "error": error,
        }

    @app.get("/status")
    def status() -> dict[str, Any]:
        """Topics, versions, the live release, the newest certificate of each of its tables."""
        return server.status()

    @app.post("/jobs", status_code=202)
    def submit(asked: NewJob) -> dict[str, Any]:
        """Takes a job and answers with it before it is done."""
        return server.jobs.submit(asked.kind, asked.params, asked.key, asked.asker()).to_json()

    @app.get("/jobs")
    def jobs(
        limit: Annotated[Digits, Query(ge=1, le=1000)] = 100,
        key: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
    ) -> list[dict[str, Any]]:
        """The newest jobs first; with `key` the one that has it, or none."""
        return [job.to_json() for job in server.jobs.list(key)[:limit]]

    @app.get("/jobs/{id}")
    def job(id: str, wait: float = Query(default=0, ge=0, le=LONGEST_WAIT_S)) -> dict[str, Any]:
        """One job; waits so many seconds for its end, unless too many wait already."""
        if not waits.acquire(blocking=False):
            return server.jobs.wait(id, 0).to_json()
        try:
            return server.jobs.wait(id, wait).to_json()
        finally:
            waits.release()

    @app.post("/jobs/{id}/cancel")
    def cancel(id: str, asked: Asked | None = None) -> dict[str, Any]:
        """Asks a job to end where it safely can."""
        return server.jobs.cancel(id, (asked or Asked()).asker()).to_json()

    @app.get("/audit")
    def audit(limit: Annotated[Digits, Query(ge=1, le=MOST_ACTS)] = 100) -> list[dict[str, Any]]:
        """Who asked for what, by which way and why, and how it ended; the newest acts first."""
        return [act.to_json() for act in server.audit.acts()[:limit]]

    @app.post("/audit/queries/{id}")
    def query_cancelled(id: Annotated[str, Path(max_length=100)], asked: CancelledQuery) -> dict[str, Any]:
        """Writes down that somebody cancels another's query; the SQL server, which does it, looks for it."""
        of = {"user": asked.user, "endpoint": asked.endpoint, "sql": asked.sql}
        server.audit.query_cancelled(id, of, asked.asker(), format_moment(now()))
        return {"id": id}

    @app.post("/audit/users")
    def user_changed(asked: ChangedUser) -> dict[str, Any]:
        """Writes down that somebody changes the users; the command, which does it, looks for it."""
        of = asked.model_dump(include={"change", "user", "role", "rights"}, exclude_none=True)
        server.audit.users_changed(of, asked.asker(), format_moment(now()))
        return of

    @app.post("/audit/rotations")
    def secrets_rotated(asked: RotatedSecrets) -> dict[str, Any]:
        """Writes down that somebody rotates secrets; the command, which does it, looks for it."""
        server.audit.secrets_rotated(asked.secrets, asked.asker(), format_moment(now()))
        return {"secrets": asked.secrets}

    @app.post("/audit/upgrades")
    def upgraded(asked: Upgraded) -> dict[str, Any]:
        """Writes down that somebody has upgraded to this version, or goes back; the command does it."""
        of = {"change": asked.change, "from": asked.from_, "to": asked.to}
        server.audit.upgraded(of, asked.asker(), format_moment(now()))
        return of

    read_routes.install(app, lambda: server.lake)
    return app


def _error(status: int, what: str, why: str, remedy: str) -> Response:
    return JSONResponse(UsageError(what, why, remedy).to_json(), status)

"""The lake server's HTTP API on loopback. Every request but /health carries the bearer token."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BeforeValidator, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobs.errors import NotFoundError, TwinlakeError, UsageError, malformed, refused
from jobs.server.jobs import Jobs
from jobs.strict import Plain
from jobs.version import VERSION

LONGEST_WAIT_S = 60.0
MOST_WAITS = 20
"""More are answered at once: the threads that wait are those that everybody else needs, too."""
LARGEST_BODY = 4 << 20
TOKEN = "take api_token from the lake server's services.json; for an Airflow elsewhere see docs/airflow.md"


def _digits(text: Any) -> Any:
    """A query string has texts alone; pydantic would take `1.0`, `+1` and `1_0` for numbers."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit()):
        raise ValueError("it is not a whole number")
    return text


Digits = Annotated[int, BeforeValidator(_digits)]


class Served(Protocol):
    """What the API shows: the lake server."""

    ready: bool
    lake_id: str
    jobs: Jobs

    def status(self) -> dict[str, Any]: ...


class NewJob(Plain):
    kind: str = Field(max_length=40)
    params: dict[str, Any] = Field(default_factory=dict)
    key: str | None = Field(default=None, min_length=1, max_length=300)


class LimitedBody:
    """Refuses a body longer than LARGEST_BODY while it comes in, whatever length the client stated."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = []
        had = 0
        while scope["type"] == "http" and (not messages or messages[-1].get("more_body", False)):
            messages.append(await receive())
            had += len(messages[-1].get("body", b""))
            if had > LARGEST_BODY:
                refused = _error(
                    413, "the request is too large", f"the limit is {LARGEST_BODY} bytes", "send less"
                )
                return await refused(scope, receive, send)

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)


def build_app(server: Served, token: str) -> FastAPI:
    waits = threading.BoundedSemaphore(MOST_WAITS)
    app = FastAPI(title="Twinlake lake server", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(LimitedBody)  # the one added last is asked first: a stranger's body is not read

    @app.middleware("http")
    async def _admit(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.headers.get("authorization", "").encode()
        if request.url.path != "/health" and not secrets.compare_digest(given, f"Bearer {token}".encode()):
            return _error(401, "the token is missing or wrong", "", TOKEN)
        return await go_on(request)

    @app.exception_handler(TwinlakeError)
    async def _known(request: Request, error: TwinlakeError) -> Response:
        status = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 409
        return JSONResponse(error.to_json(), status)

    @app.exception_handler(RequestValidationError)
    async def _wrong(request: Request, error: RequestValidationError) -> Response:
        return JSONResponse(malformed(error.errors()).to_json(), 400)

    @app.exception_handler(HTTPException)
    async def _refused(request: Request, error: HTTPException) -> Response:
        told = refused(error.status_code, error.detail, request.method, request.url.path)
        return JSONResponse(told.to_json(), error.status_code, error.headers)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Whether it is ready, which lake it serves, and by which version of Twinlake."""
        return {"ready": server.ready, "lake_id": server.lake_id, "version": VERSION}

    @app.get("/status")
    def status() -> dict[str, Any]:
        """Topics, versions, the live release, the newest certificate of each of its tables."""
        return server.status()

    @app.post("/jobs", status_code=202)
    def submit(asked: NewJob) -> dict[str, Any]:
        """Takes a job and answers with it before it is done."""
        return server.jobs.submit(asked.kind, asked.params, asked.key).to_json()

    @app.get("/jobs")
    def jobs(limit: Annotated[Digits, Query(ge=1, le=1000)] = 100) -> list[dict[str, Any]]:
        """The newest jobs first."""
        return [job.to_json() for job in server.jobs.list()[:limit]]

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
    def cancel(id: str) -> dict[str, Any]:
        """Asks a job to end where it safely can."""
        return server.jobs.cancel(id).to_json()

    return app


def _error(status: int, what: str, why: str, remedy: str) -> Response:
    return JSONResponse(UsageError(what, why, remedy).to_json(), status)

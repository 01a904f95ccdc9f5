"""HTTP errors: whatever an HTTP server of ours refuses, or fails in, is JSON with what, why and remedy."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from twinlake.base.errors import TwinlakeError, UsageError, malformed, refused

ABORT = "abort"
"""In the `state` of a request's scope: what ends its connection at once, whatever waits to be sent."""
HEAD_S = 10.0
BODY_S = 30.0
"""So long the body of a request may take."""


def error_response(status: int, error: TwinlakeError) -> JSONResponse:
    return JSONResponse(error.to_json(), status)


def install(app: FastAPI, status_of: Callable[[TwinlakeError], int], remedy: str) -> None:
    """Every error of the app's: ours, the framework's, and those that nobody expected (with this remedy)."""

    @app.exception_handler(TwinlakeError)
    async def ours(_: Request, error: TwinlakeError) -> JSONResponse:
        return error_response(status_of(error), error)

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(400, malformed(error.errors()))

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> JSONResponse:
        served = _methods(request) if error.status_code == 405 else []
        found = refused(error.status_code, error.detail, request.method, request.url.path, served)
        headers = {**(error.headers or {}), **({"Allow": ", ".join(served)} if served else {})}
        return JSONResponse(found.to_json(), error.status_code, headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        """Starlette raises it again after this, so that the log has all of it."""
        what = f"{request.method} {request.url.path} failed: this is an error of the server's"
        why = f"{type(error).__name__}: {error}"[:300]
        return error_response(500, TwinlakeError(what, why, remedy))


def _methods(request: Request) -> list[str]:
    """By which the path is served."""
    routes = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for one in routes for method in getattr(one, "methods", None) or ()})


class LimitedBody:
    """Refuses a body longer than so many bytes while it comes in, whatever length the client stated, and one
    that has not come within BODY_S: what has come of it is kept meanwhile. `most` may depend on who asks;
    `remedy` is of one that is too long."""

    def __init__(self, app: ASGIApp, most: int | Callable[[Scope], int], remedy: str = "send less") -> None:
        self._app = app
        self._most = most if callable(most) else lambda scope: most
        self._remedy = remedy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = []
        if scope["type"] == "http":
            try:
                async with asyncio.timeout(BODY_S):
                    refusal = await self._received(receive, messages, self._most(scope))
            except TimeoutError:
                why = f"its body has not come within {BODY_S:g} s"
                refusal = error_response(408, UsageError("the request is too slow", why, "send it again"))
            if messages and messages[-1]["type"] == "http.disconnect":
                return  # nobody hears an answer
            if refusal is not None:
                refusal.headers["Connection"] = "close"  # what comes of it is no request
                return await refusal(scope, receive, send)

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)

    async def _received(self, receive: Receive, messages: list[Message], most: int) -> JSONResponse | None:
        """Fills `messages`, to the last one of the body; the answer where there are too many bytes."""
        had = 0
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
            had += len(messages[-1].get("body", b""))
            if had > most:
                error = UsageError("the request is too large", f"the limit is {most} bytes", self._remedy)
                return error_response(413, error)
        return None


class Protocol(H11Protocol):
    """uvicorn's, for its `http` setting: what is not HTTP is refused in JSON, too.

    Who does not send the head of a request is cut off after HEAD_S to twice that, silent or slow: each
    connection holds a file open.
    """

    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: transport.abort}  # the `state` of each request's scope
        self._look_again(waits=True)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking:
            self._looking.cancel()
        super().connection_lost(exc)

    def _look(self, waited: bool, answered: object) -> None:
        waits = self.cycle is None or self.cycle.response_complete
        if waited and waits and answered is self.cycle:
            self.transport.close()
        else:
            self._look_again(waits)

    def _look_again(self, waits: bool) -> None:
        self._looking = self.loop.call_later(HEAD_S, self._look, waits, self.cycle)

    def send_400_response(self, msg: str) -> None:
        status = int(getattr(sys.exc_info()[1], "error_status_hint", 400))
        why = str(sys.exc_info()[1] or msg)
        error = UsageError("the request is malformed", why, "send HTTP/1.1, with headers of less than 64 KiB")
        body = json.dumps(error.to_json()).encode()
        head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        self.transport.write(f"{head}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()

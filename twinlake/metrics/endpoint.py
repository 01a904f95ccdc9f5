"""Endpoint: serves /metrics of one registry over HTTP, to whoever shows user and password, in one thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBasic
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException

from twinlake.base import http_errors
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.http_errors import LimitedBody, Protocol

PATH = "/metrics"
LARGEST_BODY = 1 << 10
"""Nobody has to send one."""
STOP_S = 5.0
BASIC = HTTPBasic(realm="Twinlake metrics", auto_error=False)
Admits = Callable[[str, str], bool]


def build_app(registry: CollectorRegistry, admits: Admits) -> FastAPI:
    """`admits` says whether user and password are right."""
    app = FastAPI(title="Twinlake metrics", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(LimitedBody, most=LARGEST_BODY)

    @app.middleware("http")
    async def admit(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        with suppress(HTTPException):  # it is no Basic authorization at all
            given = await BASIC(request)
            if given and admits(given.username, given.password):
                return await go_on(request)
        unknown = UsageError(
            "the request was refused", "its user or password is missing or wrong",
            "take metrics_user and metrics_password from services.json",
        )  # fmt: skip
        return JSONResponse(unknown.to_json(), 401, headers=BASIC.make_authenticate_headers())

    http_errors.install(app, lambda error: 409, "see the log of the process by `twinlake logs`")

    @app.get(PATH)
    async def metrics(request: Request) -> Response:
        """In the form that the client prefers: Prometheus' text, or OpenMetrics."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return app


class Endpoint:
    """From `start` to `stop`. What it serves is read in its one thread, one request after the other."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int, admits: Admits) -> None:
        """Port 0 takes a free one."""
        self._host, self._port = host, port
        config = uvicorn.Config(
            build_app(registry, admits), log_level="warning", log_config=None, access_log=False,
            http=Protocol, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        return self._port

    def start(self) -> None:
        """On return it listens; TwinlakeError where it cannot."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.socket(family)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self._host, self._port))
            listening.listen()
        except OSError as error:
            listening.close()
            raise TwinlakeError(
                f"the metrics cannot be served at {self._host}:{self._port}", error.strerror or str(error),
                "set [metrics] host or the port of [ports] in twinlake.toml, or `[metrics] serve = \"off\"`",
            ) from error  # fmt: skip
        self._port = int(listening.getsockname()[1])
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="metrics", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """On return it listens no more."""
        self._server.should_exit = True
        if self._thread:
            self._thread.join(STOP_S)

"""The console as an application: its routes, the guard around them, and what else goes wrong as a page."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from twinlake.base.address import LOOPBACK_NAMES
from twinlake.base.errors import NotFoundError, TwinlakeError, refused
from twinlake.base.http_errors import LimitedBody
from twinlake.base.version import VERSION
from twinlake.console import audit, home, jobs, plots, queries, query, releases, sign_in, tables, topics
from twinlake.console.console import Console
from twinlake.console.guard import Guard
from twinlake.console.metrics import Counted

LARGEST_BODY = 1 << 20
LARGEST_UNKNOWN = 1 << 14
"""Of who is not signed in."""
LESS = "send less; whose session has ended meanwhile, sign in again at /sign-in"


class Static(StaticFiles):
    """The style and the script: asked for again each time, sent where they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        found = await super().get_response(path, scope)
        found.headers["Cache-Control"] = "no-cache"
        return found


def build_app(console: Console, names: Sequence[str] = ()) -> Starlette:
    """`names` are what browsers call it besides those of the loopback interface."""

    async def health(request: Request) -> Response:
        """Open to everybody: that it runs, and by which version."""
        return JSONResponse({"ready": True, "version": VERSION})

    async def not_served(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        found = refused(error.status_code, error.detail, request.method, request.url.path)
        if error.status_code == 404 and request.method == "GET":
            found = NotFoundError(f"there is no page {request.url.path}", "", "begin at Home")
        page = console.error(found, console.session(request))
        page.status_code = error.status_code
        return page

    async def unexpected(request: Request, error: Exception) -> Response:
        """Starlette raises it again after this, so that the log has all of it."""
        what = f"{request.method} {request.url.path} failed: this is an error of the console's"
        found = TwinlakeError(what, type(error).__name__, "see `twinlake logs console`")
        page = console.error(found, None)
        page.status_code = 500
        return page

    def most(scope: Scope) -> int:
        is_known = console.session(Request(scope), is_use=False) is not None
        return LARGEST_BODY if is_known else LARGEST_UNKNOWN

    routes: list[Route | Mount] = [
        Route("/health", health, methods=["GET"]),
        Mount("/static", Static(packages=[("twinlake.console", "static")])),
        *sign_in.routes(console), *home.routes(console), *jobs.routes(console), *query.routes(console),
        *audit.routes(console), *releases.routes(console), *tables.routes(console), *topics.routes(console),
        *plots.routes(console), *queries.routes(console),
    ]  # fmt: skip
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Counted, routes=routes, requests=console.metrics.requests),
            Middleware(Guard, names=(*LOOPBACK_NAMES, *names), is_tls=console.is_tls),
            Middleware(LimitedBody, most=most, remedy=LESS),
        ],
        exception_handlers={HTTPException: not_served, Exception: unexpected},
    )  # fmt: skip

"""Console: what the handlers of all pages share; who is signed in, what a form has to show, how an error
looks."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from twinlake.alarms.history import History, history_folder
from twinlake.base.errors import (
    DeniedError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
)
from twinlake.base.job import Job
from twinlake.base.times import Clock
from twinlake.config.settings import Settings
from twinlake.console.figures import (
    LAKE_EVERY_S,
    SERVICES_EVERY_S,
    Services,
    Source,
    lake_client,
    services_of,
)
from twinlake.console.metrics import ConsoleMetrics
from twinlake.console.pages import Pages
from twinlake.console.sessions import Session, Sessions
from twinlake.console.slowdown import Slowdown
from twinlake.console.statement import Statements
from twinlake.console.thinning import Thinned, thin
from twinlake.server.client import LakeClient

DAY_S = 86_400
HISTORY_EVERY_S = {1: 55.0, 7: 600.0}
"""By the days that are looked at: how often the history is read at most. A page asks once a minute; seven
days take seven times as long, and have a step in 17 minutes."""
FIELDS = 20
JOBS_SHOWN = 50
FORM_TOKEN = "form_token"
SAME_SITE: Literal["lax"] = "lax"
PLACES, PLACE_S = 16, 3.0
"""So many pages wait for the lake server at once, the next ones so long for a place: a server that hangs does
not take Home with it, which says so."""
T = TypeVar("T")
Handler = Callable[[Request, Session], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Console:
    """One console. `cookie` is a name of its own: a browser keeps cookies by host, whatever the port;
    `history` is by days."""

    settings: Settings
    users_file: Path
    sessions: Sessions
    slowdown: Slowdown
    pages: Pages
    services: Source[Services]
    lake: Source[dict[str, Any]]
    jobs: Source[list[Job]]
    history: Mapping[int, Source[Thinned]]
    client: Callable[[], LakeClient]
    statements: Statements
    cookie: str
    is_tls: bool
    metrics: ConsoleMetrics
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))

    @classmethod
    def of(
        cls, settings: Settings, users_file: Path, port: int, is_tls: bool, now: Clock,
        client: Callable[[], LakeClient] | None = None, services: Callable[[], Services] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Console:  # fmt: skip
        """The console of a data directory; `client` and `services` are whom it asks, those that run there
        unless given."""
        ask = client or (lambda: lake_client(settings))
        metrics = ConsoleMetrics()
        return cls(
            settings=settings, users_file=users_file, sessions=Sessions(users_file, clock),
            slowdown=Slowdown(clock), pages=Pages(now),
            services=Source(services or (lambda: services_of(settings)), SERVICES_EVERY_S, clock),
            lake=Source(lambda: ask().status(), LAKE_EVERY_S, clock),
            jobs=Source(lambda: ask().jobs(JOBS_SHOWN), LAKE_EVERY_S, clock),
            history={
                days: Source(partial(_history, settings, days, now), every_s, clock)
                for days, every_s in HISTORY_EVERY_S.items()
            },
            client=ask, statements=Statements(metrics), metrics=metrics,
            cookie=f"{'__Host-' if is_tls else ''}twinlake-{port}", is_tls=is_tls,
        )  # fmt: skip

    def session(self, request: Request, is_use: bool = True) -> Session | None:
        return self.sessions.find(request.cookies.get(self.cookie, ""), is_use)

    def signed_in(
        self, handler: Handler, *, acts: bool = False, is_part: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """The handler for who is signed in. A form has to show its token; one that `acts`, a role that may.

        A part of a page, which refreshes itself, is refused with 401; a page leads to the sign-in.
        """

        async def handle(request: Request) -> Response:
            session = self.session(request, is_use=not is_part)
            if session is None:
                return Response(status_code=401) if is_part else RedirectResponse(_sign_in(request), 303)
            try:
                if request.method == "POST":
                    request.state.form = await form(request)
                    if not session.holds_form_token(request.state.form.get(FORM_TOKEN, "")):
                        raise form_refused()
                if acts and not session.user.acts:
                    raise DeniedError(
                        f"{session.user.name} may not do that", f"the role {session.user.role} reads",
                        f"ask an operator, or an admin for another role: `twinlake users role "
                        f"{session.user.name} operator`",
                    )  # fmt: skip
                return await handler(request, session)
            except TwinlakeError as error:
                return self.error(error, session)

        return handle

    async def looked(self, look: Callable[[], T]) -> T:
        """What is known of sources (`figures.py`): they keep nobody waiting for long."""
        return await run_in_threadpool(look)

    async def asked(self, ask: Callable[[], T]) -> T:
        """The answer of what waits for another server. Of the threads that pages wait in some are left for
        those that only look; UnreachableError where none becomes free for a while."""
        try:
            async with asyncio.timeout(PLACE_S):
                await self.places.acquire()
        except TimeoutError:
            raise UnreachableError(
                "the lake server was not asked", f"{PLACES} pages wait for its answers already",
                "see on Home whether it answers, and load the page again",
            ) from None  # fmt: skip
        try:
            return await run_in_threadpool(ask)
        finally:
            self.places.release()

    def page(self, template: str, session: Session | None, status: int = 200, **values: Any) -> HTMLResponse:
        return self.pages.page(template, status, session=session, **values)

    async def large_page(self, template: str, session: Session | None, **values: Any) -> HTMLResponse:
        """One with values of records, however many: other pages go on while it is made."""
        return await run_in_threadpool(partial(self.page, template, session, **values))

    def error(self, error: TwinlakeError, session: Session | None) -> HTMLResponse:
        return self.page("error", session, status_of(error), error=error, active="")

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Until the browser is closed, for this console alone, and out of reach of any script.

        A link from another site is followed with it (`lax`); what such a site sends as a form is not.
        """
        response.set_cookie(name, value, httponly=True, samesite=SAME_SITE, secure=self.is_tls, path="/")

    def delete_cookie(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path="/", secure=self.is_tls, httponly=True, samesite=SAME_SITE)


def _history(settings: Settings, days: int, now: Clock) -> Thinned:
    until = int(now().timestamp())
    return thin(History(history_folder(settings)).points(days * DAY_S, until), days * DAY_S, until)


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; UsageError for what is none. A body is limited before it comes here."""
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="strict"))
    except ValueError as error:  # a UnicodeDecodeError is one
        raise UsageError("this is not a form", str(error), "use the page") from error


def _sign_in(request: Request) -> str:
    """The address of the sign-in, which leads back to the page that was asked for."""
    asked_for = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method != "GET" or asked_for == "/":
        return "/sign-in"
    return f"/sign-in?{urlencode({'next': asked_for})}"


def form_refused() -> DeniedError:
    return DeniedError(
        "the form was refused", "it is not one that this console has given to this browser, or it is too old",
        "go back, load the page again, and send it once more",
    )  # fmt: skip


def new_token() -> str:
    return secrets.token_urlsafe(24)


def status_of(error: TwinlakeError) -> int:
    known = ((NotFoundError, 404), (UsageError, 400), (DeniedError, 403), (UnreachableError, 503))
    return next((status for kind, status in known if isinstance(error, kind)), 409)

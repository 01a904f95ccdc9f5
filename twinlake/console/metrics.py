"""The console's metrics: requests by page, statements by how they end, who is signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinlake.base.errors import (
    BusyError,
    DeniedError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
)
from twinlake.console.sessions import Sessions
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import CONSOLE
from twinlake.metrics.events import Counts
from twinlake.metrics.scrape import Collector, Group, Scrape

OK, ERROR, BUSY, UNREACHABLE, FAILED = "ok", "error", "busy", "unreachable", "failed"
OUTCOMES = (OK, ERROR, BUSY, UNREACHABLE, FAILED)
OTHER = "other"
"""The page of a path that is none."""


class ConsoleMetrics:
    """What one console counts; thread-safe."""

    def __init__(self) -> None:
        self.requests = Counts(catalogue.CONSOLE_REQUESTS)
        self.queries = Counts(catalogue.CONSOLE_QUERIES, [(outcome,) for outcome in OUTCOMES])

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Inside, one statement is sent and answered; it is counted by how that ends."""
        outcome = FAILED
        try:
            yield
            outcome = OK
        except TwinlakeError as error:
            outcome = outcome_of(error)
            raise
        finally:
            self.queries.add(outcome)

    def collector(
        self, is_ready: Callable[[], bool], sessions: Sessions, more: Mapping[str, Group]
    ) -> Collector:
        """What a scrape asks: these figures, and those of the groups."""

        def console(scrape: Scrape) -> None:
            scrape.add(catalogue.READY, is_ready())
            scrape.add(catalogue.CONSOLE_SESSIONS, sessions.count())

        return Collector(CONSOLE, {**more, "console": console}, [self.requests, self.queries])


def outcome_of(error: TwinlakeError) -> str:
    """How a statement has ended that raised this."""
    if isinstance(error, BusyError):
        return BUSY
    if isinstance(error, UnreachableError):
        return UNREACHABLE
    return ERROR if isinstance(error, UsageError | NotFoundError | DeniedError) else FAILED


class Counted:
    """Counts every request by its page, as the routes name it, and the status of its answer."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route | Mount], requests: Counts) -> None:
        self._app, self._routes, self._requests = app, routes, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, page = 500, self._page(scope)  # so it is answered where nothing below answers

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._requests.add(page, str(status))

    def _page(self, scope: Scope) -> str:
        paths = (one.path for one in self._routes if one.matches(scope)[0] is not Match.NONE)
        return next(paths, OTHER)

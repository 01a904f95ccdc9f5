"""Queries: what the SQL server runs, by every endpoint; their own for everybody, all of them for who acts.

To cancel somebody else's is an act: its form says first whose it is, and the lake server writes it down
before the SQL server is asked.
"""

from __future__ import annotations

from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.base.job import Asker
from twinlake.console.acts import filled
from twinlake.console.console import Console, status_of
from twinlake.console.sessions import Session
from twinlake.console.statement import explained, own
from twinlake.reading import facts_client

journal = structlog.get_logger(__name__)


def routes(console: Console) -> list[Route]:
    async def listed(session: Session) -> dict[str, Any]:
        """What is running; or why that is not known."""
        services = own(console.settings, session)
        try:
            return {"queries": await console.asked(lambda: facts_client.running(services)), "error": None}
        except TwinlakeError as error:
            return {"queries": [], "error": explained(error, session)}

    async def queries(request: Request, session: Session) -> Response:
        return console.page("queries", session, active="query", **await listed(session))

    async def part(request: Request, session: Session) -> Response:
        return console.page("queries_part", session, **await listed(session))

    async def form(request: Request, session: Session) -> Response:
        services, id = own(console.settings, session), request.path_params["id"]
        query = await console.asked(lambda: facts_client.find(services, id))
        return page(session, query)

    def page(session: Session, query: dict[str, Any], status: int = 200, **more: Any) -> Response:
        given = {"reason": "", "error": None, **more}
        is_own = query["user"] == session.user.name
        return console.page(
            "query_cancel", session, status, active="query", query=query, is_own=is_own, **given
        )

    async def cancel(request: Request, session: Session) -> Response:
        services, id = own(console.settings, session), request.path_params["id"]
        why = filled(request.state.form, "reason")
        query = await console.asked(lambda: facts_client.find(services, id))

        asker = Asker(by=session.user.name, via="console", why=why)

        def write_down(query: dict[str, Any]) -> None:
            console.client().query_cancelled(query, asker)

        try:
            await console.asked(lambda: facts_client.cancel(services, query, write_down))
        except TwinlakeError as error:
            return page(session, query, status_of(error), error=error, reason=why or "")
        journal.info("a query is cancelled", query=id, of=query["user"], user=session.user.name)
        return RedirectResponse("/queries", 303)

    return [
        Route("/queries", console.signed_in(queries), methods=["GET"]),
        Route("/part/queries", console.signed_in(part, is_part=True), methods=["GET"]),
        Route("/queries/{id}/cancel", console.signed_in(form), methods=["GET"]),
        Route("/queries/{id}/cancel", console.signed_in(cancel), methods=["POST"]),
    ]

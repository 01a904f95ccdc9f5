"""Query: a statement, its rows as a table or as CSV, with the rights of who is signed in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.console import statement
from twinlake.console.console import Console, status_of
from twinlake.console.sessions import Session
from twinlake.console.statement import SHOWN, Asked

CSV = "text/csv; charset=utf-8"


def routes(console: Console) -> list[Route]:
    sent = console.statements.sent

    def page(session: Session, asked: Asked, status: int = 200, **more: object) -> Response:
        shown = {"answer": None, "error": None, "limit": SHOWN, **more}
        return console.page("query", session, status, active="query", asked=asked, **shown)

    async def ask(request: Request, session: Session) -> Response:
        return page(session, Asked())

    async def run(request: Request, session: Session) -> Response:
        asked = Asked.of(request.state.form)
        try:
            answer = await sent(lambda: statement.rows(console.settings, session, asked), session)
        except TwinlakeError as error:
            return page(session, asked, status_of(error), error=error)
        return page(session, asked, answer=answer)

    async def download(request: Request, session: Session) -> Response:
        asked = Asked.of(request.state.form)
        try:
            pieces = await sent(lambda: statement.as_csv(console.settings, session, asked), session)
        except TwinlakeError as error:
            return page(session, asked, status_of(error), error=error)
        headers = {"Content-Disposition": 'attachment; filename="twinlake.csv"'}
        return StreamingResponse(pieces, headers=headers, media_type=CSV)

    return [
        Route("/query", console.signed_in(ask), methods=["GET"]),
        Route("/query", console.signed_in(run), methods=["POST"]),
        Route("/query.csv", console.signed_in(download), methods=["POST"]),
    ]

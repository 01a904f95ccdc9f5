"""Query: a statement, its rows as a table, a plot or a file, with the rights of who is signed in.

A link that is passed on has the statement in its address. It fills the editor and runs nothing: what runs is
what somebody has seen and sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.base.long_answer import LongAnswer
from twinlake.console import statement
from twinlake.console.console import Console, status_of
from twinlake.console.downloads import FORMS, LONGEST_S, Form, pieces, written
from twinlake.console.sessions import Session
from twinlake.console.statement import Asked, explained, own
from twinlake.reading.facts_client import names as known_names
from twinlake.reading.wire import SLOW_S


def routes(console: Console) -> list[Route]:
    sent = console.statements.sent

    unasked = {"answer": None, "error": None, "is_linked": False, "forms": FORMS, "active": "query"}

    def page(session: Session, asked: Asked, status: int = 200, **more: object) -> Response:
        return console.page("query", session, status, **{**unasked, "asked": asked, **more})

    async def ask(request: Request, session: Session) -> Response:
        asked = Asked.of(request.query_params)
        return page(session, asked, is_linked=bool(asked.sql))

    async def run(request: Request, session: Session) -> Response:
        asked = Asked.of(request.state.form)
        try:
            answer = await sent(lambda: statement.rows(console.settings, session, asked), session)
        except TwinlakeError as error:
            return page(session, asked, status_of(error), error=error)
        return await console.large_page("query", session, **{**unasked, "asked": asked, "answer": answer})

    def download(ending: str, form: Form) -> Callable[[Request, Session], Awaitable[Response]]:
        async def send(request: Request, session: Session) -> Response:
            asked = Asked.of(request.state.form)
            turn = AsyncExitStack()  # until the file is sent: it is on the disk so long
            try:
                write = partial(written, console.settings, session, asked, form)
                with console.statements.counted():
                    await turn.enter_async_context(console.statements.turn(session))
                    file = turn.enter_context(await console.statements.answered(write, session))
            except BaseException as error:
                await turn.aclose()
                if not isinstance(error, TwinlakeError):
                    raise
                return page(session, asked, status_of(error), error=error)
            headers = {"Content-Disposition": f'attachment; filename="twinlake.{ending}"'}
            return LongAnswer(pieces(file), turn.aclose, LONGEST_S, SLOW_S, form.media_type, headers)

        return send

    async def names(request: Request, session: Session) -> Response:
        """What the editor completes; an error as JSON, which it says."""
        services = own(console.settings, session)
        try:
            return JSONResponse(await console.asked(lambda: known_names(services)))
        except TwinlakeError as error:
            why = explained(error, session)
            return JSONResponse(why.to_json(), status_of(why))

    files = [
        Route(f"/query.{ending}", console.signed_in(download(ending, form)), methods=["POST"])
        for ending, form in FORMS.items()
    ]
    return [
        Route("/query", console.signed_in(ask), methods=["GET"]),
        Route("/query", console.signed_in(run), methods=["POST"]),
        Route("/part/names", console.signed_in(names, is_part=True), methods=["GET"]),
        *files,
    ]

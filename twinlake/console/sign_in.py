"""Sign-in and sign-out."""

from __future__ import annotations

import asyncio
import re
import secrets

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.config import users
from twinlake.config.users import User
from twinlake.console.console import FORM_TOKEN, Console, form, form_refused, new_token
from twinlake.console.sessions import Session

journal = structlog.get_logger(__name__)
LONGEST_PAGE = 8_000
_PAGE = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path and a query of plain signs: two slashes begin a host; a browser takes a backslash for one."""
WRONG = "The user or the password is wrong."


def routes(console: Console) -> list[Route]:
    """A form that is sent has to bring the token that this browser was given with it, in a cookie: nobody is
    signed in as somebody else by a page elsewhere."""
    form_cookie = f"{console.cookie}-form"

    def shown(
        request: Request, to: str, status: int = 200, wrong: str = "", name: str = ""
    ) -> Response:  # fmt: skip
        token = request.cookies.get(form_cookie) or new_token()
        page = console.page("sign_in", None, status, token=token, wrong=wrong, name=name, to=to, active="")
        console.set_cookie(page, form_cookie, token)
        return page

    async def ask(request: Request) -> Response:
        to = page_of_ours(request.query_params.get("next", ""))
        return RedirectResponse(to, 303) if console.session(request) else shown(request, to)

    async def take(request: Request) -> Response:
        try:
            given = await form(request)
            expected, sent = request.cookies.get(form_cookie, ""), given.get(FORM_TOKEN, "")
            if not expected or not secrets.compare_digest(expected.encode(), sent.encode()):
                raise form_refused()
            name, password = given.get("name", "").strip(), given.get("password", "")
            to = page_of_ours(given.get("next", ""))
            user = await _admitted(console, name, password)
        except TwinlakeError as error:
            return console.error(error, None)
        if user is None:
            journal.warning("a sign-in was refused")  # what stands for a name may be a password
            return shown(request, to, 401, WRONG, name)
        journal.info("signed in", user=user.name, role=user.role)
        console.sessions.end(request.cookies.get(console.cookie, ""))
        there = RedirectResponse(to, 303)
        console.set_cookie(there, console.cookie, console.sessions.begin(user, password))
        console.delete_cookie(there, form_cookie)
        return there

    async def leave(request: Request, session: Session) -> Response:
        journal.info("signed out", user=session.user.name)
        console.sessions.end(request.cookies.get(console.cookie, ""))
        away = RedirectResponse("/sign-in", 303)
        console.delete_cookie(away, console.cookie)
        return away

    return [
        Route("/sign-in", ask, methods=["GET"]),
        Route("/sign-in", take, methods=["POST"]),
        Route("/sign-out", console.signed_in(leave), methods=["POST"]),
    ]


def page_of_ours(wanted: str) -> str:
    """Where the sign-in leads: the page that was asked for; Home for what a browser may take for another
    site's address."""
    is_ours = _PAGE.fullmatch(wanted) and len(wanted) <= LONGEST_PAGE
    return wanted if is_ours else "/"


async def _admitted(console: Console, name: str, password: str) -> User | None:
    if not users.can_be_name(name):  # nobody has it, and nothing is kept of it
        return None
    with console.slowdown.trying(name) as wait_s:
        await asyncio.sleep(wait_s)
        user = await run_in_threadpool(users.admitted, console.users_file, name, password)
        if user is None:
            console.slowdown.was_wrong(name)
        else:
            console.slowdown.was_right(name)
        return user

"""Sign-in and sign-out."""

from __future__ import annotations

import asyncio
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
WRONG = "The user or the password is wrong."


def routes(console: Console) -> list[Route]:
    """A form that is sent has to bring the token that this browser was given with it, in a cookie: nobody is
    signed in as somebody else by a page elsewhere."""
    form_cookie = f"{console.cookie}-form"

    def shown(request: Request, status: int = 200, wrong: str = "", name: str = "") -> Response:
        token = request.cookies.get(form_cookie) or new_token()
        page = console.page("sign_in", None, status, token=token, wrong=wrong, name=name, active="")
        console.set_cookie(page, form_cookie, token)
        return page

    async def ask(request: Request) -> Response:
        if console.session(request):
            return RedirectResponse("/", 303)
        return shown(request)

    async def take(request: Request) -> Response:
        try:
            given = await form(request)
            expected, sent = request.cookies.get(form_cookie, ""), given.get(FORM_TOKEN, "")
            if not expected or not secrets.compare_digest(expected.encode(), sent.encode()):
                raise form_refused()
            name, password = given.get("name", "").strip(), given.get("password", "")
            user = await _admitted(console, name, password)
        except TwinlakeError as error:
            return console.error(error, None)
        if user is None:
            journal.warning("a sign-in was refused")  # what stands for a name may be a password
            return shown(request, 401, WRONG, name)
        journal.info("signed in", user=user.name, role=user.role)
        console.sessions.end(request.cookies.get(console.cookie, ""))
        to_home = RedirectResponse("/", 303)
        console.set_cookie(to_home, console.cookie, console.sessions.begin(user, password))
        to_home.delete_cookie(form_cookie, path="/", secure=console.is_tls, httponly=True, samesite="strict")
        return to_home

    async def leave(request: Request, session: Session) -> Response:
        journal.info("signed out", user=session.user.name)
        console.sessions.end(request.cookies.get(console.cookie, ""))
        away = RedirectResponse("/sign-in", 303)
        away.delete_cookie(console.cookie, path="/", secure=console.is_tls, httponly=True, samesite="strict")
        return away

    return [
        Route("/sign-in", ask, methods=["GET"]),
        Route("/sign-in", take, methods=["POST"]),
        Route("/sign-out", console.signed_in(leave), methods=["POST"]),
    ]


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

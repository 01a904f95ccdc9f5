"""Acts: what an operator has done by a job. A form says first what it does, and carries what it rests on.

Where that is no longer so when the form is sent, nothing is done, and the form is shown as it is now. A form
that is sent twice is one job.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from twinlake.base.errors import DifferenceError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.job import Asker
from twinlake.console.console import Console, new_token, status_of
from twinlake.console.sessions import Session
from twinlake.server.client import LakeClient

journal = structlog.get_logger(__name__)
LONGEST_KEY = 100


@dataclass(frozen=True, kw_only=True)
class Field:
    """One that is filled in; a flag is there or not."""

    name: str
    label: str
    kind: Literal["text", "lines", "flag"] = "text"
    required: bool = False
    example: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """What an act would do now, in words (`does`), and `shown`, which is JSON: all that these rest on."""

    title: str
    does: tuple[str, ...]
    shown: Any
    button: str
    back: str
    active: str
    fields: tuple[Field, ...] = ()
    hindered: str = ""
    """Why it cannot be done now."""

    @property
    def digest(self) -> str:
        rests_on = json.dumps([self.title, self.shown], sort_keys=True)
        return hashlib.sha256(rests_on.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Act:
    """`form` is asked with the lake server's client, what the path names, and who is signed in; `params` with
    the path, what was filled in, that name, and the form, for the parameters of the job of this `kind`."""

    path: str
    kind: str
    form: Callable[[LakeClient, Mapping[str, Any], str], Form]
    params: Callable[[Mapping[str, Any], Mapping[str, str], str, Form], dict[str, Any]]


def routes(console: Console, act: Act) -> list[Route]:
    """The form, and what is done when it is sent."""

    def page(
        session: Session, form: Form, status: int = 200, given: Mapping[str, str] | None = None, **more: Any
    ) -> Response:
        values = {"error": None, "once": new_token(), **more}
        return console.page(
            "act", session, status, form=form, given=given or {}, active=form.active, **values
        )  # fmt: skip

    async def ask(request: Request, session: Session) -> Response:
        user = session.user.name
        form = await console.asked(lambda: act.form(console.client(), request.path_params, user))
        return page(session, form)

    async def do(request: Request, session: Session) -> Response:
        path, given, user = request.path_params, request.state.form, session.user.name
        form = await console.asked(lambda: act.form(console.client(), path, user))
        try:
            _refuse(form, given)
            params = act.params(path, given, user, form)
            asker = Asker(by=user, via="console", why=filled(given, "reason"))
            key = _key(given)
            job = await console.asked(lambda: console.client().submit(act.kind, params, key, asker))
        except TwinlakeError as error:
            once = {"once": given.get("once", "")} if isinstance(error, UnreachableError) else {}
            return page(session, form, status_of(error), given, error=error, **once)
        console.jobs.forget()
        journal.info("a job was asked for", job=job.id, kind=act.kind, user=user)
        return RedirectResponse(f"/jobs/{job.id}", 303)

    return [
        Route(act.path, console.signed_in(ask, acts=True), methods=["GET"]),
        Route(act.path, console.signed_in(do, acts=True), methods=["POST"]),
    ]


def filled(given: Mapping[str, str], name: str) -> str | None:
    """What was filled in there; None of nothing."""
    return given.get(name, "").replace("\r\n", "\n").strip() or None


def _refuse(form: Form, given: Mapping[str, str]) -> None:
    if given.get("shown") != form.digest:
        raise DifferenceError(
            "nothing was done", "what the form has said is no longer so",
            "read what it would do now, and send it again if you want that",
        )  # fmt: skip
    if form.hindered:
        raise UsageError("nothing was done", form.hindered, "")
    for field in form.fields:
        if field.required and filled(given, field.name) is None:
            raise UsageError("nothing was done", f"{field.label} is empty", "fill it in")


def _key(given: Mapping[str, str]) -> str:
    """Of a form that was given out once."""
    return f"console/{given.get('once', '')[:LONGEST_KEY]}"

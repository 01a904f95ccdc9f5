"""Query: the HTTP endpoint of the SQL server, for `twinlake query` and whoever waits until it has followed.

It asks for the readers' user and password (HTTP Basic), `/status` excepted. A web page cannot use it: a
request needs the header X-Twinlake-Query and a loopback Host. One statement, a limited number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.security import HTTPBasic
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from twinlake.base import http_errors
from twinlake.base.address import LOOPBACK_NAMES, name_of
from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.http_errors import LimitedBody, error_response
from twinlake.base.long_answer import LongAnswer
from twinlake.base.strict import Strict
from twinlake.config.settings import Settings
from twinlake.config.users import User
from twinlake.lake.catalog.plans import Plans
from twinlake.reading import as_of, look_up_route, wire
from twinlake.reading.changes import route as changes_route
from twinlake.reading.changes.feed import Feeds
from twinlake.reading.explain import Question
from twinlake.reading.export import MOST_EXPORTED
from twinlake.reading.followed import Followed
from twinlake.reading.look_ups import LookUps
from twinlake.reading.metrics import Queries
from twinlake.reading.protection import Protection
from twinlake.reading.reader import Reader
from twinlake.reading.rights import Judge, Unlimited
from twinlake.reading.running import Running, RunningStatements
from twinlake.reading.turns import StartingError, Statements

DEFAULT_LIMIT = 10_000
LARGEST_LIMIT = 1_000_000
LONGEST_SQL = 100_000
LARGEST_BODY = 8 << 20

BASIC = HTTPBasic(realm="Twinlake", auto_error=False)
REPORT_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Asked(Strict):
    """The body of POST /query."""

    sql: str = Field(min_length=1, max_length=LONGEST_SQL)
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=LARGEST_LIMIT)
    as_of: str | None = Field(default=None, max_length=as_of.LONGEST)


class AskedAll(Strict):
    """The body of POST /export; without a limit all rows."""

    sql: str = Field(min_length=1, max_length=LONGEST_SQL)
    limit: int | None = Field(default=None, ge=1, le=MOST_EXPORTED)
    as_of: str | None = Field(default=None, max_length=as_of.LONGEST)


class AskedWhy(Strict):
    """The body of POST /explain."""

    table: str = Field(max_length=200)
    key: dict[str, Annotated[str, Field(max_length=10_000)] | None] = Field(max_length=100)
    as_of: str | None = Field(default=None, max_length=as_of.LONGEST)


class Guard:
    """Turns away, before their bodies are read, who comes from elsewhere or does not show who he is.

    It is not a middleware of Starlette's own class: behind one of those nobody sees that a client has left.
    """

    def __init__(self, app: ASGIApp, admits: Callable[[str, str], User | None], name: str = "") -> None:
        """`name` is what clients on other machines call it."""
        self._app = app
        self._admits = admits
        self._names = {*LOOPBACK_NAMES, *filter(None, (name,))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._refused(Request(scope)) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, request: Request) -> JSONResponse | None:
        host = name_of(request.headers.get("host", ""))
        if host not in self._names:
            why = "this endpoint answers to one name for each way to it"
            remedy = "ask it as 127.0.0.1 or localhost; from another machine as [sql] of twinlake.toml says"
            return error_response(403, UsageError(f"host {host!r} is not served", why, remedy))
        if request.url.path == "/status":
            return None
        with suppress(HTTPException):  # it is no Basic authorization at all
            given = await BASIC(request)
            asked = (given.username, given.password) if given else ("", "")
            try:
                user = await run_in_threadpool(self._admits, *asked)
            except UsageError as error:  # of the users file: whoever asks, it is not their password
                return error_response(503, error)
            if user:
                request.state.user = user
                return _without_header(request)
        unknown = UsageError(
            "the request was refused", "its user or password is missing or wrong",
            "show the name and password that you were given; those of the first user are in services.json",
        )  # fmt: skip
        return JSONResponse(unknown.to_json(), 401, headers=BASIC.make_authenticate_headers())


def _without_header(request: Request) -> JSONResponse | None:
    """Of what is served by POST alone: of anything else the app says what there is instead."""
    if request.method != "POST" or request.headers.get(wire.HEADER) == "1":
        return None
    if not any(one.matches(request.scope)[0] is Match.FULL for one in request.app.routes):
        return None
    why = "it has no header X-Twinlake-Query: 1"
    return error_response(403, UsageError("the query was refused", why, "send that header"))


def _made(what: str, plan: str, found: str | None) -> str:
    if found is None:
        why = "nobody has compared it or asked its gate, or an earlier Twinlake has"
        raise NotFoundError(f"plan {plan} has no {what}", why, "run `twinlake diff`, or `twinlake gate`")
    return found


def _hidden(what: str, views: str) -> UsageError:
    return UsageError(
        what, f"it shows rows of {views} as they are, and their rights hold back some of that",
        "ask somebody who reads everything; `twinlake users list` shows who",
    )  # fmt: skip


def build_app(
    reader: Reader,
    followed: Callable[[], Followed],
    settings: Settings,
    admits: Callable[[str, str], User | None],
    broken: Callable[[], TwinlakeError | None] = lambda: None,
    queries: Queries | None = None,
    running: RunningStatements | None = None,
    rights: Judge | None = None,
    look_ups: LookUps | None = None,
    statements: Statements | None = None,
    name: str = "",
    feeds: Feeds | None = None,
) -> FastAPI:
    """Status, query, look-ups, what runs, and the reports of plans; `admits` judges user and password for all
    but the first.

    `broken` says why the process is about to end, `queries` counts how statements end, `running` knows those
    that have not, `statements` computes them, `rights` what somebody may see; other machines call it `name`.
    """
    queries, running, judge = queries or Queries(), running or RunningStatements(), rights or Unlimited()
    statements = statements or Statements(followed, queries, running)
    longest_s = settings.values.limits.query_seconds
    export_s = settings.values.limits.export_seconds
    app = FastAPI(title="Twinlake SQL server", docs_url=None, redoc_url=None, openapi_url=None)

    app.add_middleware(LimitedBody, most=LARGEST_BODY)
    app.add_middleware(Guard, admits=admits, name=name)  # asked first: an unauthenticated body is not read

    def status_of(error: TwinlakeError) -> int:
        return 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 503

    http_errors.install(app, status_of, "see `twinlake logs sql`")

    @app.exception_handler(StartingError)
    async def starting(_: Request, error: StartingError) -> JSONResponse:
        """Our clients ask again; other programs know the class that it is one of."""
        return JSONResponse({**error.to_json(), "error": BusyError.__name__}, 503, {"Retry-After": "1"})

    @app.get("/status")
    async def status() -> dict[str, Any]:
        now = followed()
        held = Protection.of_this_process(settings).to_json()
        ends = broken()
        return {
            "release": now.release,
            "ready": now.ready and not ends,
            "error": now.error,
            "broken": ends and ends.to_json(),
            "protection": held,
            "no_report": reader.no_report(),
        }

    async def in_turn(
        request: Request, text: str, answer: Callable[[Running], Response], is_large: bool = False
    ) -> Response:
        return await statements.in_turn(request, request.state.user.name, text, answer, is_large=is_large)

    @app.post("/query")
    async def query(asked: Asked, request: Request) -> Response:
        def answer(one: Running) -> Response:
            found = reader.answer(asked.sql, asked.limit, one.left, asked.as_of, one.tag, one.user)
            close = partial(run_in_threadpool, found.close)
            way = {wire.WAY: wire.PLAN if found.is_by_plan else wire.SQL}
            try:
                if request.headers.get("accept") == wire.ARROW:
                    return LongAnswer(found.arrow(), close, longest_s, wire.SLOW_S, wire.ARROW, way)
                return LongAnswer(reader.json(found), close, longest_s, wire.SLOW_S, "application/json", way)
            except BaseException:
                found.close()
                raise

        return await in_turn(request, asked.sql, answer)

    @app.post("/export")
    async def export(asked: AskedAll, request: Request) -> Response:
        """All rows as an Arrow stream, from files: it is listed and can be cancelled until it is sent."""

        def answer(one: Running) -> Response:
            found = reader.export(asked.sql, asked.limit, one.left, asked.as_of, one.tag, one.user)
            running.sends(one)

            def close() -> None:
                found.close()
                running.has_sent(one)

            return LongAnswer(
                found.arrow(), partial(run_in_threadpool, close), export_s, wire.EXPORT_SLOW_S, wire.ARROW,
                is_ended=one.cut.is_set,
            )  # fmt: skip

        return await in_turn(request, asked.sql, answer, is_large=True)

    @app.post("/explain")
    async def why(asked: AskedWhy, request: Request) -> Response:
        question = Question(table=asked.table, key=asked.key, as_of=asked.as_of)

        def answer(one: Running) -> Response:
            def refuse_hidden(views: Sequence[str]) -> None:
                if not judge.sees_all(request.state.user, *views):
                    raise _hidden(f"{asked.table} cannot be explained to {one.user}", " and ".join(views))

            return JSONResponse(reader.explain(question, one.left, one.tag, refuse_hidden, one.user))

        return await in_turn(request, f"explain {asked.table} {asked.key}", answer)

    if look_ups is not None:
        around = look_up_route.Around(
            followed=followed, in_turn=in_turn, queries=queries, longest_s=longest_s
        )
        look_up_route.add(app, look_ups, around)
        if feeds is not None:
            changes_route.add(app, feeds, look_ups, running, statements.refuse_unready)

    @app.get("/names")
    def names(request: Request) -> dict[str, Any]:
        """What an editor completes."""
        return reader.names(request.state.user.name)

    @app.get("/queries")
    def listed(request: Request) -> list[dict[str, Any]]:
        """What runs: one's own; of who acts, everybody's."""
        return running.listed(request.state.user)

    @app.post("/queries/{id}/cancel")
    def cancel(id: str, request: Request) -> dict[str, Any]:
        return running.end(id, request.state.user)

    def refuse_limited(request: Request) -> None:
        """What shows rows of any table is for who reads all of them."""
        if not judge.sees_everything(request.state.user):
            raise _hidden(f"this is not shown to {request.state.user.name}", "all tables")

    @app.get("/reports/{plan}")
    def report(plan: str, request: Request) -> HTMLResponse:
        refuse_limited(request)
        return HTMLResponse(_made("report", plan, Plans(settings.lake).report(plan)), headers=REPORT_HEADERS)

    @app.get("/comparisons/{plan}")
    def comparison(plan: str, request: Request) -> Response:
        """The same for a page of others."""
        refuse_limited(request)
        found = _made("comparison to show", plan, Plans(settings.lake).compared(plan))
        return Response(found, media_type="application/json")

    @app.get("/gates/{plan}")
    def gate(plan: str, request: Request) -> Response:
        """What a plan's gate said, with the rows behind its checks."""
        refuse_limited(request)
        found = _made("answer of a gate", plan, Plans(settings.lake).gate_text(plan))
        return Response(found, media_type="application/json")

    return app

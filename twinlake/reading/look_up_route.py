"""GET /tables/{table}/rows: the SQL server's look-ups by key, in turns of their own beside statements.

`min_position` and `min_offsets` wait until the table has passed them: a service reads what it has written.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from twinlake.base.errors import BusyError, TimedOutError, UsageError
from twinlake.base.http_errors import error_response
from twinlake.base.long_answer import LongAnswer
from twinlake.config.users import User
from twinlake.reading import as_of, wire
from twinlake.reading.answer import Answer
from twinlake.reading.followed import Followed
from twinlake.reading.look_ups import LookUp, LookUps
from twinlake.reading.metrics import Queries
from twinlake.reading.passed import Wanted, parse_wanted
from twinlake.reading.running import Running
from twinlake.reading.turns import StartingError
from twinlake.reading.wire import key_of
from twinlake.spark.session import is_jvm_lost

AT_ONCE = 4
WAIT_S, LONGEST_WAIT_S = 10.0, 60.0
LOOK_S = 0.02
MOST_WAITING, OF_ONE_USER = 200, 100
"""So many may wait for a position: each asks again and again in the threads that answer all."""
MOST_COLUMNS = 100
JSON = "application/json"
PARAMETERS = frozenset({"key", "min_position", "min_offsets", "wait_seconds"})
InTurn = Callable[[Request, str, Callable[[Running], Response]], Awaitable[Response]]
"""Runs a statement of a request, which has this text, in its turn."""


@dataclass(frozen=True, kw_only=True)
class Around:
    """What the endpoint has for all its routes."""

    followed: Callable[[], Followed]
    in_turn: InTurn
    queries: Queries
    longest_s: float


def add(app: FastAPI, look_ups: LookUps, around: Around) -> None:
    """The route."""
    threads, waiting = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look-up"), Counter[str]()

    @app.get("/tables/{table}/rows")
    async def rows(
        request: Request,
        table: str,
        key: Annotated[list[str] | None, Query(max_length=MOST_COLUMNS)] = None,
        min_position: Annotated[str | None, Query(max_length=as_of.LONGEST)] = None,
        min_offsets: Annotated[str | None, Query(max_length=as_of.LONGEST)] = None,
        wait_seconds: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = WAIT_S,
    ) -> Response:
        if unknown := sorted(set(request.query_params) - PARAMETERS):
            raise UsageError(
                "the look-up was refused", f"it has no parameter {', '.join(unknown)}",
                f"it has {', '.join(sorted(PARAMETERS))}; a query reads AS OF, and with a limit",
            )  # fmt: skip
        asked = LookUp(table=table, key=key_of(key or []))
        form = wire.ARROW if request.headers.get("accept") == wire.ARROW else JSON
        user = request.state.user

        def directly() -> Response | None:
            found = look_ups.find(asked, user)
            if found is None:
                return None
            content = b"".join(_pieces(look_ups, found, form))
            return Response(content, headers={wire.WAY: wire.PLAN}, media_type=form)

        def by_sql(one: Running) -> Response:
            found = look_ups.by_sql(asked, user, one.left, one.tag)
            try:
                pieces = _pieces(look_ups, found, form)
                close = partial(run_in_threadpool, found.close)
                return LongAnswer(pieces, close, around.longest_s, wire.SLOW_S, form, {wire.WAY: wire.SQL})
            except BaseException:
                found.close()
                raise

        text = f"get {table} {' '.join(key or [])}"
        if not around.followed().ready:
            return await around.in_turn(request, text, by_sql)  # which says why
        loop = asyncio.get_running_loop()
        try:
            wanted = parse_wanted(min_position, min_offsets)
            late = None
            if wanted:
                with _one_more(waiting, user.name):
                    late = await _late(look_ups, asked, user, wanted, wait_seconds, threads)
            if late:
                return late
            with around.queries.one() as statement:
                statement.begins()
                found = await loop.run_in_executor(threads, directly)
        except Exception as error:
            if not is_jvm_lost(error):
                raise
            raise StartingError("its JVM has ended, and the supervisor starts it again") from error
        return found or await around.in_turn(request, text, by_sql)


def _pieces(look_ups: LookUps, found: Answer, form: str) -> Iterator[bytes]:
    return found.arrow() if form == wire.ARROW else look_ups.json(found)


@contextmanager
def _one_more(waiting: Counter[str], user: str) -> Iterator[None]:
    """BusyError where too many wait already, of this user or of all."""
    if waiting[user] >= OF_ONE_USER or waiting.total() >= MOST_WAITING:
        raise BusyError(
            "the look-up was refused",
            f"{waiting.total()} of them wait for a position, {waiting[user]} of {user}; at most "
            f"{OF_ONE_USER} of one user may, and {MOST_WAITING} of all",
            "ask again in a moment",
        )  # fmt: skip
    waiting[user] += 1
    try:
        yield
    finally:
        waiting[user] -= 1


async def _late(
    look_ups: LookUps, asked: LookUp, user: User, wanted: Wanted, wait_s: float, threads: ThreadPoolExecutor
) -> Response | None:
    """Waits until the table is there; an answer where it is not in time."""
    look_ups.check_topics(asked, user, wanted.topics)
    loop, until = asyncio.get_running_loop(), time.monotonic() + wait_s
    while (at := await loop.run_in_executor(threads, look_ups.before, asked, wanted)) is not None:
        if time.monotonic() >= until:
            is_at = ", ".join(f"{topic}={at.get(topic, 0)}" for topic in sorted(wanted.topics))
            return error_response(504, TimedOutError(
                f"{asked.table} has not passed {wanted.text}", f"it is at {is_at} after {wait_s:g} s",
                "ask again, or wait longer (wait_seconds, --wait-seconds); `twinlake status` shows what does "
                "not keep up",
            ))  # fmt: skip
        await asyncio.sleep(LOOK_S)
    return None

"""GET /tables/{table}/changes: server-sent events, for whoever follows a table; and the page for a browser.

Nothing waits in memory for a reader: while one takes nothing, nothing is computed for it, and who takes
nothing for `wire.SLOW_S` is cut off. It comes back with the position of its last event.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response
from starlette.concurrency import iterate_in_threadpool

from twinlake.base.errors import BusyError, TwinlakeError, UsageError
from twinlake.base.long_answer import LongAnswer
from twinlake.config.users import User
from twinlake.reading import wire
from twinlake.reading.changes import page
from twinlake.reading.changes.feed import Delivery, Feed, Feeds
from twinlake.reading.changes.pins import At
from twinlake.reading.changes.position import BEGINNING, LONGEST, NOW, parse
from twinlake.reading.look_ups import LookUps
from twinlake.reading.running import Running, RunningStatements

EVENTS = "text/event-stream"
LOOK_S = 1.0
"""So often it is looked whether a reader is still there and still may read."""
HEARTBEAT_S, HEARTBEAT = 15.0, b": nothing new\n\n"
"""So that proxies keep a connection on which nothing comes, and those that are dead are noticed."""
FIRST_S = 30.0
"""So long a reader waits for where the table is, which takes one look."""
COME_BACK_MS = 2_000
PARAMETERS = frozenset({"from"})
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
LOST = "the rows of this position are not kept any more"
CHANGED = "the rights have changed since this position, or it is another reader's"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Who follows a table: `is_there` says whether somebody still waits, `one` is what is listed of it."""

    table: str
    user: User
    like: str
    """What they see, by `Judge.like`, as long as they follow."""
    one: Running
    is_there: Callable[[], Any]


def add(
    app: FastAPI, feeds: Feeds, look_ups: LookUps, running: RunningStatements,
    refuse_unready: Callable[[], None],
) -> None:  # fmt: skip
    """The route; `refuse_unready` raises the error of a server that does not know yet what is live."""

    @app.get("/tables/{table}/changes")
    async def changes(
        request: Request,
        table: str,
        since: Annotated[str | None, Query(alias="from", max_length=LONGEST)] = None,
    ) -> Response:
        _refuse_other_sites(request)
        if unknown := sorted(set(request.query_params) - PARAMETERS):
            why = f"it has no parameter {', '.join(unknown)}"
            raise UsageError("the table was not followed", why, "it has `from` alone")
        user: User = request.state.user
        refuse_unready()
        look_ups.table(table, user)
        if "text/html" in request.headers.get("accept", ""):
            return page.shown()
        asked = request.headers.get("last-event-id") or since or BEGINNING
        position = None if asked in (BEGINNING, NOW) else parse(table, asked)
        async with AsyncExitStack() as entered:
            entered.enter_context(feeds.readers.one(user.name))
            feed = await entered.enter_async_context(feeds.one(table))
            at = await feed.after(None, FIRST_S)
            if at is None:
                raise BusyError(
                    f"nobody can say yet where {table} is", "what it is made of has not come to one position",
                    "ask again in a moment; `twinlake status` shows what does not keep up",
                )  # fmt: skip
            feeds.seen.refuse_blind(table, at.opened.definition.view_keys, user)
            like = feeds.judge.like(user, table)
            seen, why = (at if asked == NOW else None), ""
            if position is not None and not position.is_of(like):
                why = CHANGED
            elif position is not None:
                seen = await feeds.look(lambda: feeds.pins.seen(position))
                why = "" if seen else LOST
            one = entered.enter_context(running.one(user.name, f"follow {table}"))
            running.sends(one)
            one.lasts = True
            entered.callback(running.has_sent, one)
            reader = Reader(
                table=table, user=user, like=like, one=one, is_there=request.is_disconnected
            )  # fmt: skip
            pieces = _until_cut(feed, feeds, look_ups, reader, seen, why)
            entered.push_async_callback(pieces.aclose)  # who has left gives back what it was being sent
            leaves = entered.pop_all()
        return LongAnswer(
            pieces, leaves.aclose, math.inf, wire.SLOW_S, EVENTS, HEADERS, when_slow=feeds.readers.cut_off
        )


async def _until_cut(
    feed: Feed, feeds: Feeds, look_ups: LookUps, reader: Reader, seen: At | None, why: str
) -> AsyncGenerator[bytes]:
    """All events; the last one says why there are no more."""
    yield f"retry: {COME_BACK_MS}\n\n".encode()
    if seen is not None:
        found = Delivery(to=seen, keys=seen.opened.definition.view_keys)
        yield _event("changes", _told(found), _position(seen, reader))
        feeds.readers.sent()
    try:
        async with aclosing(_events(feed, feeds, look_ups, reader, seen, why)) as pieces:
            async for piece in pieces:
                yield piece
                if piece is not HEARTBEAT:
                    feeds.readers.sent()
    except TwinlakeError as error:
        yield _event("ended", (reader.one.why or error).to_json())
        feeds.readers.sent()


async def _events(
    feed: Feed, feeds: Feeds, look_ups: LookUps, reader: Reader, seen: At | None, why: str
) -> AsyncGenerator[bytes]:
    quiet_s = 0.0
    while not await reader.is_there():
        _refuse_changed(feeds, look_ups, reader)
        at = await feed.after(seen, LOOK_S)
        if at is None:
            quiet_s += LOOK_S
            if quiet_s >= HEARTBEAT_S:
                quiet_s = 0.0
                yield HEARTBEAT
            continue
        quiet_s = 0.0
        async with feed.delivery(seen, at, reader.user, reader.like) as found:
            if found.is_whole or seen is None:
                yield _event("whole", {"why": why or "it is the beginning"})
            async for rows, gone in iterate_in_threadpool(found.pieces()):
                _refuse_changed(feeds, look_ups, reader)
                yield _event("changes", _told(found, rows, gone, more=True))
            yield _event("changes", _told(found), _position(at, reader))
        seen, why = at, LOST


def _refuse_changed(feeds: Feeds, look_ups: LookUps, reader: Reader) -> None:
    """Where the reader may not go on: somebody has ended it, or it may see something else now."""
    if reader.one.why is not None:
        raise reader.one.why
    look_ups.table(reader.table, reader.user)
    if feeds.judge.like(reader.user, reader.table) != reader.like:
        raise UsageError(
            f"{reader.table} is not followed any further", f"the rights of {reader.user.name} have changed",
            "connect again: the whole comes, for what was seen before is not what is seen now",
        )  # fmt: skip


def _told(found: Delivery, rows: list[Any] | None = None, gone: list[Any] | None = None, more: bool = False
) -> dict[str, Any]:  # fmt: skip
    said = {"key": found.keys, "upserts": rows or [], "deletes": gone or [], "more": more}
    return said | {"release": found.to.release, "position": found.to.pin.position}


def _position(at: At, reader: Reader) -> str:
    return at.position.of(reader.like).text


def _event(name: str, data: Mapping[str, Any], position: str = "") -> bytes:
    """With the position as its id, where a reader who has it has everything up to there."""
    id_ = f"id: {position}\n" if position else ""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"event: {name}\n{id_}data: {text}\n\n".encode()


def _refuse_other_sites(request: Request) -> None:
    """A browser sends the login along for pages of others, too: it says whose page asks."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise UsageError(
            "the table was not followed", "a page of another site has asked",
            "have that page ask its own server, and that server ask here",
        )  # fmt: skip

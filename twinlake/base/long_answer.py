"""LongAnswer: an answer in pieces that holds something until it is sent; no client can hold that for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from twinlake.base.http_errors import ABORT

LOOK_S = 0.5
"""So often it is looked whether it is ended while its client takes nothing."""

journal = structlog.get_logger(__name__)


class LongAnswer(StreamingResponse):
    """A client that takes nothing of it for `slow_s`, or not all in `longest_s`, is cut off at once: without
    the end of its body, which every client sees; `when_slow` is called then. So is one whose answer
    `is_ended`. `close` is awaited however it ended."""

    def __init__(
        self, pieces: Iterator[bytes] | AsyncIterator[bytes], close: Callable[[], Awaitable[None]],
        longest_s: float, slow_s: float, type_: str, headers: Mapping[str, str] | None = None,
        is_ended: Callable[[], bool] = lambda: False, when_slow: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        super().__init__(pieces, headers=headers, media_type=type_)
        self._close = close
        self._longest_s, self._slow_s = longest_s, slow_s
        self._is_ended, self._when_slow = is_ended, when_slow
        self._abort: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._abort = scope.get("state", {}).get(ABORT, self._abort)
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        clock = asyncio.get_running_loop().time
        until = clock() + self._longest_s
        async for piece in self.body_iterator:  # not left in the middle: `close` comes after a read
            sending = asyncio.ensure_future(
                send({"type": "http.response.body", "body": piece, "more_body": True})
            )
            slow = min(until, clock() + self._slow_s)
            while not (await asyncio.wait({sending}, timeout=min(LOOK_S, slow - clock())))[0]:
                if self._is_ended() or clock() >= slow:
                    break
            if self._is_ended() or not sending.done():
                sending.cancel()
                if self._is_ended():
                    why = "was cancelled"
                else:
                    why = "is taken too slowly by its client"
                    self._when_slow()
                journal.warning(f"an answer that {why} was cut off")
                return self._abort()
            await sending
        await send({"type": "http.response.body", "body": b"", "more_body": False})

"""Guard: what every request has to pass before anything looks at it, and what every answer carries.

A name that is not this console's is refused: a page elsewhere whose name was made to point here (DNS
rebinding) gets nothing. A form has to come from a page of ours, which `Origin` says and, besides, its token.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinlake.base.address import name_of

POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all a browser's forms have no origin either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ALONE = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
"""For a page that has its style inside, and stands in a frame of ours: it runs nothing, loads nothing, sends
nothing, and is of no origin."""
READING = ("GET", "HEAD")


class Guard:
    """`names` are those that a browser may call this console by; `is_tls` whether it speaks TLS."""

    def __init__(self, app: ASGIApp, names: Sequence[str], is_tls: bool) -> None:
        self._app = app
        self._names = {*names}
        self._headers = dict(HEADERS)
        if is_tls:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"
        self._scheme = "https" if is_tls else "http"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self._refused(scope)
        await (PlainTextResponse(f"{refused}\n", 403) if refused else self._app)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if name_of(host) not in self._names:
            return "This name is not served here. Use the address that `twinlake up` prints."
        if scope["method"] in READING:
            return ""
        ours = f"{self._scheme}://{host}"  # a program says neither: the form's token decides
        is_ours = headers.get("sec-fetch-site", "same-origin") == "same-origin"
        if not is_ours or headers.get("origin", ours) != ours:
            return "This form did not come from a page of this console."
        return ""

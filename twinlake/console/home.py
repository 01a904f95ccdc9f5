"""Home: whether all is well, what needs a person, and the figures behind that answer."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from twinlake.alarms import watch
from twinlake.base.times import utc_now
from twinlake.console import plots
from twinlake.console.assess import assess
from twinlake.console.console import Console
from twinlake.console.sessions import Session
from twinlake.services.lake_status import NOTHING, versions_of


def routes(console: Console) -> list[Route]:
    def figures() -> dict[str, Any]:
        services, lake = console.services.seen(), console.lake.seen()
        status = {**NOTHING, **(lake.value or {})}
        return {
            "services": services, "lake": lake, "known": status, "tables": versions_of(status),
            "assessment": assess(
                services, lake, watch.alarms_now(console.settings, utc_now()), console.settings.values.alarms
            ),
        }  # fmt: skip

    async def home(request: Request, session: Session) -> Response:
        found = await console.looked(lambda: {**figures(), "plots": plots.shown(console, request, "home")})
        return console.page("home", session, active="home", **found)

    async def part(request: Request, session: Session) -> Response:
        return console.page("home_part", session, **await console.looked(figures))

    return [
        Route("/", console.signed_in(home), methods=["GET"]),
        Route("/part/home", console.signed_in(part, is_part=True), methods=["GET"]),
    ]

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
from twinlake.services.problems import NOTHING


def routes(console: Console) -> list[Route]:
    def figures() -> dict[str, Any]:
        services, lake = console.services.seen(), console.lake.seen()
        status = {**NOTHING, **(lake.value or {})}
        return {
            "services": services, "lake": lake, "known": status, "tables": tables(status),
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


def tables(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Every version that there is, the live ones first, each with its state and its newest certificate."""
    live = (status["release"] or {}).get("tables", {})
    certificates = {(one["table"], one["version"]): one for one in status["certificates"]}
    found = [
        {
            **version, "live": live.get(version["table"]) == version["version"], "state": _state(version),
            "certificate": certificates.get((version["table"], version["version"])),
        }
        for version in status["versions"]
    ]  # fmt: skip
    return sorted(found, key=lambda one: (not one["live"], one["table"], one["version"]))


def _state(version: dict[str, Any]) -> str:
    states = {
        "lost": version["lost"], "paused": version.get("paused"), "stalled": version["stalled"],
        "reads its logs": version["step"] is None,
    }  # fmt: skip
    return next((name for name, holds in states.items() if holds), "maintained")

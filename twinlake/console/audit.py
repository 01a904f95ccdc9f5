"""Audit: who asked for what, by which way and why, and how it ended; the newest acts, or those of one person,
kind or table."""

from __future__ import annotations

from shlex import quote
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from twinlake.console.console import Console
from twinlake.console.sessions import Session
from twinlake.server.outcomes import WITHOUT_JOB, about

LOOKED_AT = 5_000
SHOWN = 200
FILTERS = ("who", "act", "table")


def routes(console: Console) -> list[Route]:
    async def audit(request: Request, session: Session) -> Response:
        wanted = {name: request.query_params.get(name, "").strip()[:200] for name in FILTERS}
        newest = await console.asked(lambda: console.client().acts(LOOKED_AT))
        found = [one for one in newest if _fits(one, wanted)]
        if not session.user.acts:  # a condition of rows has values
            found = [
                {**one, "what": {name: said for name, said in one["what"].items() if name != "rights"}}
                for one in found
            ]
        suggested = {
            "who": {one["who"] for one in newest}, "act": {one["act"] for one in newest},
            "table": {name for one in newest for name in one["about"]},
        }  # fmt: skip
        return console.page(
            "audit", session, active="audit", acts=found[:SHOWN], more=max(0, len(found) - SHOWN),
            wanted=wanted, suggested={name: sorted(found) for name, found in suggested.items()},
            about=about, without_job=WITHOUT_JOB, is_cut=len(newest) == LOOKED_AT,
            command=" ".join(f"--{name} {quote(value)}" for name, value in wanted.items() if value),
        )  # fmt: skip

    return [Route("/audit", console.signed_in(audit), methods=["GET"])]


def _fits(act: dict[str, Any], wanted: dict[str, str]) -> bool:
    of = {"who": (act["who"],), "act": (act["act"],), "table": act["about"]}
    return all(not value or value in of[name] for name, value in wanted.items())

"""Releases: what was made live when, by whom and why; plans, gate and report; promote, roll back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.config.settings import Services
from twinlake.console import acts, statement
from twinlake.console.acts import Act, Field, Form, filled
from twinlake.console.console import Console, status_of
from twinlake.console.guard import ALONE
from twinlake.console.sessions import Session
from twinlake.reading import facts_client
from twinlake.server.client import LakeClient

T = TypeVar("T")
RELEASES_SHOWN, PLANS_SHOWN = 50, 10
PROMOTABLE = ("not asked", "refused", "passed")
WORDS = {
    "live": "it is live", "released": "it was live, and is no more (roll back to its release, or plan again)",
    "outdated": "made against another release than the live one", "nothing to change": "nothing to change",
    "rejected": "it is rejected, until it is planned again (`twinlake plan`)",
    "not built": "to be built (`twinlake build`)",
    "not asked": "built; the gate has not been asked", "refused": "the gate has refused it",
    "passed": "the gate has passed it",
}  # fmt: skip
"""How far a plan has come."""


def routes(console: Console) -> list[Route]:
    async def releases(request: Request, session: Session) -> Response:
        def ask() -> dict[str, Any]:
            client = console.client()
            return {"releases": client.releases(RELEASES_SHOWN), "plans": client.plans(PLANS_SHOWN)}

        return console.page("releases", session, active="releases", words=WORDS, **await console.asked(ask))

    async def release(request: Request, session: Session) -> Response:
        number = request.path_params["number"]
        (found,) = await console.asked(lambda: console.client().releases(number=number))
        return console.page("release", session, active="releases", release=found)

    def id_of(request: Request) -> str:
        """Of a plan that there is: the SQL server is asked by a path."""
        found: str = console.client().plan(request.path_params["id"])["id"]
        return found

    def as_reader(ask: Callable[[Services, str], T], session: Session, id: str) -> T:
        """With the login of who is signed in, for there are values of records in it."""
        try:
            return ask(statement.own(console.settings, session), id)
        except TwinlakeError as error:
            raise statement.explained(error, session) from error

    async def plan(request: Request, session: Session) -> Response:
        def ask() -> dict[str, Any]:
            found, differing, error = console.client().plan(request.path_params["id"]), [], None
            id, gate = found["id"], found["gate"]
            try:
                if not all(one["equal"] for one in found["diffs"]):
                    all_compared = as_reader(facts_client.comparison, session, id)
                    differing = [one for one in all_compared if not one["equal"]]
                if gate and any(one["hidden_rows"] for one in gate["checks"]):
                    found["gate"] = as_reader(facts_client.gate, session, id)
            except TwinlakeError as failed:
                error = failed
            return {"plan": found, "differing": differing, "error": error}

        found = await console.asked(ask)
        can = found["plan"]["state"] in PROMOTABLE
        return console.page("plan", session, active="releases", words=WORDS, can_promote=can, **found)

    async def comparison(request: Request, session: Session) -> Response:
        """Of one table of a plan, what its page plots: blue and green over time."""
        table = request.query_params.get("table")

        found = await console.asked(lambda: as_reader(facts_client.comparison, session, id_of(request)))
        over = next((one["over_time"] for one in found if one["table"] == table), None)
        over = over or {"at": [], "plots": []}
        return JSONResponse({"times": over["at"], "plots": over["plots"], "note": ""})

    async def report(request: Request, session: Session) -> Response:
        """The one file that `diff` and `gate` have written, as it is, in a frame where it can do nothing."""

        def ask() -> str:
            return as_reader(facts_client.report, session, id_of(request))

        try:
            return HTMLResponse(await console.asked(ask), headers=ALONE)
        except TwinlakeError as error:
            page = console.page("no_report", None, status_of(error), error=error)
            page.headers["X-Frame-Options"] = ALONE["X-Frame-Options"]
            page.headers["Content-Security-Policy"] = ALONE["Content-Security-Policy"]
            return page

    return [
        Route("/releases", console.signed_in(releases), methods=["GET"]),
        Route("/releases/{number:int}", console.signed_in(release), methods=["GET"]),
        Route("/plans/{id}", console.signed_in(plan), methods=["GET"]),
        Route("/part/plans/{id}/comparison", console.signed_in(comparison, is_part=True), methods=["GET"]),
        Route("/plans/{id}/report", console.signed_in(report), methods=["GET"]),
        *acts.routes(console, PROMOTE),
        *acts.routes(console, REJECT),
        *acts.routes(console, ROLLBACK),
    ]


def _promotion(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    plan = client.plan(path["id"])
    id, live, gate = plan["id"], plan["live"], plan["gate"]
    now = "nothing is live yet" if live is None else f"release {live} is live now"
    does = [f"Plan {id} becomes live, approved by {user}; {now}."]
    does += [
        f"{one['table']}: {one['action']}, {_between(one['blue'], plan['greens'].get(one['table']))}"
        for one in plan["changes"] if one["action"] not in ("unchanged", "left out")
    ]  # fmt: skip
    does.append(
        "The gate is asked again before. If something does not hold then, or another release has become "
        "live, nothing changes for readers. Otherwise they see all of these tables from one moment on."
    )
    failed = [f"{one['table']} {one['name']}: {one['detail']}" for one in (gate or {}).get("checks", ())
              if not one["passed"]]  # fmt: skip
    does += [f"The gate refused it when it was asked last: {why}" for why in failed]
    return Form(
        title=f"Promote plan {id}", does=(*does,), button="Promote", back=f"/plans/{id}", active="releases",
        shown=[plan["state"], live, plan["greens"], gate and gate["at"], failed],
        fields=(
            Field(name="reason", label="The reason, which is kept with the release"),
            Field(
                name="unwitnessed", kind="lines",
                label="Go live with what no other engine can evaluate: NAME=REASON, one on a line; the "
                "reason is kept",
            ),
        ),
        hindered="" if plan["state"] in PROMOTABLE else WORDS[plan["state"]].replace("`", ""),
    )  # fmt: skip


def _promoted(path: Mapping[str, Any], given: Mapping[str, str], user: str, form: Form) -> dict[str, Any]:
    excused = [line.strip() for line in (filled(given, "unwitnessed") or "").splitlines() if line.strip()]
    return {"plan": path["id"], "approved_by": user, "unwitnessed": excused}


def _rejection(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    plan = client.plan(path["id"])
    id, state = plan["id"], plan["state"]
    does = (
        f"Plan {id} is rejected by {user}; it is: {WORDS[state]}.",
        "Nobody can promote it until it is planned again. Nothing changes for readers.",
    )
    may = state in (*PROMOTABLE, "not built")
    return Form(
        title=f"Reject plan {id}", does=does, button="Reject", back=f"/plans/{id}", active="releases",
        shown=[state, plan["live"]], hindered="" if may else WORDS[state].replace("`", ""),
        fields=(Field(name="reason", label="The reason, which is kept for ever", required=True),),
    )  # fmt: skip


def _rejected(path: Mapping[str, Any], given: Mapping[str, str], user: str, form: Form) -> dict[str, Any]:
    return {"plan": path["id"], "rejected_by": user, "reason": filled(given, "reason")}


def _rollback(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    (target,) = client.releases(number=path["number"])
    status = client.status()
    live, number = status["release"], target["number"]
    usable = {(one["table"], one["version"]) for one in status["versions"] if not one["lost"]}
    tables = target["tables"]
    gone = [f"{table} {version}" for table, version in tables.items() if (table, version) not in usable]
    hindered = ""
    if tables == live["tables"]:
        hindered = f"release {live['number']} is live, and has these tables"
    elif gone:
        hindered = f"{', '.join(gone)} was retired, or cannot go on"
    does = [
        f"The tables of release {number} become live again as release {live['number'] + 1}, approved by "
        f"{user}; release {live['number']} is live now.",
        *(
            f"{table}: {_between(live['tables'].get(table), tables.get(table))}"
            for table in sorted({*tables, *live["tables"]}) if tables.get(table) != live["tables"].get(table)
        ),
        "They were maintained all the time: nothing is computed. Readers see all of them from one moment on.",
        "What this takes back is in no later plan by itself.",
    ]  # fmt: skip
    return Form(
        title=f"Roll back to release {number}", does=(*does,), button="Roll back", active="releases",
        shown=[live["number"], live["tables"], tables], back=f"/releases/{number}", hindered=hindered,
        fields=(Field(name="reason", label="The reason, which is kept for ever", required=True),),
    )  # fmt: skip


def _rolled_back(path: Mapping[str, Any], given: Mapping[str, str], user: str, form: Form) -> dict[str, Any]:
    live = form.shown[0]
    return {"to": path["number"], "live": live, "reason": filled(given, "reason"), "approved_by": user}


def _between(before: str | None, after: str | None) -> str:
    return f"{before or 'no table'} becomes {after or 'no table'}"


PROMOTE = Act(path="/plans/{id}/promote", kind="promote", form=_promotion, params=_promoted)
REJECT = Act(path="/plans/{id}/reject", kind="reject", form=_rejection, params=_rejected)
ROLLBACK = Act(path="/releases/{number:int}/rollback", kind="rollback", form=_rollback, params=_rolled_back)

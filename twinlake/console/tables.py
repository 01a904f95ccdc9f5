"""A table: what it means, whether it is right and fresh, what it is made of; its rows, and their origin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from twinlake.base import quote
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.console import acts, plots, statement
from twinlake.console.acts import Act, Field, Form, filled
from twinlake.console.console import Console, status_of
from twinlake.console.pages import cell_text
from twinlake.console.sessions import Session
from twinlake.console.statement import Asked
from twinlake.server.client import LakeClient
from twinlake.services.lake_status import NOTHING, versions_of

ROWS, LATE_ROWS = 50, 20
RANGE = (
    Field(name="from", label="First window start (empty: all of history)", example="2026-01-31T00:00:00Z"),
    Field(name="to", label="Window starts before this", example="2026-02-01T00:00:00Z"),
)


def routes(console: Console) -> list[Route]:
    async def table(request: Request, session: Session) -> Response:
        def ask() -> dict[str, Any]:
            found, lake = console.client().table(request.path_params["name"]), console.lake.seen()
            status = {**NOTHING, **(lake.value or {})}
            known = versions_of(status)
            healths = {one["version"]: one for one in known if one["table"] == found["name"]}
            seen = plots.shown(console, request, "table", found["name"])
            outputs = {
                output: next((one for one in status[output] if one["table"] == found["name"]), None)
                for output in ("changelogs", "published", "webhooks")
            }
            return {"table": found, "lake": lake, "healths": healths, "plots": seen, "outputs": outputs}

        return console.page("table", session, active="", **await console.asked(ask))

    async def rows(request: Request, session: Session) -> Response:
        found = await console.asked(lambda: console.client().table(request.path_params["name"]))
        name = found["name"]
        wanted = {"rows": (f"serve.{quote.name(name)}", ROWS)}
        if found["late"]:
            wanted["late"] = (f"serve.{quote.name(f'{name}_late')}", LATE_ROWS)
        answers: dict[str, Any] = {"late": None}
        try:
            for part, (view, limit) in wanted.items():
                with suppress(*((UsageError,) if part == "late" and session.user.is_limited else ())):
                    answers[part] = await console.statements.sent(
                        lambda view=view, limit=limit: statement.rows(  # type: ignore[misc]
                            console.settings, session, Asked(sql=f"SELECT * FROM {view} LIMIT {limit}")
                        ),
                        session,
                    )
        except TwinlakeError as error:
            return console.page(
                "rows", session, status_of(error), active="", table=found, error=error, limit=ROWS,
                rows=None, late=None, links=[],
            )  # fmt: skip
        links = [_explaining(found, row) for row in answers["rows"]["rows"]]
        links = links if any(links) else []
        return await console.large_page(
            "rows", session, active="", table=found, error=None, limit=ROWS, links=links, **answers
        )

    async def explain(request: Request, session: Session) -> Response:
        found = await console.asked(lambda: console.client().table(request.path_params["name"]))
        key = _key_of(request.query_params.get("key", ""))
        why = await console.statements.sent(
            lambda: statement.explain(console.settings, session, found["name"], key), session
        )
        return console.page("explain", session, active="", table=found, why=why)

    return [
        Route("/tables/{name}", console.signed_in(table), methods=["GET"]),
        Route("/tables/{name}/rows", console.signed_in(rows), methods=["GET"]),
        Route("/tables/{name}/explain", console.signed_in(explain), methods=["GET"]),
        *acts.routes(console, VERIFY),
        *acts.routes(console, REBUILD),
    ]


def _explaining(table: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The address of what is behind a row; None where its keys are not shown."""
    if not table["keys"] or any(name not in row for name in table["keys"]):
        return None
    key = {name: None if row[name] is None else cell_text(row[name]) for name in table["keys"]}
    return f"/tables/{table['name']}/explain?{urlencode({'key': json.dumps(key)})}"


def _key_of(text: str) -> dict[str, str | None]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(one is None or isinstance(one, str) for one in found.values()):
        raise UsageError("no row is named", "its key is not what a page of rows links to", "start from there")
    return found


def _verifying(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    table = client.table(path["name"])
    return _form(
        table, f"Verify {table['name']}", "Verify",
        "What the table shows is compared with what its definition yields from the log alone, at one "
        "position; the certificate is kept. Nothing of the table changes.",
    )  # fmt: skip


def _rebuilding(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    table = client.table(path["name"])
    repair = (
        Field(name="repair", label="Replace even where speed and batch differ", kind="flag"),
        Field(name="reason", label="Why a difference is repaired, which is kept for ever"),
    )
    hindered = "" if table["stored"] else "it stores no rows: it is computed from its logs when it is read"
    return _form(
        table, f"Rebuild {table['name']}", "Rebuild",
        "Closed history is computed again from the log beside the running stream, compared, and put in the "
        "place of what is there. Readers go on. Where speed and batch differ nothing is replaced, unless you "
        "say so.",
        repair, hindered,
    )  # fmt: skip


def _form(
    table: Mapping[str, Any], title: str, button: str, does: str, more: tuple[Field, ...] = (),
    hindered: str = "",
) -> Form:  # fmt: skip
    name, live = table["name"], table["live"]
    about = f"It is about version {live}, which is live." if live else "It is about the newest version."
    what = "Windows are chosen by their start; without a range it is all of history."
    newest = table["certificates"][0] if table["certificates"] else None
    said = "It has no certificate yet."
    if newest:
        equal = "equal" if newest["equal"] else f"different in {newest['differing']:,} keys"
        said = f"The newest certificate, of {newest['created_at']}: {equal}, {newest['covers']}."
    return Form(
        title=title, button=button, back=f"/tables/{name}", active="", hindered=hindered,
        does=(does, about, *((what,) if table["windows"] else ()), said),
        fields=(*(RANGE if table["windows"] else ()), *more),
        shown=[live, table["versions"][0]["name"], newest and newest["id"]],
    )  # fmt: skip


def _of_range(path: Mapping[str, Any], given: Mapping[str, str], user: str, form: Form) -> dict[str, Any]:
    found = {"table": path["name"], "from": filled(given, "from"), "to": filled(given, "to")}
    if given.get("repair"):
        if filled(given, "reason") is None:
            raise UsageError("no reason is given", "a repair keeps one for ever", "say why it is repaired")
        found |= {"repair": True, "reason": filled(given, "reason")}
    return {name: value for name, value in found.items() if value is not None}


VERIFY = Act(path="/tables/{name}/verify", kind="verify", form=_verifying, params=_of_range)
REBUILD = Act(path="/tables/{name}/rebuild", kind="rebuild", form=_rebuilding, params=_of_range)

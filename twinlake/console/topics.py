"""A topic: what its records promise, what became of them, what is in quarantine and why; replay, reload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from twinlake.base.errors import TwinlakeError
from twinlake.console import acts, plots, statement
from twinlake.console.acts import Act, Field, Form, filled
from twinlake.console.console import Console, status_of
from twinlake.console.sessions import Session
from twinlake.server.client import LakeClient
from twinlake.topics.verdict import meaning

SAMPLES = 3
"""Of each reason and version of the contract."""
VERDICTS = ("valid", "invalid", "too_late", "duplicate", "ignored", "late")
FILES = {
    "active": "what its files say is active",
    "edited": "its files have been edited, and are not active yet",
    "removed": "its files are gone; it is read until a reload", "wrong": "its files are wrong",
    "new": "it is written, and not read yet",
}  # fmt: skip


def routes(console: Console) -> list[Route]:
    async def topic(request: Request, session: Session) -> Response:
        def ask() -> dict[str, Any]:
            found, lake = console.client().topic(request.path_params["name"]), console.lake.seen()
            topics = (lake.value or {}).get("topics", ())
            known = next((one for one in topics if one["name"] == found["name"]), None)
            seen = plots.shown(console, request, "topic", found["name"])
            return {"topic": found, "lake": lake, "known": known, "plots": seen}

        found = await console.asked(ask)
        return console.page("topic", session, active="", verdicts=VERDICTS, files=FILES, **found)

    async def quarantine(request: Request, session: Session) -> Response:
        found = await console.asked(lambda: console.client().topic(request.path_params["name"]))
        held, error, status = None, None, 200
        try:
            held = await console.statements.sent(
                lambda: statement.quarantine(console.settings, session, found, SAMPLES), session
            )
        except TwinlakeError as failed:
            error, status = failed, status_of(failed)
        return await console.large_page(
            "quarantine", session, status=status, active="", topic=found, held=held, error=error,
            meaning=meaning,
        )  # fmt: skip

    return [
        Route("/topics/{name}", console.signed_in(topic), methods=["GET"]),
        Route("/topics/{name}/quarantine", console.signed_in(quarantine), methods=["GET"]),
        *acts.routes(console, REPLAY),
        *acts.routes(console, RELOAD),
    ]


def _replaying(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    topic = client.topic(path["name"])
    name, version = topic["name"], topic["contract"]["version"]
    does = [
        f"The records in quarantine are validated again by the active contract, {version}. Those that are "
        "valid now go into the tables; of each it stays known what was decided at first.",
        f"Tables that take them: {', '.join(topic['read_by']) or 'none'}.",
    ]  # fmt: skip
    if topic["files"]["state"] != "active":
        does.append(f"Of {name}, {FILES[topic['files']['state']]}; `twinlake reload` makes them active.")
    return Form(
        title=f"Replay the quarantine of {name}", does=(*does,), button="Replay", active="",
        back=f"/topics/{name}", shown=[topic["contract"], topic["files"]["state"], topic["read_by"]],
        fields=(
            Field(name="reasons", kind="lines", label="Only these reasons, one on a line (empty: all)",
                  example="not_allowed:status"),
        ),
    )  # fmt: skip


def _of_reasons(path: Mapping[str, Any], given: Mapping[str, str], user: str, form: Form) -> dict[str, Any]:
    lines = (line.strip() for line in (filled(given, "reasons") or "").splitlines())
    return {"topic": path["name"], "reasons": [line for line in lines if line]}


def _reloading(client: LakeClient, path: Mapping[str, Any], user: str) -> Form:
    found = client.topics()
    changed = [one for one in found if one["state"] != "active"]
    does = [
        "Topics, schemas and contracts become active as the project's files have them now, all or none. The "
        "next batch follows them; nothing else stops. Tables change by a release alone."
    ]
    for one in changed:
        versions = f"contract {one['contract'] or 'none'} becomes {one['written'] or 'none'}"
        does.append(f"{one['name']}: {one['state']}, {one['why'] or versions}")
    wrong = [one["name"] for one in changed if one["state"] == "wrong"]
    hindered = f"the files of {', '.join(wrong)} are wrong" if wrong else ""
    if not changed:
        hindered = "what the files say is active already"
    return Form(
        title="Reload the topics", does=(*does,), button="Reload", back="/", active="", shown=found,
        hindered=hindered,
    )  # fmt: skip


REPLAY = Act(path="/topics/{name}/replay", kind="replay", form=_replaying, params=_of_reasons)
RELOAD = Act(path="/reload", kind="reload", form=_reloading, params=lambda path, given, user, form: {})

"""The routes that only say what is: releases, plans, tables and topics as pages need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import BeforeValidator

from twinlake.lake.open_lake import OpenLake
from twinlake.releases.timeline import newest_plans, plan_facts, timeline
from twinlake.server.table_facts import table_facts
from twinlake.server.topic_facts import topic_facts, topic_files


def _digits(text: Any) -> Any:
    """A query string has texts alone; pydantic would take `1.0`, `+1` and `1_0` for numbers."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit()):
        raise ValueError("it is not a whole number")
    return text


Digits = Annotated[int, BeforeValidator(_digits)]
Limit = Annotated[Digits, Query(ge=1, le=1000)]


def install(app: FastAPI, lake: Callable[[], OpenLake]) -> None:
    """Adds them; `lake` raises BusyError until it is open."""

    @app.get("/releases")
    def releases(
        limit: Limit = 50, number: Annotated[Digits | None, Query(ge=1)] = None
    ) -> list[dict[str, Any]]:
        """The newest releases first, with what each changed and why; with `number` that one alone."""
        return [one.to_json() for one in timeline(lake(), limit, number)]

    @app.get("/plans")
    def plans(limit: Limit = 10) -> list[dict[str, Any]]:
        """The newest plans first: how far each has come, and which tables it changes."""
        return [one.summary() for one in newest_plans(lake(), limit)]

    @app.get("/plans/{id}")
    def plan(id: str) -> dict[str, Any]:
        """One plan: what it changes and why, its green versions, gate and differences, without their rows."""
        return plan_facts(lake(), id).to_json()

    @app.get("/tables/{name}")
    def table(name: str) -> dict[str, Any]:
        """One table: meaning, definition, columns with their lineage, versions, certificates, releases."""
        return table_facts(lake(), name).to_json()

    @app.get("/topics")
    def topics() -> list[dict[str, Any]]:
        """Every topic: which contract is active, and what the project's files say beside it."""
        return [one.to_json() for one in topic_files(lake())]

    @app.get("/topics/{name}")
    def topic(name: str) -> dict[str, Any]:
        """One topic: contract, schemas, columns with what is made of them, and the views of its records."""
        return topic_facts(lake(), name).to_json()

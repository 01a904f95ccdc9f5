"""The console over the API of a real lake server, which does its jobs: what a form says is what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from pyspark.sql import SparkSession

from tests.console.conftest import PORT, Browser, World
from tests.console.test_home import text
from tests.project import TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.job import Job
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.console.console import Console
from twinlake.lake.catalog.release_log import live
from twinlake.server.api import build_app
from twinlake.server.client import LakeClient

pytestmark = pytest.mark.faults
SignIn = Callable[[str], Browser]
SALES = "sales_per_region"
DEFINED = {table.name: table for table in TABLES}
NO_CANCELLED: dict[str, Any] = {**DEFINED, SALES: replace(DEFINED[SALES], where="status <> 'cancelled'")}  # type: ignore[type-var]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """One release, 100 orders, every tenth of them cancelled."""
    with following_sql_server(tmp_path / "lake") as sql_url:
        lake = Lake(spark, tmp_path, sql_url)
        lake.promote(lake.build(DEFINED))
        lake.append([order(number) for number in range(100)])
        yield lake
        lake.stop()


@pytest.fixture
def console(lake: Lake, tmp_path: Path, passwords: dict[str, str], world: World) -> Console:
    web = TestClient(build_app(lake.server, "token"))

    def pass_on(request: httpx.Request) -> httpx.Response:
        answer = web.request(
            request.method, request.url.raw_path.decode(), content=request.content,
            headers=dict(request.headers),
        )  # fmt: skip
        return httpx.Response(answer.status_code, content=answer.content)

    client = LakeClient("http://lake", "token", httpx.MockTransport(pass_on))
    return Console.of(
        lake.server.settings, tmp_path / "access" / "users", PORT, False, utc_now, client=lambda: client,
        services=world.services,
    )  # fmt: skip


def ended(lake: Lake, page: httpx.Response) -> Job:
    """The job whose page this is, once it has succeeded."""
    id = page.url.path.rpartition("/")[2]
    job = wait_for(id, lambda: ((found := lake.server.jobs.wait(id, 1)).ended and found) or None, 300)
    job.succeeded()
    return job


def test_what_its_forms_ask_for_is_done_and_its_pages_say_so(lake: Lake, signed_in: SignIn) -> None:
    plan, made = lake.build(NO_CANCELLED), signed_in("operator")
    lake.do("diff", table=SALES, plan=plan)
    form = made.hidden(f"/plans/{plan}/promote")
    before = text(made.get(f"/plans/{plan}"))

    ended(lake, made.client.post(f"/plans/{plan}/promote", data=form))
    late = made.client.post(f"/plans/{plan}/promote", data=form)

    assert "built; the gate has not been asked" in before and f"{SALES} " in before and "different" in before
    promoted = live(lake.path)
    assert promoted and (promoted.number, promoted.approved_by) == (2, "the-operator")
    assert late.status_code == 409 and "is no longer so" in late.text
    assert "it is live" in text(made.get(f"/plans/{plan}"))

    job = ended(lake, made.fill("/releases/1/rollback", reason="they are missed"))
    assert job.params["live"] == 2
    shown = text(made.get("/releases"))
    assert "Release 3 live rollback to release 1" in shown and "Reason: they are missed" in shown
    assert "where: nothing -> status <> 'cancelled'" in shown

    ended(lake, made.fill(f"/tables/{SALES}/verify"))
    shown = text(made.get(f"/tables/{SALES}"))
    assert "Sales of each region per minute of event time." in shown and "verify equal" in shown
    assert "sales decimal(38,2) Sum of the orders' amounts. orders .amount" in shown
    assert "Release 3 ," in shown
    shown = text(made.get("/topics/orders"))
    assert "amount decimal(12,2) required; at least 0" in shown
    assert "Now what its files say is active" in shown
    assert "what the files say is active already" in text(made.get("/reload"))

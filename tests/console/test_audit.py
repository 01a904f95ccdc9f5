"""The audit page: who did what, whatever they are called; of one person, kind or table where asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.console.conftest import HOSTILE, Browser, World, hostile
from tests.console.test_home import text
from twinlake.lake.catalog.audit_log import Act
from twinlake.lake.catalog.plans import Decided, Rejected

SignIn = Callable[[str], Browser]
PROMOTE = Act(
    at="2026-01-31T11:00:00Z", act="promote", who="anna", via="airflow", why="the totals are right", job="j7",
    what={"plan": "c" * 12, "tables": ["visits", "hours"]}, outcome="succeeded",
    ended_at="2026-01-31T11:00:05Z",
)  # fmt: skip
REBUILD = replace(
    PROMOTE, act="rebuild", who="ben", via="cli", why=None, job="j8", what={"table": "sales"}, outcome=None
)


@pytest.fixture(autouse=True)
def acts(world: World) -> None:
    world.acts = [REBUILD.to_json(), PROMOTE.to_json()]


def test_each_act_has_a_row_with_who_why_and_how_it_ended(signed_in: SignIn) -> None:
    page = signed_in("analyst").get("/audit")
    shown = text(page)

    assert "anna airflow promote" in shown and "the totals are right succeeded j7" in shown
    assert "ben cli rebuild table=sales not ended j8" in shown and 'href="/jobs/j7"' in page.text


def test_the_condition_of_somebody_s_rows_is_for_who_acts(signed_in: SignIn, world: World) -> None:
    what = {"change": "rights", "user": "rita", "rights": {"rows": {"sales": "region = 'bavaria'"}}}
    world.acts = [replace(PROMOTE, act="users", what=what).to_json()]

    seen = {role: text(signed_in(role).get("/audit")) for role in ("analyst", "operator")}

    assert "bavaria" in seen["operator"] and "bavaria" not in seen["analyst"]
    assert all("change=rights, user=rita" in one for one in seen.values())


@pytest.mark.parametrize(
    ("asked", "jobs"),
    [
        ("who=anna", ["j7"]), ("act=rebuild", ["j8"]), ("table=sales", ["j8"]),
        ("table=hours", ["j7"]), ("who=carla", []), ("", ["j8", "j7"]),
    ],
)  # fmt: skip
def test_acts_of_one_person_kind_or_table(signed_in: SignIn, asked: str, jobs: list[str]) -> None:
    page = signed_in("analyst").get(f"/audit?{asked}").text
    assert [job for job in ("j8", "j7") if f'/jobs/{job}"' in page] == jobs


@pytest.mark.parametrize(
    ("act", "what", "said"),
    [
        ("users", {"change": "add", "user": "ben"}, "change=add, user=ben"),
        ("rotate", {"secrets": "api_token, sql_password"}, "secrets=api_token, sql_password"),
    ],
)
def test_an_act_without_a_job_shows_none(
    signed_in: SignIn, world: World, act: str, what: dict[str, str], said: str
) -> None:
    world.acts = [replace(PROMOTE, act=act, job="0123abcd4567", what=what).to_json()]

    page = signed_in("analyst").get("/audit")

    assert f"{act} {said}" in text(page) and "0123abcd4567" not in page.text


def test_a_query_that_was_cancelled_leads_to_no_job(signed_in: SignIn, world: World) -> None:
    what = {"kind": "query", "user": "ben", "endpoint": "jdbc", "sql": "SELECT 1"}
    world.acts = [replace(PROMOTE, act="cancel", job="0123abcd4567", what=what).to_json()]

    page = signed_in("analyst").get("/audit")

    assert "kind=query, user=ben, endpoint=jdbc, sql=SELECT 1" in text(page)
    assert "query 0123abcd4567" in text(page) and "/jobs/0123abcd4567" not in page.text


def test_every_text_of_an_act_is_shown_as_text(signed_in: SignIn, world: World) -> None:
    world.masked = hostile
    page = signed_in("analyst").get("/audit").text
    assert HOSTILE not in page and "&lt;img" in page


def test_an_operator_rejects_a_plan_with_a_reason_and_the_plan_says_so(
    signed_in: SignIn, world: World
) -> None:
    made = signed_in("operator")
    path = f"/plans/{world.plan.plan.id}/reject"
    page = made.get(path)
    assert "Nobody can promote it until it is planned again" in page.text
    shown = page.text.split('name="shown" value="')[1].split('"')[0]
    once = page.text.split('name="once" value="')[1].split('"')[0]
    empty = made.send(path, path, shown=shown, once=once, reason=" ")
    done = made.send(path, path, shown=shown, once=once, reason="too few rows")

    assert empty.status_code == 400 and done.url.path.startswith("/jobs/")
    (asked,) = world.submitted
    user = asked["params"]["rejected_by"]
    assert (asked["kind"], asked["params"]["reason"]) == ("reject", "too few rows")
    assert (asked["by"], asked["via"], asked["why"]) == (user, "console", "too few rows")

    said = Decided(proposed_by="anna", rejected=Rejected(by="ben", at="2026-01-31T11:50:00Z", reason="no"))
    world.plan = replace(world.plan, state="rejected", decided=said)
    page = made.get(f"/plans/{world.plan.plan.id}")
    assert "ben rejected it" in text(page) and "anna has proposed it" in text(page)
    assert "Promote…" not in page.text


def test_an_analyst_may_not_reject(signed_in: SignIn, world: World) -> None:
    made = signed_in("analyst")
    page = made.send(f"/plans/{world.plan.plan.id}/reject", "/", reason="no")
    assert page.status_code == 403 and world.submitted == []

"""Releases say what was changed by whom and why; who has the role promotes and rolls back, as jobs."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.console import release_answers
from tests.console.conftest import HOSTILE, STATUS, VERSION, Browser, World, hostile
from tests.console.test_home import text
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.config.settings import Services
from twinlake.reading import facts_client
from twinlake.releases.shown import as_shown
from twinlake.releases.timeline import Entry

SignIn = Callable[[str], Browser]
PLAN = f"/plans/{release_answers.PLAN.id}"
BOTH = {**STATUS, "versions": [VERSION, {**VERSION, "version": "v-0"}]}
"""Both versions are maintained."""


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the SQL server was asked for, and by whom; it has a report."""
    asked: list[Any] = []

    def answer(services: Services, plan: str) -> str:
        asked.append((services.sql_user, services.sql_password, plan))
        return "<style>p { color: red }</style><p>the report</p>"

    monkeypatch.setattr(facts_client, "report", answer)
    return asked


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, world: World) -> list[Any]:
    """What the SQL server was asked for, and by whom; it has the comparisons of the plan."""
    asked: list[Any] = []

    def answer(services: Services, plan: str) -> list[dict[str, Any]]:
        asked.append((services.sql_user, services.sql_password, plan))
        return [as_shown(one) for one in world.plan.diffs]

    def gate(services: Services, plan: str) -> dict[str, Any]:
        asked.append((services.sql_user, services.sql_password, plan))
        assert world.plan.gate is not None
        return world.plan.gate.to_json()

    monkeypatch.setattr(facts_client, "comparison", answer)
    monkeypatch.setattr(facts_client, "gate", gate)
    return asked


def test_the_time_line_says_when_who_why_and_what_changed(signed_in: SignIn) -> None:
    shown = text(signed_in("analyst").get("/releases"))

    assert "Release 4 live promote, 2 hours ago 2026-01-31T10:00:00Z approved by anna" in shown
    assert "sales v-0 became v-1 amount: Sum -> Max" in shown
    assert "Release 3 initial, 26 hours ago" in shown and "sales new, v-0 the table is new" in shown
    assert f"{'c' * 12} 30 minutes ago release 4 sales (changed) the gate has refused it" in shown


def test_a_rollback_says_where_to_and_why(signed_in: SignIn, world: World) -> None:
    back = Entry(release=release_answers.BACK, live=True, changes=()).to_json()
    world.releases = [back, *world.releases]

    shown = text(signed_in("analyst").get("/releases"))
    alone = text(signed_in("analyst").get("/releases/5"))

    assert "Release 5 live rollback to release 3" in shown and "Reason: cancelled orders are missed" in shown
    assert "Release 5, which is live" in alone and "sales v-0 orders batch 5" in alone


def test_the_live_release_leads_to_the_one_that_a_rollback_restores(signed_in: SignIn, world: World) -> None:
    live = Entry(release=release_answers.BACK, live=True, changes=(), back_to=2)
    world.releases = [live.to_json(), *world.releases]
    operator = signed_in("operator")

    assert 'href="/releases/2/rollback"' in operator.get("/releases/5").text
    assert "/rollback" not in signed_in("analyst").get("/releases/5").text
    world.releases = [replace(live, back_to=None).to_json()]
    assert "/rollback" not in operator.get("/releases/5").text


def test_a_plan_says_what_changes_what_was_compared_and_what_the_gate_said(
    signed_in: SignIn, compared: list[Any]
) -> None:
    page = signed_in("analyst").get(PLAN)

    shown = text(page)
    assert "where: nothing -> status <> 'cancelled'" in shown and "the gate has refused it" in shown
    assert "sales v-1 v-2 different 960 40 2 0" in shown
    assert "sales certificate ok equal at orders batch 7" in shown
    assert "sales witness failed 2 rows differ north: 3, not 4" in shown
    assert f'<iframe sandbox loading="lazy" title="Report of the plan" src="{PLAN}/report">' in page.text


def test_a_plan_says_since_when_what_differs_by_how_much_and_which_rows_differ_most(
    signed_in: SignIn, compared: list[Any], passwords: dict[str, str]
) -> None:
    page = signed_in("analyst").get(PLAN)

    shown = text(page)
    assert compared == 2 * [("the-analyst", passwords["analyst"], "c" * 12)], "the comparison, the gate"
    assert "Rows differ from 2026-01-30T11:02:00Z to 2026-01-30T12:58:00Z , by window_start." in shown
    # what differs most is first; an average has no total, and what is equal is folded
    assert "amount decimal(38,2) 40 90.00 81.00 -9.00 (-10.0 %) average double 40" in shown
    assert "Columns that are equal: 1" in shown and "region north amount 9.00 → 1.50 (-7.50)" in shown
    address = html.unescape(page.text.partition('data-plots="')[2].partition('"')[0])
    found = signed_in("analyst").get(address).json()
    titles = ["Sum of amount per hour", "Rows per hour", "Rows that differ per hour"]
    assert [one["title"] for one in found["plots"]] == titles and len(found["times"]) == 3
    assert {one["name"]: one["values"] for one in found["plots"][0]["curves"]} == {
        "blue": [30.0, 30.0, 30.0], "green": [30.0, 25.0, 26.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    "changed", [{"no_time": "no column says of which time"}, {}], ids=["no time", "older"]
)
def test_a_comparison_without_time_says_so_and_has_no_plot(
    signed_in: SignIn, world: World, compared: list[Any], changed: dict[str, Any]
) -> None:
    without = replace(release_answers.DIFF, over_time=None, **changed)
    world.plan, made = release_answers.facts(diffs=(without,)), signed_in("analyst")

    page, part = made.get(PLAN), made.get(f"/part{PLAN}/comparison?table=sales").json()

    assert changed.get("no_time", "did not look at time yet") in text(page)
    assert "data-plots" not in page.text and part == {"times": [], "plots": [], "note": ""}


def test_a_plot_is_of_who_is_signed_in_and_of_a_plan_that_there_is(
    signed_in: SignIn, browser: Callable[[], Browser], compared: list[Any]
) -> None:
    assert browser().get(f"/part{PLAN}/comparison?table=sales").status_code == 401
    made = signed_in("analyst")
    for other in ("..%2fstatus", "0" * 12):
        assert made.get(f"/part/plans/{other}/comparison?table=sales").status_code == 404
    assert compared == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotFoundError("there is none to show", "<img src=x>", "run `twinlake diff`"), "twinlake diff"),
        (UsageError("the request was refused", "wrong password", ""), "does not let the-analyst in"),
    ],
    ids=["none yet", "another login"],
)
def test_a_plan_is_shown_without_what_the_sql_server_keeps_for_itself(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, error: TwinlakeError, said: str
) -> None:
    def refused(services: Services, plan: str) -> list[dict[str, Any]]:
        raise error

    monkeypatch.setattr(facts_client, "comparison", refused)

    page = signed_in("analyst").get(PLAN)

    assert page.status_code == 200 and "sales v-1 v-2 different 960 40 2 0" in text(page)
    assert said in text(page) and "<img" not in page.text and "data-plots" not in page.text


def test_of_a_plan_without_differences_the_sql_server_is_not_asked(
    signed_in: SignIn, world: World, compared: list[Any]
) -> None:
    same = replace(release_answers.DIFF, changed=0, only_blue=0)
    world.plan = release_answers.facts(diffs=(same,), gate=None)

    assert "data-plots" not in signed_in("analyst").get(PLAN).text and compared == []


def test_the_report_is_what_the_sql_server_has_and_can_do_nothing(
    signed_in: SignIn, report: list[Any], passwords: dict[str, str]
) -> None:
    answer = signed_in("analyst").get(f"{PLAN}/report")

    assert report == [("the-analyst", passwords["analyst"], "c" * 12)] and "the report" in answer.text
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"sandbox", "default-src 'none'", "frame-ancestors 'self'"} <= {*policy}
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"


def test_a_report_that_is_not_there_is_said_in_its_frame(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(services: Services, plan: str) -> str:
        raise NotFoundError("it has no report", "<img src=x>", "run `twinlake diff`")

    monkeypatch.setattr(facts_client, "report", none)

    answer = signed_in("analyst").get(f"{PLAN}/report")

    assert answer.status_code == 404 and answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert "<img" not in answer.text and "<code>twinlake diff</code>" in answer.text


@pytest.mark.parametrize(
    "path", ["/plans/..%2fstatus/report", "/plans/x%2Fy", "/releases/0x4", "/releases/9"]
)
def test_what_names_no_release_or_plan_is_said(signed_in: SignIn, report: list[Any], path: str) -> None:
    assert signed_in("analyst").get(path).status_code == 404
    assert report == []


def test_a_promotion_says_first_what_it_does_and_is_then_the_job(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")

    shown = text(made.get(f"{PLAN}/promote"))
    page = made.fill(f"{PLAN}/promote", unwitnessed="sales=it is small\n\n", reason="they are missed")

    assert f"Plan {'c' * 12} becomes live, approved by the-operator; release 4 is live now." in shown
    assert "sales: changed, v-1 becomes v-2" in shown and "orders" not in shown
    assert "The gate refused it when it was asked last: sales witness: 2 rows differ" in shown
    assert page.url.path == "/jobs/new1"
    (asked,) = world.submitted
    assert asked["kind"] == "promote" and asked["key"].startswith("console/")
    assert (asked["by"], asked["via"], asked["why"]) == ("the-operator", "console", "they are missed")
    params = {"plan": "c" * 12, "approved_by": "the-operator", "unwitnessed": ["sales=it is small"]}
    assert asked["params"] == params


@pytest.mark.parametrize(
    "changed",
    [
        {"live": 5}, {"state": "passed"}, {"greens": {"sales": "v-3"}},
        {"gate": replace(release_answers.GATE, at="2026-01-31T11:50:00Z")},
    ],
    ids=["another release", "another state", "another version", "another gate"],
)  # fmt: skip
def test_a_promotion_of_what_has_changed_since_is_refused(
    signed_in: SignIn, world: World, changed: dict[str, Any]
) -> None:
    made = signed_in("operator")
    form = made.hidden(f"{PLAN}/promote")
    world.plan = release_answers.facts(**changed)

    refused = made.client.post(f"{PLAN}/promote", data=form)
    again = made.client.post(f"{PLAN}/promote", data=made.hidden(f"{PLAN}/promote"))

    assert refused.status_code == 409 and "is no longer so" in refused.text
    assert again.url.path == "/jobs/new1" and len(world.submitted) == 1


def test_what_is_sent_twice_is_one_job(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")
    form = made.hidden(f"{PLAN}/promote")

    pages = [made.client.post(f"{PLAN}/promote", data=form) for _ in range(2)]

    assert [page.url.path for page in pages] == ["/jobs/new1"] * 2 and len(world.submitted) == 1


@pytest.mark.parametrize(
    "state", ["live", "released", "rejected", "outdated", "nothing to change", "not built"]
)
def test_a_plan_that_cannot_go_live_has_no_button(signed_in: SignIn, world: World, state: str) -> None:
    world.plan = release_answers.facts(state=state)
    made = signed_in("operator")

    page = made.get(f"{PLAN}/promote")

    assert "cannot be done now" in page.text and "<button>Promote" not in page.text
    assert "Promote…" not in made.get(PLAN).text


def test_a_rollback_needs_a_reason_and_names_the_release_that_was_shown(
    signed_in: SignIn, world: World
) -> None:
    world.status, made = BOTH, signed_in("operator")
    shown = text(made.get("/releases/3/rollback"))

    without = made.fill("/releases/3/rollback", reason=" ")
    page = made.fill("/releases/3/rollback", reason="it was right")

    assert "release 4 is live now. sales: v-1 becomes v-0" in shown
    assert without.status_code == 400 and "The reason, which is kept for ever is empty" in text(without)
    assert page.url.path == "/jobs/new1"
    params = {"to": 3, "live": 4, "reason": "it was right", "approved_by": "the-operator"}
    assert [one["params"] for one in world.submitted] == [params]


def test_a_rollback_is_refused_where_another_release_went_live_since(signed_in: SignIn, world: World) -> None:
    world.status, made = BOTH, signed_in("operator")
    form = made.hidden("/releases/3/rollback")
    world.status = {**BOTH, "release": {**BOTH["release"], "number": 5}}

    refused = made.client.post("/releases/3/rollback", data={**form, "reason": "x"})

    assert refused.status_code == 409 and "release 5 is live now" in text(refused) and world.submitted == []


def test_what_was_retired_or_is_live_already_cannot_be_gone_back_to(signed_in: SignIn, world: World) -> None:
    made = signed_in("operator")

    retired, live = text(made.get("/releases/3/rollback")), text(made.get("/releases/4/rollback"))

    assert "sales v-0 was retired, or cannot go on" in retired
    assert "release 4 is live, and has these tables" in live


def test_every_value_is_shown_as_text(signed_in: SignIn, world: World) -> None:
    world.status, world.masked = BOTH, hostile
    made = signed_in("operator")

    for path in ("/releases", "/releases/4", PLAN, f"{PLAN}/promote", "/releases/3/rollback"):
        page = made.get(path)
        assert page.status_code == 200
        assert "<img" not in page.text and html.escape(HOSTILE) in page.text


def test_an_analyst_has_no_act_and_is_refused_by_the_server_too(signed_in: SignIn, world: World) -> None:
    world.status, made = BOTH, signed_in("analyst")

    shown = [made.get(path).text for path in (PLAN, "/releases/3", "/releases")]
    refused = [made.get(path) for path in (f"{PLAN}/promote", "/releases/3/rollback")]
    refused += [made.send(path, "/releases") for path in (f"{PLAN}/promote", "/releases/3/rollback")]

    assert not any("Promote" in page or "Roll back" in page for page in shown)
    assert [page.status_code for page in refused] == [403] * 4 and world.submitted == []

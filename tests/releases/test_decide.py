"""A plan that somebody rejects does not go live; with the setting, nobody approves a plan of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import order
from tests.releases.promised import promised_lake
from tests.releases.test_derived import PAID, PROMISED, SPENT
from twinlake.base.errors import DeniedError, UsageError
from twinlake.base.job import Asker, Job
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan, Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.releases import decide

PLAN = Plan(
    id="0123456789ab", release_before=1, changes=(), definitions={}, created_at="2026-01-31T12:00:00Z"
)
ANNA, BEN = Asker(by="anna", via="console"), Asker(by="ben", via="cli")
CARLA = Asker(by="carla", via="airflow")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Any]:
    """What `decide` asks of an open lake: its plans, its clock, its settings."""
    values = SimpleNamespace(releases=SimpleNamespace(approval_by="others"))
    yield SimpleNamespace(
        path=tmp_path, plans=Plans(tmp_path), clock=utc_now, settings=SimpleNamespace(values=values)
    )


def test_who_has_made_a_plan_cannot_approve_it_in_whatever_case_or_by_another_name(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, ANNA)

    for approved_by, asker in (("anna", ANNA), ("Anna", BEN), ("ben", ANNA)):
        with pytest.raises(DeniedError, match="anna cannot approve plan 0123456789ab"):
            decide.refuse_unapproved(lake, PLAN, approved_by, asker)
    decide.refuse_unapproved(lake, PLAN, "ben", BEN)


def test_who_plans_it_again_has_not_proposed_it(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, ANNA)
    decide.note_proposal(lake, PLAN, BEN)

    assert lake.plans.decided(PLAN.id).proposed_by == "anna"
    decide.refuse_unapproved(lake, PLAN, "ben", BEN)


def test_a_plan_of_nobody_is_approved_by_nobody(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, Asker())
    with pytest.raises(DeniedError, match="nobody knows who has made it"):
        decide.refuse_unapproved(lake, PLAN, "ben", BEN)


def test_who_is_not_named_approves_nothing(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, ANNA)
    with pytest.raises(DeniedError, match="nobody knows who approves it"):
        decide.refuse_unapproved(lake, PLAN, "somebody", Asker(by="somebody", via="airflow"))


def test_the_first_release_and_the_default_ask_for_nobody_else(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, ANNA)
    decide.refuse_unapproved(lake, replace(PLAN, release_before=None), "anna", ANNA)
    lake.settings.values.releases.approval_by = "anyone"
    decide.refuse_unapproved(lake, PLAN, "anna", ANNA)


def test_a_rejected_plan_is_refused_with_who_and_why_until_it_is_planned_again(lake: Any) -> None:
    decide.note_proposal(lake, PLAN, ANNA)
    decide.reject(lake, PLAN, "ben", "the totals are wrong")

    with pytest.raises(DeniedError, match=r"ben did so at .*: the totals are wrong"):
        decide.refuse_unapproved(lake, PLAN, "carla", CARLA)
    decide.note_proposal(lake, PLAN, BEN)
    decide.refuse_unapproved(lake, PLAN, "carla", CARLA)
    assert lake.plans.decided(PLAN.id).proposed_by == "anna"


def test_a_plan_that_is_live_is_not_rejected(lake: Any) -> None:
    live = Release(
        number=1, kind="initial", tables={}, created_at="2026-01-31T12:00:00Z", approved_by="ben",
        plan=PLAN.id, git_commit=None, job="j",
    )  # fmt: skip
    release_log.commit(lake.path, live)
    with pytest.raises(UsageError, match="it is live, as release 1"):
        decide.reject(lake, PLAN, "ben", None)
    decide.note_proposal(lake, PLAN, ANNA)
    decide.refuse_unapproved(lake, PLAN, "anna", ANNA)  # a promotion that was killed, done again


@pytest.mark.faults
def test_a_plan_that_passed_its_gate_waits_for_somebodys_word_and_a_rejected_one_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    with promised_lake(spark, tmp_path, PROMISED) as opened:
        server = opened.server

        def do(kind: str, asker: Asker = ANNA, **params: Any) -> Job:
            return server.jobs.wait(server.jobs.submit(kind, params, asker=asker).id, 300)

        def waiting() -> str | None:
            found = server.status()["waiting"]
            return found and found["plan"]

        opened.promote(opened.build({"spent": SPENT}))
        opened.append([order(number) for number in range(20)])
        plan = do("plan", definitions={"spent": PAID.to_json()}).succeeded()["id"]
        do("build", plan=plan).succeeded()
        before = waiting()
        assert do("gate", plan=plan).succeeded()["passed"]
        wait_for("the plan", lambda: waiting() or None, 10)
        assert (before, waiting(), server.status()["waiting"]["tables"]) == (None, plan, ["spent"])

        do("reject", BEN, plan=plan, rejected_by="ben", reason="too few rows").succeeded()
        wait_for("the rejection", lambda: waiting() is None or None, 10)
        refused = do("promote", CARLA, plan=plan, approved_by="carla")
        assert refused.error is not None and "ben did so" in refused.error["why"]

        do("plan", definitions={"spent": PAID.to_json()}).succeeded()
        done = do("promote", replace(CARLA, why="the rows are right"), plan=plan, approved_by="carla")
        assert done.succeeded()["reason"] == "the rows are right"
        wait_for("the release", lambda: waiting() is None or None, 10)
        acts = [(act.act, act.who, act.outcome) for act in server.audit.acts()]
        assert acts[:3] == [
            ("promote", "carla", "succeeded"),
            ("plan", "anna", "succeeded"),
            ("promote", "carla", f"failed: plan {plan} is rejected"),
        ]

"""How a release waits: answers in Airflow, silence, and what somebody decides elsewhere meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from airflow.providers.standard.triggers import hitl
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from twinlake.airflow import approval, jobs
from twinlake.airflow.approval import DecisionTrigger
from twinlake.base.errors import UnreachableError
from twinlake.base.times import utc_now
from twinlake.server.client import LakeClient

TOLD_BY_LAKE = {
    "passed": {"state": "passed"},
    "live": {"state": "live", "release": 4},
    "rejected": {
        "state": "rejected", "release": None, "rejected": {"by": "carol", "at": "", "reason": "too few rows"},
    },
}
RELEASE = {"number": 4, "approved_by": "carol", "reason": "as agreed"}


class Airflow:
    """What Airflow keeps of one question, as a trigger asks it; `refuses` what is noted after an answer."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None
        self.noted: list[dict[str, Any]] = []
        self.answer_while_noting = False

    def get(self, ti_id: Any) -> Any:
        given = self.answer or {"chosen_options": None, "responded_by_user": None, "params_input": {}}
        return SimpleNamespace(
            **given, response_received=self.answer is not None, responded_at=utc_now(),
        )  # fmt: skip

    def update(self, ti_id: Any, chosen_options: list[str], params_input: dict[str, Any]) -> Any:
        if self.answer_while_noting:
            self.answer = ANSWER
            raise RuntimeError("409 Conflict: it is answered")
        self.noted.append({"chosen": chosen_options, **params_input})


ANSWER = {
    "chosen_options": ["Approve"], "params_input": {"reason": None},
    "responded_by_user": SimpleNamespace(id="1", name="Ada"),
}  # fmt: skip


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    made = Airflow()
    monkeypatch.setattr(hitl, "get_hitl_detail_content_detail", made.get)
    monkeypatch.setattr(approval, "update_hitl_detail_response", made.update)
    monkeypatch.setattr(approval, "LOOK_S", 0.01)
    monkeypatch.setattr(approval, "SETTLED_S", 0)
    return made


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`lake(*states)`: how far the plan has come, look by look; `away` is a server that does not answer."""

    def of(*states: str) -> list[str]:
        left, looks = [*states], []

        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.path == "/releases":
                assert request.url.params["number"] == "4"
                return httpx.Response(200, json=[RELEASE])
            assert request.url.path == "/plans/p"
            looks.append(state := left.pop(0) if len(left) > 1 else left[0])
            if state == "away":
                raise UnreachableError("the lake server does not answer", "", "")
            return httpx.Response(200, json=TOLD_BY_LAKE[state])

        client = LakeClient("http://lake", "token", transport=httpx.MockTransport(answer))
        for module in (approval, jobs):
            monkeypatch.setattr(module, "lake_server", lambda: client)
        return looks

    return of


def event_of(bag: Any, patience_s: float = 20, **changed: Any) -> dict[str, Any]:
    """What the trigger says at last, kept in a database before as Airflow does."""
    approve = bag.dags["release"].get_task("approve")
    asked = {
        "ti_id": str(uuid4()), "options": approve.options, "defaults": None, "multiple": False,
        "params": approve.serialized_params, "timeout_datetime": None, "poke_interval": 0.01, **changed,
    }  # fmt: skip
    path, kept = DecisionTrigger(plan="p", **asked).serialize()
    assert path == "twinlake.airflow.approval.DecisionTrigger"
    if changed.get("timeout_datetime") is None:
        kept = json.loads(json.dumps(kept))

    async def event() -> Any:
        return await asyncio.wait_for(anext(DecisionTrigger(**kept).run()), patience_s)

    told: dict[str, Any] = asyncio.run(event()).payload
    return told


def test_what_is_made_live_elsewhere_is_the_answer_and_airflow_knows_it(bag, airflow, lake) -> None:
    lake("passed", "away", "live")

    event = event_of(bag)

    assert (event["chosen_options"], event["elsewhere"]) == (["Approve"], 4)
    assert approval.answered(event) == ("carol", "as agreed")
    assert airflow.noted == [{"chosen": ["Approve"], "reason": "carol, not in Airflow: as agreed"}]


def test_what_is_rejected_elsewhere_fails_the_run_and_is_not_rejected_again(
    bag, airflow, lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake("rejected")
    monkeypatch.setattr(approval, "reject", lambda *said: pytest.fail("it is rejected already"))
    monkeypatch.setattr(approval, "show_in_console", lambda path: None)

    event = event_of(bag)

    with pytest.raises(AirflowFailException, match="carol rejected it: too few rows"):
        bag.dags["release"].get_task("approve").execute_complete(CONTEXT, event)
    assert airflow.noted == [{"chosen": ["Reject"], "reason": "carol, not in Airflow: too few rows"}]


def test_an_answer_in_airflow_is_as_before_even_where_the_lake_server_is_away(bag, airflow, lake) -> None:
    lake("away")
    airflow.answer = ANSWER

    event = event_of(bag)

    assert "elsewhere" not in event and event["responded_by_user"] == {"id": "1", "name": "Ada"}
    assert airflow.noted == []


def test_where_both_come_at_once_that_counts_which_airflow_has_noted(bag, airflow, lake) -> None:
    lake("live")
    airflow.answer_while_noting = True

    event = event_of(bag)

    assert "elsewhere" not in event and event["responded_by_user"]["name"] == "Ada"


def test_a_question_that_nobody_answers_in_time_ends(bag, airflow, lake) -> None:
    lake("passed")

    assert event_of(bag, timeout_datetime=utc_now())["error_type"] == "timeout"


def test_the_question_waits_deferred_and_its_button_leads_to_the_plan(
    bag, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(approval, "show_in_console", asked.append)
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **given: asked.append(given)
    )
    task = bag.dags["release"].get_task("approve")

    with pytest.raises(TaskDeferred) as deferred:
        task.execute({**CONTEXT, "task_instance": CONTEXT["ti"]})

    trigger = deferred.value.trigger
    assert isinstance(trigger, DecisionTrigger) and trigger.plan == "p"
    assert trigger.timeout_datetime is not None and deferred.value.method_name == "execute_complete"
    assert asked[0] == "/plans/p" and asked[1]["options"] == ["Approve", "Reject"]


CONTEXT: dict[str, Any] = {
    "ti": SimpleNamespace(id=uuid4(), xcom_pull=lambda task_ids: {"plan": {"id": "p"}}[task_ids])
}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            {"responded_by_user": {"id": "1", "name": "Ada"}, "params_input": {"reason": "too few rows"}},
            "Ada rejected it: too few rows. Nothing was made live",
        ),
        (
            {"responded_by_user": None, "params_input": {}},
            "somebody rejected it: no reason was given. Nothing was made live",
        ),
        (
            {"error": "late", "error_type": "timeout"},
            "nobody answered within 2 days, 0:00:00. Nothing was made live",
        ),
    ],
)
def test_a_rejection_and_a_silence_fail_the_run_at_once_with_who_and_why(
    bag, lake, event: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake("passed")
    approve = bag.dags["release"].get_task("approve")
    rejected: list[Any] = []
    monkeypatch.setattr(approval, "reject", lambda *said: rejected.append(said))
    monkeypatch.setattr(approval, "show_in_console", lambda path: None)

    with pytest.raises(AirflowFailException) as failed:
        approve.execute_complete(CONTEXT, {"chosen_options": ["Reject"], "responded_at": None, **event})
    assert str(failed.value) == why
    who, _, rest = why.partition(" rejected it: ")
    reason = (event.get("params_input") or {}).get("reason")
    assert rejected == ([("p", who, reason)] if rest else [])  # nobody has rejected what nobody answered


@pytest.mark.parametrize("state", ["live", "rejected"])
def test_what_a_killed_trigger_has_noted_is_what_was_decided_elsewhere(
    bag, airflow, lake, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next trigger finds an answer that has no name."""
    lake(state)
    monkeypatch.setattr(approval, "reject", lambda *said: pytest.fail("it is rejected already"))
    monkeypatch.setattr(approval, "show_in_console", lambda path: None)
    chosen = {"live": "Approve", "rejected": "Reject"}[state]
    airflow.answer = {
        "chosen_options": [chosen], "params_input": {"reason": "carol, not in Airflow: x"},
        "responded_by_user": None,
    }  # fmt: skip
    approve = bag.dags["release"].get_task("approve")
    monkeypatch.setattr(DecisionTrigger, "_look", lambda self: None)  # the answer is first
    event = event_of(bag)
    assert "elsewhere" not in event

    if state == "live":
        told = approve.execute_complete(CONTEXT, event)
        assert (told["elsewhere"], approval.answered(told)) == (4, ("carol", "as agreed"))
    else:
        with pytest.raises(AirflowFailException, match="carol rejected it: too few rows"):
            approve.execute_complete(CONTEXT, event)


def test_an_answer_without_a_name_is_believed_where_the_lake_server_stays_away(
    bag, lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake("away")
    monkeypatch.setattr(jobs, "AWAY_S", 0.1)
    monkeypatch.setattr(approval, "show_in_console", lambda path: None)
    event = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": None}

    told = bag.dags["release"].get_task("approve").execute_complete(
        CONTEXT, {**event, "responded_at": utc_now()}
    )

    assert (told["elsewhere"], told["chosen_options"]) == (None, ["Approve"])


def test_a_decision_is_noted_only_when_its_event_follows_at_once(
    bag, airflow, lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers in Airflow meanwhile is who has answered."""
    lake("live")
    monkeypatch.setattr(approval, "SETTLED_S", 1.0)
    begun = time.monotonic()
    monkeypatch.setattr(
        approval, "update_hitl_detail_response", lambda **said: airflow.noted.append(time.monotonic() - begun)
    )

    event = event_of(bag)

    (noted,) = airflow.noted
    assert event["elsewhere"] == 4 and noted >= 1.0 and time.monotonic() - begun - noted < 1.0


def test_a_long_reason_fits_into_airflow_s_form(bag, airflow, lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake("live")
    monkeypatch.setitem(RELEASE, "reason", "x" * 500)

    event_of(bag)

    (noted,) = airflow.noted
    assert len(noted["reason"]) == approval.LONGEST_REASON and noted["reason"].startswith("carol, not in")


def test_what_is_approved_goes_on(bag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "show_in_console", lambda path: None)
    approve = bag.dags["release"].get_task("approve")
    user = {"id": "1", "name": "Ada"}
    answer = {"chosen_options": ["Approve"], "params_input": {"reason": None}, "responded_by_user": user}

    told = approve.execute_complete(CONTEXT, {**answer, "responded_at": utc_now()})

    assert (told["responded_by_user"], told["elsewhere"]) == (user, None)

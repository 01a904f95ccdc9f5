"""How a release waits for a person: who answers in Airflow, and who decides elsewhere.

A plan that is promoted or rejected by the console, a command or the API is an answer to the question that
waits in Airflow: its run goes on, and asks nobody any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time.hitl import update_hitl_detail_response
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import TriggerEvent
from asgiref.sync import sync_to_async

from twinlake.airflow.connection import lake_server
from twinlake.airflow.jobs import log, reject, waited_for
from twinlake.airflow.task import ConsoleLink, ShownFailure, show_in_console
from twinlake.airflow.trigger import SETTLED_S
from twinlake.base.errors import TwinlakeError
from twinlake.base.job import SOMEBODY
from twinlake.server.client import LakeClient

LOOK_S = 5.0
"""Runs may wait for days; a look at a plan takes a few milliseconds."""
LONGEST_REASON = 500
ELSEWHERE = "elsewhere"


class Approval(ApprovalOperator):
    """Asks on the page of the run; who rejects it fails the run and says why, and so does silence.

    Airflow's own way to wait looks at nothing: this one waits deferred, and looks at the plan too.
    """

    operator_extra_links = (ConsoleLink(),)

    def execute(self, context: Any) -> Any:
        plan = _plan(context)
        show_in_console(f"/plans/{plan}")
        try:
            return super().execute(context)
        except TaskAwaitingInput as waiting:
            until = utcnow() + self.response_timeout if self.response_timeout else None
            self.defer(
                trigger=DecisionTrigger(
                    plan=plan, ti_id=context["ti"].id, options=self.options, defaults=self.defaults,
                    params=self.serialized_params, multiple=self.multiple, timeout_datetime=until,
                ),
                method_name=waiting.method_name,
            )  # fmt: skip

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """The answer; `elsewhere` is the release by which somebody has made the plan live there, or None."""
        plan = _plan(context)
        show_in_console(f"/plans/{plan}")
        if "error" not in event and ELSEWHERE not in event and not event.get("responded_by_user"):
            # in Airflow nobody answers without a name: a trigger has noted it, and was killed
            event = _decided_elsewhere(plan) or event
        if "error" not in event and self.REJECT in event["chosen_options"]:
            who, why = answered(event)
            if ELSEWHERE not in event:
                reject(plan, who, why)
            raise ShownFailure(f"{who} rejected it: {why or 'no reason was given'}. Nothing was made live")
        return {**super().execute_complete(context, event), ELSEWHERE: event.get(ELSEWHERE)}

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        if event["error_type"] == "timeout":
            raise ShownFailure(f"nobody answered within {self.response_timeout}. Nothing was made live")
        super().process_trigger_event_error(event)


class DecisionTrigger(HITLTrigger):
    """Ends with what is answered in Airflow, or with what is decided of this plan elsewhere.

    The latter is noted as the answer in Airflow. Its event is that of an answer, and has `elsewhere`: the
    number of the release that the plan has become. What Airflow noted first counts.
    """

    def __init__(self, *, plan: str, **asked: Any) -> None:
        super().__init__(**asked)
        self.plan = plan

    def serialize(self) -> tuple[str, dict[str, Any]]:
        _, asked = super().serialize()
        return f"{__name__}.{type(self).__name__}", {**asked, "plan": self.plan}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        settled = time.monotonic() + SETTLED_S
        answer = asyncio.ensure_future(anext(super().run()))
        decision = asyncio.ensure_future(self._decided())
        try:
            await asyncio.wait((answer, decision), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(max(0.0, settled - time.monotonic()))  # after the note its event
            noted = not answer.done() and await self._note(decision.result())
            event = TriggerEvent(decision.result()) if noted else await answer
        finally:
            answer.cancel()
            decision.cancel()
        yield event

    async def _decided(self) -> dict[str, Any]:
        """Waits for it. What hinders to look is said, and hinders no answer in Airflow."""
        said = ""
        while True:
            try:
                found = await sync_to_async(self._look, thread_sensitive=False)()
                if found is not None:
                    return found
                said = ""
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    self.log.warning("it is not known whether the plan is decided elsewhere: %s", said)
            await asyncio.sleep(LOOK_S)

    def _look(self) -> dict[str, Any] | None:
        return decided(lake_server(), self.plan)

    async def _note(self, event: dict[str, Any]) -> bool:
        """Whether it counts: somebody may have answered in Airflow in this moment."""
        who, why = answered(event)
        reason = f"{who}, not in Airflow: {why or 'no reason was given'}"
        try:
            await sync_to_async(update_hitl_detail_response)(
                ti_id=self.ti_id, chosen_options=event["chosen_options"],
                params_input={"reason": reason[:LONGEST_REASON]},
            )  # fmt: skip
        except Exception as error:  # whatever Airflow says: then its own answer is waited for
            self.log.warning("the plan is decided elsewhere, which Airflow did not take: %s", error)
            return False
        self.log.info("%s decided it elsewhere: %s", who, event["chosen_options"])
        return True


def decided(client: LakeClient, plan: str) -> dict[str, Any] | None:
    """What somebody has decided of the plan, as Airflow tells of an answer; None while nobody has."""
    facts = client.plan(plan)
    if facts["state"] == "rejected":
        chosen, who, why = ApprovalOperator.REJECT, facts["rejected"]["by"], facts["rejected"]["reason"]
    elif facts["state"] == "live":
        (release,) = client.releases(number=facts["release"])
        chosen, who, why = ApprovalOperator.APPROVE, release["approved_by"], release["reason"]
    else:
        return None
    return {
        "chosen_options": [chosen], "params_input": {"reason": (why or "")[:LONGEST_REASON] or None},
        "responded_at": utcnow(), "responded_by_user": {"id": who, "name": who}, "timedout": False,
        ELSEWHERE: facts["release"],
    }  # fmt: skip


def _decided_elsewhere(plan: str) -> dict[str, Any] | None:
    """The same; a lake server that restarts is waited for, and one that stays away is in the task's log."""

    try:
        return waited_for("the lake server", lambda client: decided(client, plan))
    except TwinlakeError as error:
        log.warning("it is not known who has decided this plan: %s", error)
        return None


def answered(answer: dict[str, Any]) -> tuple[str, str | None]:
    """Who has answered an approval, and why where they say so."""
    who = (answer.get("responded_by_user") or {}).get("name") or SOMEBODY
    return who, ((answer.get("params_input") or {}).get("reason") or "").strip() or None


def _plan(context: Any) -> str:
    plan: str = context["ti"].xcom_pull(task_ids="plan")["id"]
    return plan

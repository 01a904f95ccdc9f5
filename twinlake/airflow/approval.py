"""The approval of a release: who rejects it fails the run and says why; so does silence for too long."""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from twinlake.airflow.common import reason_field
from twinlake.airflow.task import ShownFailure

REASON = reason_field("Reason", "why it is approved or rejected")


class Approval(ApprovalOperator):
    """Asks on the page of the run, with `REASON` among its params."""

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        if "error" not in event and self.REJECT in event["chosen_options"]:
            who = (event.get("responded_by_user") or {}).get("name") or "somebody"
            why = ((event.get("params_input") or {}).get("reason") or "").strip() or "no reason was given"
            raise ShownFailure(f"{who} rejected it: {why}. Nothing was made live")
        return super().execute_complete(context, event)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        if event["error_type"] == "timeout":
            raise ShownFailure(f"nobody answered within {self.response_timeout}. Nothing was made live")
        super().process_trigger_event_error(event)

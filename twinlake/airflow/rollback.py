"""The maker of the DAG `rollback`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context

from twinlake.airflow.assets import SERVED, announce
from twinlake.airflow.common import RELEASE_POOL, dag_of, reason_field, run_limit
from twinlake.airflow.jobs import run_job
from twinlake.airflow.task import lake_task


def rollback() -> None:
    """DAG `rollback`: makes an earlier release live again, in one commit."""

    @lake_task(outlets=[SERVED])
    def roll_back() -> dict[str, Any]:
        """Commit the earlier release; its versions were fed all the time, so they are fresh."""
        context = get_current_context()
        params, run = context["params"], context["dag_run"]
        asked: dict[str, Any] = {"approved_by": run.triggering_user_name or "airflow"}
        if params.get("reason"):
            asked["reason"] = params["reason"]
        if params.get("to") is not None:
            asked["to"] = params["to"]
        done = run_job("rollback", asked)
        announce("rolled back", done["tables"], release=done["release"])
        return done

    roll_back()


def rollback_dag() -> DAG:
    """`rollback`, as a DAG of the file that calls this."""
    return dag_of(
        rollback,
        RELEASE_POOL,
        retry_delay=timedelta(seconds=10),
        schedule=None,
        max_active_runs=1,
        dagrun_timeout=run_limit(),
        max_active_tasks=1,
        params={
            "to": Param(
                None,
                type=["null", "integer"],
                exclusiveMinimum=0,  # the form replaces what is typed by a `minimum`, silently
                title="To release",
                description="empty: the release before the live one",
            ),
            "reason": reason_field(
                "Reason", "kept in the release log; later plans show it beside the tables that they leave out"
            ),
        },
    )

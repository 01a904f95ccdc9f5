"""The maker of the DAG `replay`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context

from twinlake.airflow.assets import TOPICS, suggestions
from twinlake.airflow.common import BATCH_POOL, dag_of, run_limit
from twinlake.airflow.jobs import run_job
from twinlake.airflow.task import lake_task

NAME = "^[a-z][a-z0-9_]*$"
REASON = "^[a-z][a-z0-9_]*(:[A-Za-z][A-Za-z0-9_]*)?$"


def replay() -> None:
    """DAG `replay`: after a topic's contract was fixed, judges what it has in quarantine again."""

    @lake_task
    def judge_again() -> dict[str, Any]:
        """The contract in force decides; every table takes the records that are valid now."""
        params = get_current_context()["params"]
        reasons = [] if params["reason"] is None else [params["reason"]]
        return run_job("replay", {"topic": params["topic"], "reasons": reasons})

    judge_again()


def replay_dag() -> DAG:
    """`replay`, as a DAG of the file that calls this."""
    return dag_of(
        replay,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        schedule=None,
        max_active_runs=1,
        dagrun_timeout=run_limit(),
        max_active_tasks=1,
        params={
            "topic": Param(
                type="string",
                pattern=NAME,
                maxLength=200,
                title="Topic",
                examples=suggestions(TOPICS),
                description="its quarantine is validated again",
            ),
            "reason": Param(
                None,
                type=["null", "string"],
                pattern=REASON,
                maxLength=200,
                title="Reason",
                description="only records with it, like not_allowed or not_allowed:status; empty: all",
            ),
        },
    )

"""The maker of the DAG `maintain`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, Param, get_current_context

from twinlake.airflow.common import BATCH_POOL, dag_of, run_limit
from twinlake.airflow.jobs import run_job
from twinlake.airflow.task import lake_task
from twinlake.base.defaults import KEPT_RELEASES


def maintain() -> None:
    """DAG `maintain`: every night feeds no more what no kept release uses, compacts logs, deletes old
    files.
    """

    @lake_task
    def retire() -> dict[str, Any]:
        """MaintainedVersion no more what none of the kept releases uses; its files go six hours later."""
        keep = get_current_context()["params"]["keep"]
        return run_job("retire", {} if keep is None else {"keep": keep})

    @lake_task
    def clean_up() -> dict[str, Any]:
        """Compact the logs; delete the files that nobody reads any more."""
        return run_job("maintain", {})

    retire() >> clean_up()


def maintain_dag() -> DAG:
    """`maintain`, as a DAG of the file that calls this."""
    return dag_of(
        maintain,
        BATCH_POOL,
        retry_delay=timedelta(minutes=5),
        schedule="30 3 * * *",
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        max_active_runs=1,
        dagrun_timeout=run_limit(),
        max_active_tasks=1,
        params={
            "keep": Param(
                None,
                type=["null", "integer"],
                exclusiveMinimum=0,  # the form replaces what is typed by a `minimum`, silently
                title="Keep releases",
                description="one can roll back to so many of the newest releases, the live one among them; "
                f"{KEPT_RELEASES} unless given",
            ),
        },
    )
